#!/bin/sh
# choice.sh: the choice of library, adapter and port by FISHPLATE_VERBS, FISHPLATE_IB_DEVICES, FISHPLATE_REQUIRE.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

hello="$MPI_TESTS/mpi_p2p_sendrecv"
softib="$(dirname "$BIN")/lib/softib/libibverbs.so.1"
expect_protocol() {
    grep -qF "connected over $1" "$T/err" || fail "$last: the connection does not use $1"
}
expect_refused() {
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
}

# ---- the library ----
for verbs in softib "$softib" auto; do
    # a machine with InfiniBand uses it by default
    [ $verbs != auto ] || [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || continue
    run_job 2 2 FISHPLATE_LOG=info "FISHPLATE_VERBS=$verbs" "$hello"
    expect_rc 0
    expect_protocol "softib0 port 1, softib in shared memory (software)"
done
run_job 2 2 FISHPLATE_VERBS=nonsense "$hello"
expect_refused
expect_err "FISHPLATE_VERBS=nonsense is none of auto, system, softib or a path with a slash"
run_job 2 2 "FISHPLATE_VERBS=$T/nothing.so" "$hello"
expect_refused
expect_err "$T/nothing.so cannot be loaded"
run_job 2 2 FISHPLATE_VERBS=/lib/ld-linux.so.0/none "$hello"
expect_refused
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    run_job 2 2 FISHPLATE_VERBS=system "$hello"
    expect_refused
    expect_err "libibverbs.so.1"
fi

# ---- some nodes with an adapter and some without: the job ends with an error message of the first rank that detects it ----
cat >"$T/mixed" <<'END'
if [ "$SOFTIB_NODE" = "$1" ]; then
    unset SOFTIB_FABRIC
    exec env FISHPLATE_VERBS=auto "$2"
fi
exec env "LD_LIBRARY_PATH=$3" FISHPLATE_VERBS=system "$2"
END
for without in 0 1; do
    [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || break
    run_job 2 2 sh "$T/mixed" $without "$hello" "$(dirname "$softib")"
    expect_refused
    grep -Eq 'No InfiniBand or RoCE port is active on|no network path from [^ ]* to rank' "$T/err" ||
        fail "$last: no message names the node without an adapter"
done

# ---- one network for all ranks ----
# Two rails without a path between them. Node 0's port on the first rail is down, so node 1 must not use its own first port.
run_job 2 2 FISHPLATE_LOG=info "FISHPLATE_VERBS=$POOR" POOR_RAILS=1 \
    "SOFTIB_FABRIC=nodes=2 hcas=2 name=fp-choice-rails-$$ node0/hca0/1: down=0s" "$hello"
expect_rc 0
expect_err "node 0 uses softib1 port 1"
expect_err "node 1 uses softib1 port 1"
expect_err "and softib0 port 1, softib in shared memory (software): a further rail to nodes that are on its subnet too"
expect_err "the network of the job is softib in shared memory (software), subnet fe80:0000:0000:0031"
# run_with_links NUMBER LINKS [NODE:ADAPTER]: runs a job on adapters of these kinds and rates; the last argument names a missing adapter.
run_with_links() {
    run_job 2 2 FISHPLATE_LOG=info "FISHPLATE_VERBS=$POOR" POOR_RAILS=1 "POOR_LINKS=$2" "POOR_HIDE=${3:--1:none}" \
        "SOFTIB_FABRIC=nodes=2 hcas=3 name=fp-choice-linked-$1-$$" "$hello"
    expect_rc 0
}
expect_both_ports() {
    for node in 0 1; do
        expect_err "node $node uses $1"
    done
}
run_with_links 1 "eth25 ib100 ib400" # InfiniBand of 400 Gb/s, which is the last in every list
expect_both_ports "softib2 port 1"
expect_err "not softib0 port 1, softib in shared memory (software): the job's network is that of softib2 port 1 (InfiniBand, 400 Gb/s against 25)"
expect_err "and softib1 port 1, softib in shared memory (software): a further rail to nodes that are on its subnet too"
expect_err "all nodes have it, the slowest with 400 Gb/s"
run_with_links 2 "eth25 ib100 ib400" 1:softib2 # the fastest adapter is missing on node 1: no node uses it
expect_both_ports "softib1 port 1"
expect_err "all nodes have it, the slowest with 100 Gb/s"
run_with_links 3 "ib100 ib400 eth25" 0:softib1 # the same with a missing adapter on node 0, which decides
expect_both_ports "softib0 port 1"
expect_err "all nodes have it, the slowest with 100 Gb/s"
# Some ranks are set to use softib and some are not.
cat >"$T/some" <<'END'
[ "$SOFTIB_NODE" = 1 ] || unset FISHPLATE_VERBS
exec "$@"
END
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    run_job 2 2 FISHPLATE_VERBS=softib sh "$T/some" "$hello"
    expect_refused
    expect_err "FISHPLATE_VERBS=softib is set on some nodes and not on others"
fi

# ---- the port ----
run_with_devices() {
    number=$((number + 1))
    run_job 2 2 FISHPLATE_LOG=info FISHPLATE_VERBS=softib "SOFTIB_FABRIC=nodes=2 hcas=2 ports=2 name=fp-choice-$number-$$$2" \
        "FISHPLATE_IB_DEVICES=$1" "$hello"
}
number=0
while read -r list want; do
    [ "$list" != - ] || list=
    run_with_devices "$list" ""
    expect_rc 0
    expect_protocol "$want"
done <<'END'
- softib0 port 1
softib1 softib1 port 1
softib1:2 softib1 port 2
softib1:2,softib0 softib1 port 2
^softib0 softib1 port 1
^softib0,^softib1:1 softib1 port 2
softib0,^softib0:1 softib0 port 2
^softib0:1,softib0 softib0 port 2
none,softib0:2 softib0 port 2
END
# A port that is down is skipped, and the next port of the list is used.
run_with_devices softib0:1,softib1:2 " node0/hca0/1: down=0s node1/hca0/1: down=0s"
expect_rc 0
expect_protocol "softib1 port 2"
run_with_devices ^softib0,^softib1 ""
expect_refused
expect_err "FISHPLATE_IB_DEVICES=^softib0,^softib1 names none of the ports"
run_with_devices softib7 ""
expect_refused
expect_err "FISHPLATE_IB_DEVICES=softib7 names none of the ports"

# ---- one node ----
run_job 2 1 FISHPLATE_LOG=info "$hello"
expect_rc 0
expect_no_text "connected over"
run_job 2 1 FISHPLATE_VERBS=nonsense "$hello"
expect_rc 0
expect_no_err
run_job 2 1 FISHPLATE_VERBS=softib FISHPLATE_IB_DEVICES=softib0,mlx5_7 "SOFTIB_FABRIC=nodes=1 name=fp-choice-names-$$" "$hello"
expect_rc 0
expect_err "FISHPLATE_IB_DEVICES names mlx5_7, which is not there"
run_job 2 1 "FISHPLATE_VERBS=$T/nothing.so" FISHPLATE_IB_DEVICES=mlx5_7 "$hello"
expect_rc 0
expect_err "FISHPLATE_IB_DEVICES=mlx5_7 names no port: $T/nothing.so cannot be loaded"
run_job 2 1 FISHPLATE_VERBS=nothing FISHPLATE_IB_DEVICES=mlx5_7 "$hello"
expect_err "FISHPLATE_IB_DEVICES=mlx5_7 names no port: FISHPLATE_VERBS=nothing is none of"
run_job 2 1 FISHPLATE_LOG=info FISHPLATE_VERBS=softib FISHPLATE_REQUIRE=ib "SOFTIB_FABRIC=nodes=1 name=fp-choice-one-$$" "$hello"
expect_rc 0
expect_protocol "softib0 port 1"
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    run_job 2 2 FISHPLATE_REQUIRE=ib "$hello" # softib is available, but hardware is required
    expect_refused
    expect_err "FISHPLATE_REQUIRE=ib, but libibverbs.so.1"
    expect_err "MPI_ERR_UNSUPPORTED_OPERATION"
fi
run_job 2 1 FISHPLATE_REQUIRE=ib "FISHPLATE_VERBS=$T/nothing.so" "$hello"
expect_refused
expect_err "FISHPLATE_REQUIRE=ib, but $T/nothing.so cannot be loaded"
[ "$(grep -c "FISHPLATE_REQUIRE=ib" "$T/err")" = 1 ] || fail "$last: every rank prints the same sentence"
finish_test

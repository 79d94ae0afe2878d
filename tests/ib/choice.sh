#!/bin/sh
# choice.sh: the choice of library, adapter and port by FISHPLATE_VERBS, FISHPLATE_IB_DEVICES, FISHPLATE_REQUIRE.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

hello="$MPI_TESTS/mpi_p2p_sendrecv"
softib="$(dirname "$BIN")/lib/softib/libibverbs.so.1"
used() {
    grep -qF "connected over $1" "$T/err" || fail "$last: $1 is not what was used"
}
refused() {
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
}

# ---- the library ----
for verbs in softib "$softib" auto; do
    # a machine with InfiniBand uses it by default
    [ $verbs != auto ] || [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || continue
    job 2 2 FISHPLATE_LOG=info "FISHPLATE_VERBS=$verbs" "$hello"
    expect_rc 0
    used "softib0 port 1, softib in shared memory (software)"
done
job 2 2 FISHPLATE_VERBS=nonsense "$hello"
refused
expect_err "FISHPLATE_VERBS=nonsense is none of auto, system, softib or a path with a slash"
job 2 2 "FISHPLATE_VERBS=$T/nothing.so" "$hello"
refused
expect_err "$T/nothing.so cannot be loaded"
job 2 2 FISHPLATE_VERBS=/lib/ld-linux.so.0/none "$hello"
refused
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    job 2 2 FISHPLATE_VERBS=system "$hello"
    refused
    expect_err "libibverbs.so.1"
fi

# ---- some nodes with an adapter and some without: no hang, and a sentence from the first rank that detects it ----
cat >"$T/mixed" <<'END'
if [ "$SOFTIB_NODE" = "$1" ]; then
    unset SOFTIB_FABRIC
    exec env FISHPLATE_VERBS=auto "$2"
fi
exec env "LD_LIBRARY_PATH=$3" FISHPLATE_VERBS=system "$2"
END
for without in 0 1; do
    [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ] || break
    job 2 2 sh "$T/mixed" $without "$hello" "$(dirname "$softib")"
    refused
    grep -Eq 'No InfiniBand or RoCE port is active on|no network path from [^ ]* to rank' "$T/err" ||
        fail "$last: no message names the node without an adapter"
done

# ---- one network for all ranks ----
# Two rails without a path between them. Alone, node 1 would use its first port, which node 0 cannot reach because its own port on that network is down.
job 2 2 FISHPLATE_LOG=info "FISHPLATE_VERBS=$POOR" POOR_RAILS=1 \
    "SOFTIB_FABRIC=nodes=2 hcas=2 name=fp-choice-rails-$$ node0/hca0/1: down=0s" "$hello"
expect_rc 0
expect_err "node 0 uses softib1 port 1"
expect_err "node 1 uses softib1 port 1"
expect_err "and softib0 port 1, softib in shared memory (software): a further rail to nodes that are on its subnet too"
expect_err "the network of the job is softib in shared memory (software), subnet fe80:0000:0000:0031"
# Adapters of different kinds and rates. linked NUMBER LINKS [NODE:ADAPTER that is missing]
linked() {
    job 2 2 FISHPLATE_LOG=info "FISHPLATE_VERBS=$POOR" POOR_RAILS=1 "POOR_LINKS=$2" "POOR_HIDE=${3:--1:none}" \
        "SOFTIB_FABRIC=nodes=2 hcas=3 name=fp-choice-linked-$1-$$" "$hello"
    expect_rc 0
}
on_both() {
    for node in 0 1; do
        expect_err "node $node uses $1"
    done
}
linked 1 "eth25 ib100 ib400" # InfiniBand of 400 Gb/s, which is the last in every list
on_both "softib2 port 1"
expect_err "not softib0 port 1, softib in shared memory (software): the job's network is that of softib2 port 1 (InfiniBand, 400 Gb/s against 25)"
expect_err "and softib1 port 1, softib in shared memory (software): a further rail to nodes that are on its subnet too"
expect_err "all nodes have it, the slowest with 400 Gb/s"
linked 2 "eth25 ib100 ib400" 1:softib2 # the fastest adapter is missing on node 1: no node uses it
on_both "softib1 port 1"
expect_err "all nodes have it, the slowest with 100 Gb/s"
linked 3 "ib100 ib400 eth25" 0:softib1 # the same with a missing adapter on node 0, which decides
on_both "softib0 port 1"
expect_err "all nodes have it, the slowest with 100 Gb/s"
# Some ranks are set to use softib and some are not.
cat >"$T/some" <<'END'
[ "$SOFTIB_NODE" = 1 ] || unset FISHPLATE_VERBS
exec "$@"
END
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    job 2 2 FISHPLATE_VERBS=softib sh "$T/some" "$hello"
    refused
    expect_err "FISHPLATE_VERBS=softib is set on some nodes and not on others"
fi

# ---- the port ----
several() {
    number=$((number + 1))
    job 2 2 FISHPLATE_LOG=info FISHPLATE_VERBS=softib "SOFTIB_FABRIC=nodes=2 hcas=2 ports=2 name=fp-choice-$number-$$$2" \
        "FISHPLATE_IB_DEVICES=$1" "$hello"
}
number=0
while read -r list want; do
    [ "$list" != - ] || list=
    several "$list" ""
    expect_rc 0
    used "$want"
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
several softib0:1,softib1:2 " node0/hca0/1: down=0s node1/hca0/1: down=0s"
expect_rc 0
used "softib1 port 2"
several ^softib0,^softib1 ""
refused
expect_err "FISHPLATE_IB_DEVICES=^softib0,^softib1 names none of the 4 ports"
several softib7 ""
refused
expect_err "FISHPLATE_IB_DEVICES=softib7 names none of the 4 ports"

# ---- one node ----
job 2 1 FISHPLATE_LOG=info "$hello"
expect_rc 0
expect_no_text "connected over"
job 2 1 FISHPLATE_VERBS=nonsense "$hello"
expect_rc 0
expect_no_err
job 2 1 FISHPLATE_VERBS=softib FISHPLATE_IB_DEVICES=softib0,mlx5_7 "SOFTIB_FABRIC=nodes=1 name=fp-choice-names-$$" "$hello"
expect_rc 0
expect_err "FISHPLATE_IB_DEVICES names mlx5_7, which is not there"
job 2 1 "FISHPLATE_VERBS=$T/nothing.so" FISHPLATE_IB_DEVICES=mlx5_7 "$hello"
expect_rc 0
expect_err "FISHPLATE_IB_DEVICES=mlx5_7 names no port: $T/nothing.so cannot be loaded"
job 2 1 FISHPLATE_VERBS=nothing FISHPLATE_IB_DEVICES=mlx5_7 "$hello"
expect_err "FISHPLATE_IB_DEVICES=mlx5_7 names no port: FISHPLATE_VERBS=nothing is none of"
job 2 1 FISHPLATE_LOG=info FISHPLATE_VERBS=softib FISHPLATE_REQUIRE=ib "SOFTIB_FABRIC=nodes=1 name=fp-choice-one-$$" "$hello"
expect_rc 0
used "softib0 port 1"
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    job 2 2 FISHPLATE_REQUIRE=ib "$hello" # softib is available, but hardware is required
    refused
    expect_err "FISHPLATE_REQUIRE=ib, but libibverbs.so.1"
    expect_err "MPI_ERR_UNSUPPORTED_OPERATION"
fi
job 2 1 FISHPLATE_REQUIRE=ib "FISHPLATE_VERBS=$T/nothing.so" "$hello"
refused
expect_err "FISHPLATE_REQUIRE=ib, but $T/nothing.so cannot be loaded"
[ "$(grep -c "FISHPLATE_REQUIRE=ib" "$T/err")" = 1 ] || fail "$last: every rank prints the same sentence"
finish

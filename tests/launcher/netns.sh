# Several hosts on one machine: network namespaces with addresses and names of their own.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
. "$TESTS/netns_up.sh"
run_guarded
export FISHPLATE_SPIN_US=0 # the simulated hosts share the processors without knowing it
copy_client
per_host=$(echo $hosts | sed 's/,/:2,/g'):2

run_mpiexec -launcher-exec "$T/shell" -hosts $id-n0:2,$id-n1:2,$id-n2:2,localhost:2 "$CLIENT" exchange
expect_rc 0
[ "$(grep -c 'exchange ok' "$T/out")" -eq 8 ] || fail "$last: not all ranks came through"
run_mpiexec -l -fanout 2 -launcher-exec "$T/shell" -hosts $hosts hostname
expect_out "[0] $id-n0" "[1] $id-n1" "[2] $id-n2" "[3] $id-n3"
run_mpiexec -launcher-exec "$T/shell" -hosts $hosts "$CLIENT" crash 1
expect_rc 139
expect_err "Rank 1 on host $id-n1"
expect_no_client

# mpiexec listens at the address that leads to the hosts, and at the loopback. The remote shell runs before any agent has connected.
cat >"$T/door" <<'END'
#!/bin/sh
for fd in /proc/$PPID/fd/*; do
    inode=$(readlink "$fd" | sed -n 's/^socket:\[\([0-9]*\)\]$/\1/p')
    [ -z "$inode" ] || awk -v i="$inode" '$4 == "0A" && $10 == i { print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
done >>"$LISTENING"
number=${1##*.}
shift
exec "$SHELL_OF_HOST" "$NETNS_ID-n$((number - 10))" "$@"
END
chmod +x "$T/door"
export LISTENING="$T/listening" SHELL_OF_HOST="$T/shell"
: >"$LISTENING"
run_mpiexec -l -launcher-exec "$T/door" -hosts $net.10,$net.11,$net.12 hostname
expect_out "[0] $id-n0" "[1] $id-n1" "[2] $id-n2"
towards=$(printf '01%02X%02X%02X\n' "$(echo $net | cut -d. -f3)" "$(echo $net | cut -d. -f2)" "$(echo $net | cut -d. -f1)")
[ "$(cut -d: -f1 "$LISTENING" | sort -u | tr '\n' ' ')" = "0100007F $towards " ] || fail "$last: listens at $(cat "$LISTENING")"

# MPI between hosts without InfiniBand runs over TCP, and one line reports it.
has_softib || {
    echo "without softib: no messages between hosts"
    finish_test
    exit 0
}
run_mpi_programs "$MPIEXEC" -launcher-exec "$T/shell" -hosts $per_host
expect_err "the 4 nodes are connected by software over TCP"
[ "$(grep -c 'connected by software' "$T/err")" -eq 1 ] || fail "$last: said more than once"
run_mpiexec -launcher-exec "$T/shell" -hosts $per_host -genv FISHPLATE_STATS 1 "$MPI_TESTS/mpi_p2p_order"
expect_rc 0
# The data that a rank publishes does not grow with the job; rank 0 adds the list of nodes.
awk '/start_put_bytes/ { exit !($3 <= 64) }' "$T/err" || fail "$last: $(grep start_ "$T/err")"

# The same under Hydra.
if command -v mpiexec.hydra >/dev/null; then
    run_mpi_programs mpiexec.hydra -launcher ssh -launcher-exec "$T/shell" -hosts $hosts -ppn 1 -n 4
    expect_err "the 4 nodes are connected by software over TCP"
fi

# The same under orterun, whose PMIx server describes the nodes in another form than Slurm's.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR="$T"
orterun="orterun --mca plm_rsh_agent $T/shell --mca oob_tcp_if_include $net.0/24 --host $per_host"
if command -v orterun >/dev/null && timeout 60 $orterun true >/dev/null 2>&1; then
    run_launcher timeout 60 $orterun -n 8 "$CLIENT" exchange
    expect_rc 0
    [ "$(grep -c 'exchange ok' "$T/out")" -eq 8 ] || fail "$last: not all ranks came through"
    run_launcher timeout 60 $orterun -n 8 --map-by node "$CLIENT" place
    grep -q "rank 5 of 8 node 1 of 4 local 1 of 2 .* host $id-n1 launcher pmix" "$T/out" || fail "$last: wrong layout"
    run_launcher timeout 100 $orterun -n 4 --map-by node "$MPI_TESTS/mpi_p2p_order"
    expect_rc 0
    expect_err "the 4 nodes are connected by software over TCP"
else
    echo "without orterun"
fi

# A host that stops answering in the middle of the job ends the job and is named.
mkfifo "$T/up"
exec 6<>"$T/up"
"$MPIEXEC" -launcher-exec "$T/shell" -hosts $hosts "$CLIENT" stay "$T/up" >"$T/out" 2>"$T/err" 6>&- &
job=$!
pids=
for i in 0 1 2 3; do
    read -r pid <&6
    pids="$pids $pid"
    grep -qz "^FISHPLATE_HOST=$id-n2$" "/proc/$pid/environ" && victim=$pid
done
last="killing the agent on host $id-n2"
kill -KILL "$(ps -o ppid= -p "$victim" | tr -d ' ')"
rc=0
wait $job || rc=$?
expect_rc 1
expect_err "Host $id-n2, with 1 rank, was lost"
for pid in $pids; do
    expect_gone "$pid"
done
expect_no_client
finish_test

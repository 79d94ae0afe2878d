#!/bin/sh
# sim_replay.sh BIN: jobs that `fishplate prof` recorded, on a simulated machine: a record whose time can be added up by hand,
# records that cannot be replayed, and a job that runs now.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
# A sanitizer's library wants to be the first, but the profiler is preloaded.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"

# Two ranks; $1 and $2 are their events, one a line.
record() {
    r=0
    for events in "$1" "$2"; do
        printf 'record 1\njob hand\nrank %d 2\nhost h%d\nprogram hand\ntime 100000 1000 0\n' $r $r
        printf 'call MPI_%s 1 100 100 1 8\n' 'Send p2p 0' 'Recv p2p 0' 'Isend p2p 1' 'Irecv p2p 1' 'Waitall wait 0' 'Allreduce coll 0'
        printf 'timeline 1000000000 0\n%s\nend\n' "$events"
        r=$((r + 1))
    done
}
replay() {
    "$BIN/fishplate-lab" sim replay "$scratch/record" --machine "$scratch/machine" "$@" --json >"$scratch/json"
    python3 -c 'import json, sys; print(round(1e9 * json.load(open(sys.argv[1]))["replayed_s"]))' "$scratch/json"
}
expect_ns() {
    found=$(replay)
    [ "$found" = "$1" ] || fail "$2: $found ns instead of $1"
}

cat >"$scratch/machine" <<'EOF'
send_ns 100
receive_ns 100
link_ns 10
switch_ns 0
header_bytes 0
message_ns 0
link_rate 1
copy_rate 1000000
EOF

# Send, 5000 ns of computing, send; 8 bytes over two cables; receive.
record 'event MPI_Send 0 100 1 1 -2 8 -1
event MPI_Send 5100 100 1 1 -2 8 -1' 'event MPI_Recv 0 100 1 -2 0 -1 8
event MPI_Recv 100 6000 1 -2 0 -1 8' >"$scratch/record"
expect_ns $((100 + 5000 + 100 + 20 + 8 + 100)) 'two messages'
half=$(replay --compute 0.5)
[ "$half" = $((100 + 2500 + 100 + 20 + 8 + 100)) ] || fail "--compute 0.5: $half ns"

# A receive that was started early does not wait before MPI_Waitall, so both ranks go on.
record 'event MPI_Irecv 0 10 1 -2 1 -1 8
event MPI_Allreduce 1000 100 1 -2 -2 8 8
event MPI_Waitall 2000 100 1' 'event MPI_Allreduce 1000 100 1 -2 -2 8 8
event MPI_Isend 1100 10 1 0 -2 8 -1
event MPI_Waitall 2000 100 1' >"$scratch/record"
[ "$(replay)" -gt 300 ] || fail 'an allreduce and a message take no time'

# What cannot be replayed is named.
refused() {
    if "$BIN/fishplate-lab" sim replay "$scratch/record" >"$scratch/table" 2>"$scratch/err"; then
        fail "this was replayed: $(cat "$scratch/record")"
    fi
    expect_line "$scratch/err" "$1"
}
record 'event MPI_Recv 0 10 1 -2 -1 -1 8' 'event MPI_Send 0 10 1 0 -2 8 -1' >"$scratch/record"
refused 'rank 0, MPI_Recv: .*any source'
record 'event MPI_Allreduce 0 10 1 -2 -2 8 8' 'event MPI_Waitall 0 10 1' >"$scratch/record"
refused 'wait for each other'

# A job of now: the record holds sender, receiver and bytes of each message, and it can be replayed.
"$BIN/fishplate" prof --record "$scratch/record" --timeline "$scratch/timeline" \
    "$BIN/mpiexec" -n 2 "$BIN/fishplate-lab" kernels --class S cg >"$scratch/out" 2>&1 || fail "$(cat "$scratch/out")"
expect_line "$scratch/record" '^event MPI_Irecv [0-9]+ [0-9]+ 1 -2 1 -1 5600$'
expect_line "$scratch/record" '^event MPI_Send [0-9]+ [0-9]+ 1 1 -2 5600 -1$'
"$BIN/fishplate-lab" sim replay "$scratch/record" --from ib100 >"$scratch/table"
expect_line "$scratch/table" 'the machine it is from .* error [-+]'

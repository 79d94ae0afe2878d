#!/bin/sh
# sim_replay.sh BIN: jobs that `fishplate prof` recorded are replayed on a simulated machine: a record whose time is known, records that
# cannot be replayed, and the record of a job of this test.
#
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../../../tests/tools/lib.sh"
# The profiler is preloaded, so a sanitizer's library is not the first one.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"

# write_record EVENTS0 EVENTS1: prints a record of two ranks with these events, one per line.
write_record() {
    r=0
    for events in "$1" "$2"; do
        printf 'record 1\njob hand\nrank %d 2\nhost h%d\nprogram hand\ntime 100000 1000 0\n' $r $r
        printf 'call MPI_%s 1 100 100 1 8\n' 'Send p2p 0' 'Recv p2p 0' 'Isend p2p 1' 'Irecv p2p 1' 'Waitall wait 0' 'Allreduce coll 0'
        printf 'timeline 1000000000 0\n%s\nend\n' "$events"
        r=$((r + 1))
    done
}
replay_record() {
    "$BIN/fishplate-lab" sim replay "$scratch/record" --machine "$scratch/machine" "$@" --json >"$scratch/json"
    python3 -c 'import json, sys; print(round(1e9 * json.load(open(sys.argv[1]))["replayed_s"]))' "$scratch/json"
}
expect_ns() {
    found=$(replay_record)
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
write_record 'event MPI_Send 0 100 1 1 -2 8 -1
event MPI_Send 5100 100 1 1 -2 8 -1' 'event MPI_Recv 0 100 1 -2 0 -1 8
event MPI_Recv 100 6000 1 -2 0 -1 8' >"$scratch/record"
expect_ns $((100 + 5000 + 100 + 20 + 8 + 100)) 'two messages'
half=$(replay_record --compute 0.5)
[ "$half" = $((100 + 2500 + 100 + 20 + 8 + 100)) ] || fail "--compute 0.5: $half ns"

# A receive that was started early does not wait before MPI_Waitall, so both ranks continue.
write_record 'event MPI_Irecv 0 10 1 -2 1 -1 8
event MPI_Allreduce 1000 100 1 -2 -2 8 8
event MPI_Waitall 2000 100 1' 'event MPI_Allreduce 1000 100 1 -2 -2 8 8
event MPI_Isend 1100 10 1 0 -2 8 -1
event MPI_Waitall 2000 100 1' >"$scratch/record"
[ "$(replay_record)" -gt 300 ] || fail 'an allreduce and a message take no time'

# Records that cannot be replayed are refused with the reason.
expect_refused() {
    if "$BIN/fishplate-lab" sim replay "$scratch/record" >"$scratch/table" 2>"$scratch/err"; then
        fail "this was replayed: $(cat "$scratch/record")"
    fi
    expect_line "$scratch/err" "$1"
}
write_record 'event MPI_Recv 0 10 1 -2 -1 -1 8' 'event MPI_Send 0 10 1 0 -2 8 -1' >"$scratch/record"
expect_refused 'rank 0, MPI_Recv: .*any source'
write_record 'event MPI_Allreduce 0 10 1 -2 -2 8 8' 'event MPI_Waitall 0 10 1' >"$scratch/record"
expect_refused 'wait for each other'

# A job of this test: its record contains sender, receiver and bytes of each message, and can be replayed.
"$BIN/fishplate" prof --record "$scratch/record" --timeline "$scratch/timeline" \
    "$BIN/mpiexec" -n 2 "$BIN/fishplate-lab" kernels --class S cg >"$scratch/out" 2>&1 || fail "$(cat "$scratch/out")"
expect_line "$scratch/record" '^event MPI_Irecv [0-9]+ [0-9]+ 1 -2 1 -1 5600$'
expect_line "$scratch/record" '^event MPI_Send [0-9]+ [0-9]+ 1 1 -2 5600 -1$'
"$BIN/fishplate-lab" sim replay "$scratch/record" --from ib100 >"$scratch/table"
expect_line "$scratch/table" 'the machine it is from .* error [-+]'

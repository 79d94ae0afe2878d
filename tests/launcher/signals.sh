# Signals to mpiexec reach the ranks; INT and similar signals end the job, USR1 does not.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
mkfifo "$T/up" "$T/got"

# start_ranks SCRIPT [PROGRAM]: starts two ranks, and waits until both have set their traps and written to $T/up. PROGRAM runs mpiexec.
start_ranks() {
    "${2-env}" "$MPIEXEC" -n 2 sh -c "$1" >"$T/out" 2>"$T/err" &
    pid=$!
    last="mpiexec -n 2 sh -c '$1'"
    # Opened for reading and writing, so that no end of file occurs between two writers.
    exec 3<>"$T/up"
    read -r _ <&3
    read -r _ <&3
    exec 3<&-
}

wait_for_mpiexec() {
    rc=0
    wait $pid || rc=$?
}

# wait_for_state LETTER: waits up to 20 s until mpiexec has this state in /proc (S asleep, T stopped).
wait_for_state() {
    tries=0
    while read -r _ _ state _ <"/proc/$pid/stat" && [ "$state" != "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 2000 ] || {
            fail "$last: mpiexec is in state $state, expected $1"
            kill -CONT $pid
            return
        }
        [ $tries -lt 20 ] || sleep 0.01
    done
}

start_ranks "trap 'exit 3' TERM; echo up >$T/up; while :; do sleep 1000 & wait; done"
kill -TERM $pid
wait_for_mpiexec
expect_rc 3
expect_err "Received SIGTERM"

start_ranks "echo up >$T/up; exec sleep 1000"
kill -INT $pid
wait_for_mpiexec
expect_rc 130
start_ranks "echo up >$T/up; exec sleep 1000"
kill -HUP $pid
wait_for_mpiexec
expect_rc 129

# USR1 is passed on and has no other effect.
start_ranks "trap 'echo got usr1; kill \$!; exit 0' USR1; sleep 1000 & echo up >$T/up; wait"
kill -USR1 $pid
wait_for_mpiexec
expect_rc 0
expect_out "got usr1" "got usr1"

# Ranks that ignore all signals are ended by KILL, without delay after a second signal.
start_ranks "trap '' INT TERM; echo up >$T/up; while :; do sleep 1000; done"
kill -INT $pid
kill -TERM $pid
wait_for_mpiexec
[ "$rc" -ge 128 ] || fail "$last: exit status $rc, expected 128 or more"

# A suspended job continues even if CONT follows TSTP at once: no stop remains when the two signals race. In a process group of its
# own, as from a terminal: in an orphaned group TSTP has no effect.
printf '#!/usr/bin/env python3\nimport os, sys\nos.setpgid(0, 0)\nos.execv(sys.argv[1], sys.argv[1:])\n' >"$T/apart"
chmod +x "$T/apart"
start_ranks "echo up >$T/up; read -r line <$T/got; echo done" "$T/apart"
kill -TSTP $pid
wait_for_state T
kill -CONT $pid
# The time between the two signals grows from less to more than mpiexec needs to wake up.
for round in $(seq 400); do
    wait_for_state S
    gap=$((round % 100))
    kill -TSTP $pid
    while [ $gap -gt 0 ]; do gap=$((gap - 1)); done
    kill -CONT $pid
done
wait_for_state S
exec 4<>"$T/got"
printf 'a\nb\n' >&4
wait_for_mpiexec
exec 4<&-
expect_rc 0
finish_test

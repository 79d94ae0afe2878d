# Signals to mpiexec reach the ranks; INT and similar signals end the job, USR1 does not.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
mkfifo "$T/up" "$T/got"

# start script [program]: two ranks that write to $T/up when their traps are set; the program runs mpiexec.
start() {
    "${2-env}" "$MPIEXEC" -n 2 sh -c "$1" >"$T/out" 2>"$T/err" &
    pid=$!
    last="mpiexec -n 2 sh -c '$1'"
    # Opened for reading and writing, so that no end of file occurs between two writers.
    exec 3<>"$T/up"
    read -r _ <&3
    read -r _ <&3
    exec 3<&-
}

end() {
    rc=0
    wait $pid || rc=$?
}

# until_state letter: waits some time until mpiexec has this state in /proc (S asleep, T stopped).
until_state() {
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

start "trap 'exit 3' TERM; echo up >$T/up; while :; do sleep 1000 & wait; done"
kill -TERM $pid
end
expect_rc 3
expect_err "Received SIGTERM"

start "echo up >$T/up; exec sleep 1000"
kill -INT $pid
end
expect_rc 130
start "echo up >$T/up; exec sleep 1000"
kill -HUP $pid
end
expect_rc 129

# USR1 is passed on and has no other effect.
start "trap 'echo got usr1; kill \$!; exit 0' USR1; sleep 1000 & echo up >$T/up; wait"
kill -USR1 $pid
end
expect_rc 0
expect_out "got usr1" "got usr1"

# Ranks that ignore all signals are ended by KILL; a second signal means at once.
start "trap '' INT TERM; echo up >$T/up; while :; do sleep 1000; done"
kill -INT $pid
kill -TERM $pid
end
[ "$rc" -ge 128 ] || fail "$last: exit status $rc, expected 128 or more"

# A suspended job continues even if CONT follows TSTP at once: no stop remains when the two signals race. In a process group of its
# own, as from a terminal: in an orphaned group TSTP has no effect.
printf '#!/usr/bin/env python3\nimport os, sys\nos.setpgid(0, 0)\nos.execv(sys.argv[1], sys.argv[1:])\n' >"$T/apart"
chmod +x "$T/apart"
start "echo up >$T/up; read -r line <$T/got; echo done" "$T/apart"
kill -TSTP $pid
until_state T
kill -CONT $pid
# The time between the two signals grows from less to more than mpiexec needs to wake up.
for round in $(seq 400); do
    until_state S
    gap=$((round % 100))
    kill -TSTP $pid
    while [ $gap -gt 0 ]; do gap=$((gap - 1)); done
    kill -CONT $pid
done
until_state S
exec 4<>"$T/got"
printf 'a\nb\n' >&4
end
exec 4<&-
expect_rc 0
finish

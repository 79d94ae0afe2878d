# After any process is killed nothing remains: no ranks, no processes that they started, no files. Every process of the job,
# mpiexec included, holds one end of a pipe open; a read at the other end returns when the last of them has ended.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
mkfifo "$T/up" "$T/alive"
make_shell
# Other programs of the machine also use /dev/shm; files of this library have one of these names.
ours_in_shm() {
    find /dev/shm -maxdepth 1 \( -name '*fishplate*' -o -name '*softib*' -o -name 'fp*' \) 2>/dev/null | sort
}
shm_before=$(ours_in_shm)

# Children in sessions of their own, children whose parent has gone, children without output.
cat >"$T/rank" <<END
#!/bin/sh
setsid sleep 1000 &
(setsid sleep 1000 >/dev/null 2>&1 </dev/null &)
echo \$\$ >"$T/up"
exec sleep 1000
END
chmod +x "$T/rank"

# Ranks can open the pipe while this script holds it; then the script closes it and waits until no process holds it.
hold() {
    exec 6<>"$T/up" 7<>"$T/alive"
}
wait_until_gone() {
    cat <"$T/alive" >/dev/null 7>&- &
    reader=$!
    exec 6>&- 7>&-
    wait $reader
}

# The front's child is the reaper, whose child is the worker.
worker_of() {
    reaper=$(cat "/proc/$1/task/$1/children")
    reaper=${reaper%% *}
    cat "/proc/$reaper/task/$reaper/children"
}

# kill_and_look who mpiexec-arguments...
kill_and_look() {
    who=$1
    shift
    last="killing the $who of: mpiexec $*"
    hold
    setsid "$MPIEXEC" "$@" "$T/rank" >"$T/out" 2>"$T/err" 5>"$T/alive" 6>&- 7>&- &
    pid=$!
    read -r rank1 <&6
    read -r _ <&6
    # shellcheck disable=SC2046 # several pids
    case $who in
    front) kill -KILL $pid ;;
    worker) kill -KILL $(worker_of $pid) ;;
    reaper) kill -KILL $(cat /proc/$pid/task/$pid/children) ;;
    "front and worker") kill -KILL $pid $(worker_of $pid) ;;
    group) kill -KILL -$pid ;;
    rank) kill -KILL "$rank1" ;;
    esac
    rc=0
    wait $pid 2>/dev/null || rc=$?
    wait_until_gone
    expect_rc 137
}

kill_and_look front -n 2
kill_and_look worker -n 2
expect_err "worker process of mpiexec was killed"
kill_and_look reaper -n 2
kill_and_look "front and worker" -n 2
kill_and_look group -n 2
kill_and_look rank -n 2
expect_err "was killed by signal 9"
kill_and_look front -n 2 -launcher-exec "$T/shell" -hosts a,b
kill_and_look worker -n 2 -launcher-exec "$T/shell" -hosts a,b
kill_and_look rank -n 2 -launcher-exec "$T/shell" -hosts a,b

# A successful job also ends the processes that its ranks left running.
hold
run -n 1 sh -c "exec 5>'$T/alive' 6>&- 7>&-; setsid sleep 1000 >/dev/null 2>&1 & exit 0"
expect_rc 0
wait_until_gone

[ "$shm_before" = "$(ours_in_shm)" ] || fail "something new lies in /dev/shm"
finish

# After any process is killed nothing remains: no ranks, no processes that they started, no files. Every process of the job,
# mpiexec included, holds one end of a pipe open; a read at the other end returns when the last of them has ended.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
mkfifo "$T/up" "$T/alive"
make_local_shell
# Prints the files of this library in /dev/shm, which other programs of the machine use too.
list_our_shm_files() {
    find /dev/shm -maxdepth 1 \( -name '*fishplate*' -o -name '*softib*' -o -name 'fp*' \) 2>/dev/null | sort
}
shm_before=$(list_our_shm_files)

# A rank with two children: one in its own session, and one without output whose parent has ended.
cat >"$T/rank" <<END
#!/bin/sh
setsid sleep 1000 &
(setsid sleep 1000 >/dev/null 2>&1 </dev/null &)
echo \$\$ >"$T/up"
exec sleep 1000
END
chmod +x "$T/rank"

# The script holds both ends of the pipe open until the ranks have opened it; then wait_until_gone closes its ends and waits until no
# process has the pipe open.
open_alive_pipe() {
    exec 6<>"$T/up" 7<>"$T/alive"
}
wait_until_gone() {
    cat <"$T/alive" >/dev/null 7>&- &
    reader=$!
    exec 6>&- 7>&-
    wait $reader
}

# print_worker_pid PID: mpiexec's first process has a child, the reaper, whose child is the worker.
print_worker_pid() {
    reaper=$(cat "/proc/$1/task/$1/children")
    reaper=${reaper%% *}
    cat "/proc/$reaper/task/$reaper/children"
}

# expect_nothing_left_after_kill PROCESS MPIEXEC-ARGUMENTS...: starts a job, kills one of its processes, and waits for all others.
expect_nothing_left_after_kill() {
    who=$1
    shift
    last="killing the $who of: mpiexec $*"
    open_alive_pipe
    setsid "$MPIEXEC" "$@" "$T/rank" >"$T/out" 2>"$T/err" 5>"$T/alive" 6>&- 7>&- &
    pid=$!
    read -r rank1 <&6
    read -r _ <&6
    # shellcheck disable=SC2046 # several pids
    case $who in
    front) kill -KILL $pid ;;
    worker) kill -KILL $(print_worker_pid $pid) ;;
    reaper) kill -KILL $(cat /proc/$pid/task/$pid/children) ;;
    "front and worker") kill -KILL $pid $(print_worker_pid $pid) ;;
    group) kill -KILL -$pid ;;
    rank) kill -KILL "$rank1" ;;
    esac
    rc=0
    wait $pid 2>/dev/null || rc=$?
    wait_until_gone
    expect_rc 137
}

expect_nothing_left_after_kill front -n 2
expect_nothing_left_after_kill worker -n 2
expect_err "worker process of mpiexec was killed"
expect_nothing_left_after_kill reaper -n 2
expect_nothing_left_after_kill "front and worker" -n 2
expect_nothing_left_after_kill group -n 2
expect_nothing_left_after_kill rank -n 2
expect_err "was killed by signal 9"
expect_nothing_left_after_kill front -n 2 -launcher-exec "$T/shell" -hosts a,b
expect_nothing_left_after_kill worker -n 2 -launcher-exec "$T/shell" -hosts a,b
expect_nothing_left_after_kill rank -n 2 -launcher-exec "$T/shell" -hosts a,b

# A successful job also ends the processes that its ranks left running.
open_alive_pipe
run_mpiexec -n 1 sh -c "exec 5>'$T/alive' 6>&- 7>&-; setsid sleep 1000 >/dev/null 2>&1 & exit 0"
expect_rc 0
wait_until_gone

[ "$shm_before" = "$(list_our_shm_files)" ] || fail "something new lies in /dev/shm"
finish_test

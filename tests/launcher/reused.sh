# While a job runs, the number of a rank that has ended may be given to a process of another job, which then leads a process group of that
# number. When the job is ended, that process is not signalled.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
if [ "${INSIDE-}" != yes ]; then
    unshare --fork --pid --mount-proc true 2>/dev/null || skip "process numbers cannot be chosen here (root is needed)"
    INSIDE=yes GUARDED_T=$T exec unshare --fork --pid --mount-proc --kill-child sh "$0"
fi
{ echo 1000 >/proc/sys/kernel/ns_last_pid; } 2>/dev/null || skip "process numbers cannot be chosen here"
make_local_shell
open_pipes

# Rank 0 ends at once, rank 1 fails when it reads a line, the others end by SIGKILL only.
cat >"$T/rank" <<END
#!/bin/sh
case \$PMI_RANK in
0) echo \$\$ >"$T/up" ;;
1) read -r _ <"$T/go" && exit 3 ;;
*) trap '' TERM && exec sleep 1000 ;;
esac
END
chmod +x "$T/rank"

# start_bystander PID: starts a process with this number, which leads a process group.
start_bystander() {
    tries=0
    bystander=0
    while [ $bystander != "$1" ]; do
        tries=$((tries + 1))
        [ $tries -le 50 ] || skip "no process got the number $1"
        [ $bystander = 0 ] || kill -KILL $bystander
        echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid
        setsid sleep 1000 6>&- 7>&- &
        bystander=$!
    done
    while [ "$(cut -d' ' -f5 "/proc/$1/stat")" != "$1" ]; do
        sleep 0.01
    done
}

expect_bystander_survives() {
    start_job "$@" -n 4 "$T/rank"
    read_line_of_job
    ended=$line
    while [ -e "/proc/$ended" ]; do
        sleep 0.01
    done
    start_bystander "$ended"
    echo go >&7
    wait_for_job
    expect_rc 3
    case $(cut -d' ' -f3 "/proc/$ended/stat" 2>/dev/null) in
    '' | Z) fail "$last: mpiexec killed a process that has the number of an ended rank" ;;
    *) kill -KILL "$ended" ;;
    esac
}

expect_bystander_survives
expect_bystander_survives -launcher-exec "$T/shell" -hosts localhost:3,a:1
finish_test

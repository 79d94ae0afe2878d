# A host whose agent stops answering while its connection stays open: by SIGSTOP, with a remote shell that stays on this machine.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
make_local_shell
copy_client
open_pipes
words="-timeout 200 -heartbeat 3 -launcher-exec $T/shell -hosts a,b,c"

# stop_agent rank: stops the agent of that rank.
stop_agent() {
    agent=$(ps -o ppid= -p "$1" | tr -d ' ')
    kill -STOP "$agent"
}

# Without recovery the job ends and the host is named, also if it is reached through another agent.
for fanout in 16 1; do
    start_job $words -fanout $fanout "$CLIENT" stay "$T/up"
    pids=
    for i in 0 1 2; do
        read_line_of_job
        pid=$line
        pids="$pids $pid"
        ! grep -qz '^FISHPLATE_HOST=c$' "/proc/$pid/environ" || victim=$pid
    done
    stop_agent "$victim"
    wait_for_job
    expect_rc 1
    expect_err "Host c, with 1 rank, was lost: no heartbeat arrived from it for 3 seconds (-heartbeat)"
    for pid in $pids $agent; do
        expect_gone "$pid"
    done
done
expect_no_client

has_softib || {
    echo "without softib: no messages between hosts"
    finish_test
    exit 0
}
# With recovery the other ranks are notified that the host's ranks are dead. When the agent continues, it ends them.
start_job $words -enable-recovery "$LOST" "$T/up" "$T/go" 2
for i in 0 1 2; do
    read_line_of_job
    case $line in "2 "*) victim=$(echo "$line" | cut -d' ' -f2) ;; esac
done
stop_agent "$victim"
read_line_of_job
[ "$line" = "on 2" ] || fail "$last: $line"
kill -CONT "$agent"
expect_gone "$agent"
expect_gone "$victim"
echo >&7
wait_for_job
expect_rc 0
expect_out "rank 0 goes on" "rank 1 goes on"
expect_err "Host c, with 1 rank, was lost: no heartbeat arrived from it for 3 seconds (-heartbeat)"
finish_test

# A host that is cut off from the network: its link goes down, and no connection reports an error.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
. "$TESTS/netns_up.sh"
run_guarded
export FISHPLATE_SPIN_US=0 # the simulated hosts share the processors without knowing it
copy_client
open_pipes
words="-timeout 200 -heartbeat 3 -launcher-exec $T/shell"

# Without recovery the job ends and its message names the host. The processes on the host end by themselves.
start_job $words -hosts $hosts "$CLIENT" stay "$T/up"
pids=
for i in 0 1 2 3; do
    read_line_of_job
    pids="$pids $line"
done
ip link set $id-v3 down
wait_for_job
expect_rc 1
expect_err "Host $id-n3, with 1 rank, was lost: no heartbeat arrived from it for 3 seconds (-heartbeat)"
for pid in $pids; do
    expect_gone "$pid"
done
expect_no_client

has_softib || {
    echo "without softib: no messages between hosts"
    finish_test
    exit 0
}
# With recovery the others continue; the lost host's agent, which receives nothing either, ends its ranks.
start_job $words -hosts $id-n0:2,$id-n1:2,$id-n2:2 -enable-recovery "$LOST" "$T/up" "$T/go" 4 5
victims=
for i in 0 1 2 3 4 5; do
    read_line_of_job
    case $line in *" $id-n2") victims="$victims $(echo "$line" | cut -d' ' -f2)" ;; esac
done
ip link set $id-v2 down
read_line_of_job
[ "$line" = "on 4" ] || fail "$last: $line"
for pid in $victims; do
    expect_gone "$pid"
done
echo >&7
wait_for_job
expect_rc 0
expect_out "rank 0 goes on" "rank 1 goes on" "rank 2 goes on" "rank 3 goes on"
expect_err "Host $id-n2, with 2 ranks, was lost: no heartbeat arrived from it for 3 seconds (-heartbeat)"
finish_test

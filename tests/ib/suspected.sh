#!/bin/sh
# suspected.sh: with -enable-recovery one rank becomes unreachable without notice: the only port of its node goes down, the only adapter
# is removed, or the rank has ended but its shell hides the end from the launcher. When any rank reports the unreachable rank, the
# launcher ends that rank. All other ranks get MPIX_ERR_PROC_FAILED for that rank only, and continue.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
open_pipes

# make_node_unreachable COMMAND...: runs the command after the first barrier of four ranks on four nodes, and checks that the other
# ranks continue. $victim is the process id of rank 1.
make_node_unreachable() {
    start_job -timeout 120 -enable-recovery -genv FISHPLATE_IB_TIMEOUT 14 -genv FISHPLATE_IB_RAIL_PATIENCE 1 -n 4 -vnodes 4 \
        sh -c "$how" "$LOST" "$T/up" "$T/go" 1
    for i in 0 1 2 3; do
        read_line_of_job
        case $line in "1 "*) victim=$(echo "$line" | cut -d' ' -f2) ;; esac
    done
    SOFTIB_FABRIC=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -n 's/^SOFTIB_FABRIC=//p')
    export SOFTIB_FABRIC
    last="$*"
    "$@" || fail "$*: exit status $?"
    unset SOFTIB_FABRIC
    echo >&7
    read_line_of_job
    [ "$line" = "on 3" ] || fail "$last: $line"
    wait_for_job
    expect_rc 0
    expect_out "rank 0 goes on" "rank 2 goes on" "rank 3 goes on"
    expect_gone "$victim"
}

kill_victim() {
    kill -KILL "$victim"
}

how='exec "$0" "$@"'
make_node_unreachable "$SOFTIB" ctl port down node1/hca0/1
expect_err "The others went on without it"
make_node_unreachable "$SOFTIB" ctl hca remove node1/hca0
expect_err "The others went on without it"
how='"$0" "$@" || exec sleep 1000'
make_node_unreachable kill_victim
expect_err "cannot be reached by rank"
expect_err "mpiexec sent the signal"
finish_test

#!/bin/sh
# suspected.sh: with -enable-recovery one node becomes unreachable although its rank lives: its only port goes down, its only
# adapter is removed, or its process has ended and a shell in its place hides the end from the launcher. The launcher ends
# that rank, whichever rank reports it first; all other ranks get MPIX_ERR_PROC_FAILED for that rank only, and continue.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
pipes

# lose command...: runs the command after the first barrier of four ranks on four nodes; $victim is the process of rank 1.
lose() {
    begin -timeout 120 -enable-recovery -genv FISHPLATE_IB_TIMEOUT 14 -genv FISHPLATE_IB_RAIL_PATIENCE 1 -n 4 -vnodes 4 \
        sh -c "$how" "$LOST" "$T/up" "$T/go" 1
    for i in 0 1 2 3; do
        next_line
        case $line in "1 "*) victim=$(echo "$line" | cut -d' ' -f2) ;; esac
    done
    SOFTIB_FABRIC=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -n 's/^SOFTIB_FABRIC=//p')
    export SOFTIB_FABRIC
    last="$*"
    "$@" || fail "$*: exit status $?"
    unset SOFTIB_FABRIC
    echo >&7
    next_line
    [ "$line" = "on 3" ] || fail "$last: $line"
    end_of_job
    expect_rc 0
    expect_out "rank 0 goes on" "rank 2 goes on" "rank 3 goes on"
    expect_gone "$victim"
}

kill_victim() {
    kill -KILL "$victim"
}

how='exec "$0" "$@"'
lose "$SOFTIB" ctl port down node1/hca0/1
expect_err "The others went on without it"
lose "$SOFTIB" ctl hca remove node1/hca0
expect_err "The others went on without it"
how='"$0" "$@" || exec sleep 1000'
lose kill_victim
expect_err "cannot be reached by rank"
expect_err "mpiexec sent the signal"
finish

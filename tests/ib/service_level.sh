#!/bin/sh
# service_level.sh: control messages use a separate service level if connections have a queue pair for control messages.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

run_exchange() {
    run_job 2 2 FISHPLATE_STATS=1 "$@" "$BIN/fishplate" bench --sizes 8,64k --time 0.01 bw
    expect_rc 0
}
run_exchange FISHPLATE_IB_RECEIVE=shared FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=3
[ "$(print_counter ib_control_lanes)" = 2 ] || fail "of the two ends of a connection $(print_counter ib_control_lanes) are on level 3"
# The service level is the usual one by default, and if connections have no queue pair for control messages.
run_exchange FISHPLATE_IB_RECEIVE=shared
[ "$(print_counter ib_control_lanes)" = 0 ] || fail "a service level was set that was not requested"
run_exchange FISHPLATE_IB_RECEIVE=peer FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=3
[ "$(print_counter ib_control_lanes)" = 0 ] || fail "control messages have no queue pair of their own, and so no service level"

# Virtual lanes that share a link: a small message overtakes a large one only with the service level of the high-priority lane.
expect_first() {
    want=$1
    shift
    run_job 2 2 FISHPLATE_IB_RECEIVE=shared "$@" -hcas 2MB/s,high=3 "$IB_TESTS/ib_overtake"
    expect_rc 0
    grep -q "first: $want" "$T/out" || fail "$*: not the $want message came first: $(cat "$T/out")"
}
expect_first large
expect_first large FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=2
expect_first small FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=3
finish_test

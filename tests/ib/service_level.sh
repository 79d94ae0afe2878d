#!/bin/sh
# service_level.sh: control messages on a service level of their own, where connections have a queue pair for them.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

exchange() {
    job 2 2 FISHPLATE_STATS=1 "$@" "$BIN/fishplate" bench --sizes 8,64k --time 0.01 bw
    expect_rc 0
}
exchange FISHPLATE_IB_RECEIVE=shared FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=3
[ "$(counted ib_control_lanes)" = 2 ] || fail "of the two ends of a connection $(counted ib_control_lanes) are on level 3"
# Off by default, and without a queue pair for control messages.
exchange FISHPLATE_IB_RECEIVE=shared
[ "$(counted ib_control_lanes)" = 0 ] || fail "a service level was set that was not requested"
exchange FISHPLATE_IB_RECEIVE=peer FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=3
[ "$(counted ib_control_lanes)" = 0 ] || fail "control messages have no queue pair of their own, and so no service level"

# Virtual lanes that share a link: a small message overtakes a large one only with the service level of the high-priority lane.
expect_first() {
    want=$1
    shift
    job 2 2 FISHPLATE_IB_RECEIVE=shared "$@" -hcas 2MB/s,high=3 "$IB_TESTS/ib_overtake"
    expect_rc 0
    grep -q "first: $want" "$T/out" || fail "$*: not the $want message came first: $(cat "$T/out")"
}
expect_first large
expect_first large FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=2
expect_first small FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=3

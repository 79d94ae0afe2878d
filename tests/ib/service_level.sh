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

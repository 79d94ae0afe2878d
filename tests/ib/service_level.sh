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

# Virtual lanes that share a link: a small message overtakes a large one by the service level of the high-priority lane. (Without the
# level the large message comes first, but not if rank 1 gets no processor before the small message is sent.)
run_job 2 2 FISHPLATE_IB_RECEIVE=shared FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL=3 -hcas 2MB/s,high=3 "$IB_TESTS/ib_overtake"
expect_rc 0
grep -q "first: small" "$T/out" || fail "$last: the small message did not come first: $(cat "$T/out")"
finish_test

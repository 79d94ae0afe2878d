#!/bin/sh
# storm.sh: more messages than a receiver that looks away has buffers for: adapters refuse (RNR) and try again, credits
# run out, shared queues run dry. Nothing hangs, nothing is lost or out of order.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

for rings in 0 16; do
    job 2 2 STORM=refused FISHPLATE_LAB=IB_FLOW=hw FISHPLATE_IB_BUFFERS=2 FISHPLATE_IB_POLLSET=$rings "$IB_TESTS/ib_fault" storm
    expect_rc 0
done
job 8 8 STORM=refused FISHPLATE_IB_RECEIVE=shared FISHPLATE_LAB=IB_FLOW=hw,IB_SHARED_BASE=8,IB_SHARED_FACTOR=0 \
    FISHPLATE_IB_POLLSET=0 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" storm
expect_rc 0
expect_counted ib_shared_limit_events
# Credits do not know how many others share the queue: eight buffers are fewer than seven senders may use.
job 8 4 FISHPLATE_IB_RECEIVE=shared FISHPLATE_LAB=IB_SHARED_BASE=8,IB_SHARED_FACTOR=0 "$IB_TESTS/ib_fault" storm
expect_rc 0
job 4 4 FISHPLATE_LAB=IB_FLOW=static FISHPLATE_IB_BUFFERS=2 FISHPLATE_IB_POLLSET=0 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" storm
expect_rc 0
expect_counted ib_credit_waits
finish

#!/bin/sh
# storm.sh: more messages than the buffers of a receiver that does not poll: adapters refuse messages (RNR) and retry, credits
# and shared receive queues run out. Nothing hangs, nothing is lost or out of order.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

for rings in 0 16; do
    run_job 2 2 STORM=refused FISHPLATE_LAB=IB_FLOW=hw FISHPLATE_IB_BUFFERS=2 FISHPLATE_IB_POLLSET=$rings "$IB_TESTS/ib_fault" storm
    expect_rc 0
done
run_job 8 8 STORM=refused FISHPLATE_IB_RECEIVE=shared FISHPLATE_LAB=IB_FLOW=hw,IB_SHARED_BASE=8,IB_SHARED_FACTOR=0 \
    FISHPLATE_IB_POLLSET=0 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" storm
expect_rc 0
expect_counted ib_shared_limit_events
# Seven senders share eight buffers of a queue, fewer than the credits of all senders together.
run_job 8 4 FISHPLATE_IB_RECEIVE=shared FISHPLATE_LAB=IB_SHARED_BASE=8,IB_SHARED_FACTOR=0 "$IB_TESTS/ib_fault" storm
expect_rc 0
run_job 4 4 FISHPLATE_LAB=IB_FLOW=static FISHPLATE_IB_BUFFERS=2 FISHPLATE_IB_POLLSET=0 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" storm
expect_rc 0
expect_counted ib_credit_waits
finish_test

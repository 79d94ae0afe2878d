#!/bin/sh
# port.sh: a port that stays down ends the job with an error message; a port that comes up again in time only delays the job.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

for receive in peer shared xrc; do
    run_job 2 2 FISHPLATE_IB_RAIL_PATIENCE=1 FISHPLATE_IB_RECEIVE=$receive FISHPLATE_IB_TIMEOUT=10 "$IB_TESTS/ib_fault" down
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
    grep -qE "port 1 has been down for 1 seconds|port 1 failed: transport retry counter exceeded .*did not come back in 1 seconds" \
        "$T/err" || fail "$last: no reason given"
done
# Without a connection no adapter reports an error; the rank whose port is down reports it.
run_job 2 2 FISHPLATE_IB_RAIL_PATIENCE=1 "$IB_TESTS/ib_fault" down-early
[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
expect_err "port 1 has been down for 1 seconds"
run_job 2 2 FISHPLATE_IB_TIMEOUT=17 "$IB_TESTS/ib_fault" flap
expect_rc 0
expect_err "port 1 is up again"
# After the adapter has reported an error the connection is opened again and lost data is sent again, in every protocol.
for way in auto get getcqe rput split r3; do
    run_job 2 2 FISHPLATE_RENDEZVOUS=$way FISHPLATE_IB_TIMEOUT=8 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" away
    expect_rc 0
    expect_counted ib_connections_moved
done
for setting in FISHPLATE_IB_RECEIVE=shared FISHPLATE_IB_RECEIVE=xrc FISHPLATE_IB_POLLSET=0 "FISHPLATE_RENDEZVOUS=put"; do
    run_job 2 2 "$setting" FISHPLATE_LAB=LAST_BYTE_POLL=never FISHPLATE_IB_TIMEOUT=8 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" away
    expect_rc 0
    expect_counted ib_frames_resent
done
# A receiver that polls the last byte of a write is queried whether the byte has arrived.
for way in put putnr; do
    run_job 2 2 FISHPLATE_RENDEZVOUS=$way FISHPLATE_LAB=LAST_BYTE_POLL=always FISHPLATE_IB_TIMEOUT=8 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" away
    expect_rc 0
    expect_counted ib_connections_moved
done
# Puts of words into a window are repeated.
run_job 2 2 FISHPLATE_IB_TIMEOUT=8 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" window
expect_rc 0
expect_counted ib_connections_moved
# Connections that share queue pairs fail together.
run_job 8 2 FISHPLATE_IB_RECEIVE=xrc FISHPLATE_IB_TIMEOUT=8 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" together
expect_rc 0
expect_counted ib_connections_moved
finish_test

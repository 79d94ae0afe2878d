#!/bin/sh
# port.sh: a port that goes down for good ends the job with a sentence; one that comes up again in time costs nothing but
# time.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

for receive in peer shared; do
    job 2 2 FISHPLATE_IB_RECEIVE=$receive FISHPLATE_IB_TIMEOUT=10 "$IB_TESTS/ib_fault" down
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
    expect_err "the connection to rank"
    expect_err "port 1 failed: transport retry counter exceeded (verbs status 12"
done
# Without a connection no adapter gives up: the rank whose port is down does.
job 2 2 "$IB_TESTS/ib_fault" down-early
[ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
expect_err "port 1 has been down for 10 seconds"
job 2 2 FISHPLATE_IB_TIMEOUT=17 "$IB_TESTS/ib_fault" flap
expect_rc 0
expect_err "port 1 is up again"
finish

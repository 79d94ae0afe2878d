#!/bin/sh
# killed.sh: a rank is killed. The launcher ends the job; if the launcher cannot detect the death, because a shell remains in
# the rank's place, the other rank detects it: its adapter, or the handshake, gets no more answers.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

job 2 2 "$IB_TESTS/ib_fault" kill
expect_rc 137

for rings in 0 16; do
    job 2 2 FISHPLATE_IB_POLLSET=$rings FISHPLATE_IB_TIMEOUT=10 FISHPLATE_IB_RAIL_PATIENCE=1 sh -c '"$0" kill; exec sleep 1000' "$IB_TESTS/ib_fault"
    expect_rc 1
    expect_err "the connection to rank 1 (on another node, node 1) over"
    expect_err "(verbs status 12"
done
job 2 2 FISHPLATE_IB_CONNECT_TIMEOUT=1 sh -c '"$0" kill-early; exec sleep 1000' "$IB_TESTS/ib_fault"
expect_rc 1
expect_err "the connection to rank 1 (on another node, node 1) over"
expect_err "it does not answer"

# Before that, when ten seconds have passed, one line reports which rank waits for which.
job 2 2 FISHPLATE_IB_CONNECT_TIMEOUT=12 sh -c '"$0" kill-early; exec sleep 1000' "$IB_TESTS/ib_fault"
expect_rc 1
expect_err "waiting for rank 1 to open a connection over"
[ "$(grep -c '(rank 0 on .*waiting for rank 1' "$T/err")" -eq 1 ] || fail "$last: rank 0 should say once whom it waits for"

# A rank that makes no MPI call is not considered dead.
job 2 2 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" strike
expect_rc 0
expect_counted ib_hellos_repeated
finish

#!/bin/sh
# killed.sh: a rank is killed, and the launcher ends the job. If the launcher cannot detect the death, because the rank's shell continues
# to run, the other rank detects the death by an error of its adapter or by a handshake without answers.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

run_job 2 2 "$IB_TESTS/ib_fault" kill
expect_rc 137

for rings in 0 16; do
    run_job 2 2 FISHPLATE_IB_POLLSET=$rings FISHPLATE_IB_TIMEOUT=10 FISHPLATE_IB_RAIL_PATIENCE=1 sh -c '"$0" kill; exec sleep 1000' "$IB_TESTS/ib_fault"
    expect_rc 1
    expect_err "the connection to rank 1 (on another node, node 1) over"
    expect_err "(verbs status 12"
done
run_job 2 2 FISHPLATE_IB_CONNECT_TIMEOUT=1 sh -c '"$0" kill-early; exec sleep 1000' "$IB_TESTS/ib_fault"
expect_rc 1
expect_err "the connection to rank 1 (on another node, node 1) over"
expect_err "it does not answer"

# Ten seconds after the start of the handshake one line reports which rank waits for which.
run_job 2 2 FISHPLATE_IB_CONNECT_TIMEOUT=12 sh -c '"$0" kill-early; exec sleep 1000' "$IB_TESTS/ib_fault"
expect_rc 1
expect_err "waiting for rank 1 to open a connection over"
[ "$(grep -c '(rank 0 on .*waiting for rank 1' "$T/err")" -eq 1 ] || fail "$last: rank 0 should say once whom it waits for"

# A rank that makes no MPI call is not considered dead.
run_job 2 2 FISHPLATE_STATS=1 "$IB_TESTS/ib_fault" strike
expect_rc 0
expect_counted ib_hellos_repeated
finish_test

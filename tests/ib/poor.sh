#!/bin/sh
# poor.sh: adapters with fewer features than softib: small queues, no inline data, no reads, no memory to register. Every
# byte still arrives, or the job ends with an error message that names the missing resource.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

traffic="$MPI_TESTS/mpi_ib_traffic"
run_on_limited_adapter() {
    run_job 4 4 "FISHPLATE_VERBS=$POOR" FISHPLATE_STATS=1 "$@" "$traffic"
}

run_on_limited_adapter POOR_USER=0
expect_rc 0
expect_counted p2p_rendezvous_r3
for protocol in rput get; do
    run_on_limited_adapter POOR_USER=1 FISHPLATE_RENDEZVOUS=$protocol
    expect_rc 0
done
expect_counted p2p_rendezvous_r3
run_on_limited_adapter POOR_INLINE=0
expect_rc 0
run_on_limited_adapter POOR_INLINE=20 FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
expect_rc 0
run_on_limited_adapter POOR_QP_WR=32
expect_rc 0
run_on_limited_adapter POOR_QP_WR=64 POOR_SRQ_WR=8 FISHPLATE_IB_RECEIVE=shared
expect_rc 0
# The connections to the ranks of a node share one send queue with XRC, which must have 16 entries for each.
run_on_limited_adapter POOR_QP_WR=32 FISHPLATE_IB_RECEIVE=xrc
expect_rc 1
expect_err "a send queue holds 32 requests, too few for connections"
run_on_limited_adapter POOR_READS=0 FISHPLATE_RENDEZVOUS=get
expect_rc 0
[ "$(print_counter ib_get_bytes)" -eq 0 ] || fail "$last: bytes were read by an adapter that cannot"

# Memory for the first connection only: the error message appears at once.
run_on_limited_adapter POOR_BUFFERS=4
expect_rc 1
expect_err "bytes for buffers (Cannot allocate memory)"
expect_no_text "check the cable"
# The error message contains the system's reason.
run_on_limited_adapter POOR_CQS=0
[ "$rc" -ne 0 ] || fail "$last: the job should fail"
expect_err "entries: Too many open files"
# A further adapter without a completion queue is not used.
run_job 2 2 "FISHPLATE_VERBS=$POOR" POOR_CQS=1 -hcas 2 "$traffic"
expect_rc 0
expect_err "rail 1 cannot be opened and is not used"

# Ranks with few descriptors, so that the limit is reached at different places: the job ends with a message that names the limit.
for n in 28 26 24 22 20 18 16 14; do
    run_job 8 4 sh -c 'ulimit -n $1; exec "$0"' "$MPI_TESTS/mpi_p2p_order" $n
    [ "$rc" -eq 0 ] || expect_err "ulimit -n"
    [ "$rc" -ne 124 ] || fail "$last: with $n descriptors it waits for ever"
done
[ "$rc" -ne 0 ] || fail "$last: 14 descriptors are enough, so the test has checked nothing"
finish_test

#!/bin/sh
# without.sh: adapters that lack a feature: every byte arrives by another path, or the job ends with a message that names the setting.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

expect_refused() {
    [ "$rc" -ne 0 ] && [ "$rc" -ne 124 ] || fail "$last: exit status $rc"
}

# run_without FEATURES [NAME=value ...] program: runs the program on adapters that lack these features.
run_without() {
    features=$1
    shift
    run_job 4 4 "SOFTIB_FABRIC=without=$features" FISHPLATE_STATS=1 "$@"
}

# All optional features: features that the library uses are removed one by one, the other features together.
for features in inline apm atomics mw,odp,dm,cq_ex,qp_ex,import,xrc inline,atomics,apm,srq,mcast,mw,odp,dm,cq_ex,qp_ex,import,xrc; do
    run_without "$features" "$MPI_TESTS/mpi_ib_sizes"
    expect_rc 0
done
# Windows: locks and accumulates by messages instead of the adapter.
run_without atomics "$MPI_TESTS/mpi_rma_accumulate"
expect_rc 0
[ "$(print_counter ib_atomics)" -eq 0 ] || fail "$last: an adapter without atomic operations did some"
# Broadcasts by messages.
run_without mcast FISHPLATE_COLL=bcast=multicast:max=4m "$MPI_TESTS/mpi_coll_short"
expect_rc 0
# Features that the user requires and the adapter lacks.
run_without srq FISHPLATE_IB_RECEIVE=shared "$MPI_TESTS/mpi_ib_sizes"
expect_refused
expect_err "FISHPLATE_IB_RECEIVE=peer does not need one"
run_without xrc FISHPLATE_IB_RECEIVE=xrc "$MPI_TESTS/mpi_ib_sizes"
expect_refused
expect_err "FISHPLATE_IB_RECEIVE=xrc, but softib0 port 1 has no extended reliable connections"
# An unknown feature name.
run_without srqs "$MPI_TESTS/mpi_ib_sizes"
expect_refused
expect_err "did you mean srq?"
finish_test

#!/bin/sh
# roce.sh: MPI programs over RoCE ports. The whole list of MPI tests runs over RoCE with SOFTIB_FABRIC=link=ethernet ctest -L '^ib$'.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"
export SOFTIB_FABRIC=link=ethernet

# RoCE version 2 with an IPv4 address: entry 3 of the GID table of softib.
run_job 2 2 "$BIN/fishplate" info --devices
expect_rc 0
grep -qF "GID ::ffff:198.18.0.2 (entry 3)" "$T/out" || fail "$last: not RoCE version 2: $(grep GID "$T/out")"

run_job 8 4 "$MPI_TESTS/mpi_ib_traffic"
expect_rc 0
run_job 8 4 FISHPLATE_IB_RECEIVE=xrc "$MPI_TESTS/mpi_ib_traffic"
expect_rc 0
run_job 4 4 FISHPLATE_COLL=bcast=multicast:max=4m "$MPI_TESTS/mpi_ib_multicast"
expect_rc 0
run_job 4 2 "$MPI_TESTS/mpi_rma_put_get"
expect_rc 0
run_job 2 2 FISHPLATE_STATS=1 -hcas 2x1GB/s "$IB_TESTS/ib_rails" joined
expect_rc 0
expect_counted ib_rail1_bytes
finish_test

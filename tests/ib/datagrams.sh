#!/bin/sh
# datagrams.sh: handshakes over a fabric that loses, duplicates and reorders datagrams, and with foreign datagrams.
# SPDX-License-Identifier: Apache-2.0
. "$TESTS/lib.sh"

for seed in 1 2; do
    run_job 8 8 "SOFTIB_FABRIC=nodes=8 ud_loss=0.3 ud_dup=0.3 ud_reorder=0.3 seed=$seed name=fp-datagrams-$seed-$$" \
        FISHPLATE_STATS=1 "$MPI_TESTS/mpi_ib_traffic"
    expect_rc 0
    expect_counted ib_hellos_repeated
    [ "$(print_counter ib_connections_opened)" -eq 56 ] || fail "$last: $(print_counter ib_connections_opened) connections opened"
done
run_job 4 4 "SOFTIB_FABRIC=nodes=4 ud_loss=0.3 ud_dup=0.3 ud_reorder=0.3 seed=4 name=fp-datagrams-4-$$" FISHPLATE_STATS=1 \
    FISHPLATE_IB_MAX_CONNECTIONS=1 "$MPI_TESTS/mpi_ib_counted"
expect_rc 0
expect_counted ib_connections_closed

run_job 4 4 "LD_LIBRARY_PATH=$(dirname "$BIN")/lib/softib" FISHPLATE_VERBS=system "$IB_TESTS/ib_stranger"
expect_rc 0
finish_test

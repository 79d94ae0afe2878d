/* barrier_selection.c: the laboratory setting BARRIER_SELECT selects a barrier algorithm for every
 * communicator at its creation by measuring all algorithms. All ranks select the same algorithm, and
 * barriers separate earlier from later messages on all communicators.
 *
 * ranks: 2 4
 * env: FISHPLATE_LAB=BARRIER_SELECT=10
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

/* Each rank in turn sends to all others before the barrier; after the barrier the message must have
 * arrived. */
static void test_barriers(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 20; i++) {
        int here = 1, word = i, got = -1;
        const int from = i % size;
        if (rank == from)
            for (int to = 0; to < size; to++)
                if (to != rank)
                    MPI_Send(&word, 1, MPI_INT, to, i, comm);
        MPI_Barrier(comm);
        if (rank == from)
            continue;
        for (int polls = 0; polls < 1000000; polls++) {
            MPI_Iprobe(from, i, comm, &here, MPI_STATUS_IGNORE);
            if (here)
                break;
        }
        EXPECT_EQ(here, 1);
        MPI_Recv(&got, 1, MPI_INT, from, i, comm, MPI_STATUS_IGNORE);
        EXPECT_EQ(got, i);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm dup, half;
    counters_begin();
    MPI_T_pvar_handle selected = counter_open("coll_barrier_selected");
    mpitest_begin(&argc, &argv);
    const int before = (int)read_counter(selected);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(MPI_COMM_WORLD, mpitest_rank / 2, 0, &half);
    EXPECT_EQ(read_counter(selected), before + 2);
    EXPECT_EQ(before, 1); /* counts the selection for MPI_COMM_WORLD */
    test_barriers(dup);
    test_barriers(half);
    test_barriers(MPI_COMM_WORLD);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&half);
    counters_end();
    return mpitest_end();
}

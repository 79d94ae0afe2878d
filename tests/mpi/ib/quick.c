/* quick.c: barriers of nodes with one rank each, by RDMA writes: most go the short way of written_quick.c, and some cannot, because a
 * nonblocking barrier of the same communicator is under way. Nobody leaves one before both ranks have come, by the machine's
 * clock, and each is counted. Without others under way every one goes the short way, where each rank has a processor.
 *
 * ranks: 2
 * nodes: only 2
 * env: FISHPLATE_COLL=barrier=rdma
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>

#include "counters.h"
#include "late.h"

enum { BLOCK = 300 };

static double came[BLOCK], left[BLOCK];

/* Each `others`-th barrier overtakes a nonblocking one, which is waited for later. */
static void quick_block(unsigned *dice, int others)
{
    int early = 0;
    for (int i = 0; i < BLOCK; i++) {
        MPI_Request other = MPI_REQUEST_NULL;
        be_late(dice);
        came[i] = now();
        if (others && i % others == 0)
            MPI_Ibarrier(MPI_COMM_WORLD, &other);
        MPI_Barrier(MPI_COMM_WORLD);
        left[i] = now();
        MPI_Wait(&other, MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(MPI_IN_PLACE, came, BLOCK, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < BLOCK; i++)
        early += left[i] < came[i];
    EXPECT_EQ(early, 0);
}

/* The number of processors that the ranks together may run on. */
static int quick_processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    MPI_Allreduce(MPI_IN_PLACE, &set, sizeof(set), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    return CPU_COUNT(&set);
}

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle written = counter_open("coll_barrier_rdma"),
                      quick = counter_open("coll_barrier_rdma_direct");
    mpitest_begin(&argc, &argv);
    unsigned dice = 7u + (unsigned)mpitest_rank;
    for (int i = 0; i < 4; i++)
        quick_block(&dice, 3);
    const long before = (long)counter(written);
    quick_block(&dice, 3);
    EXPECT_EQ((long)counter(written) - before, BLOCK + BLOCK / 3);
    const long short_before = (long)counter(quick);
    quick_block(&dice, 0);
    const long went = (long)counter(quick) - short_before;
    if (went != 0 || quick_processors() >= 2)
        EXPECT_EQ(went, BLOCK);
    counters_end();
    return mpitest_end();
}

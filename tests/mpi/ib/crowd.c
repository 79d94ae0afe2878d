/* crowd.c: where ranks take turns on processors and nobody names a barrier, nodes meet in the switch as soon as a communicator has
 * been used a few times, without a trial; nobody is early, and nonblocking barriers in between are counted too.
 *
 * ranks: 4
 * nodes: only 4
 * env: FISHPLATE_COLL_TRY=0 FISHPLATE_VERBS=softib
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>

#include "counters.h"
#include "late.h"

enum {
    BARRIERS = 400,
    BEFORE = 8, /* by a schedule, of blocking and of nonblocking ones each; */
    FIRST = 1,  /* the one that opens the group */
    SWITCHED = BARRIERS - 2 * (BEFORE + FIRST)
};

static double came[BARRIERS], left[BARRIERS];

/* Pretends that the machine has at most two processors. */
static void crowd(void)
{
    cpu_set_t all, few;
    if (sched_getaffinity(0, sizeof(all), &all) != 0)
        return;
    CPU_ZERO(&few);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&few) < 2; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &few);
    sched_setaffinity(0, sizeof(few), &few);
}

static void barriers(MPI_Comm comm, unsigned *dice)
{
    int early = 0;
    for (int i = 0; i < BARRIERS; i++) {
        MPI_Request request;
        be_late(dice);
        came[i] = now();
        if (i % 5 == 0) {
            MPI_Ibarrier(comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Barrier(comm);
        }
        left[i] = now();
    }
    MPI_Allreduce(MPI_IN_PLACE, came, BARRIERS, MPI_DOUBLE, MPI_MAX, comm);
    for (int i = 0; i < BARRIERS; i++)
        early += left[i] < came[i];
    EXPECT_EQ(early, 0);
}

int main(int argc, char **argv)
{
    MPI_Comm twin;
    crowd();
    counters_begin();
    MPI_T_pvar_handle switched = counter_open("coll_barrier_switch"),
                      written = counter_open("coll_barrier_rdma");
    mpitest_begin(&argc, &argv);
    unsigned dice = 3u + (unsigned)mpitest_rank;
    barriers(MPI_COMM_WORLD, &dice);
    EXPECT_EQ(counter(switched), SWITCHED);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    barriers(twin, &dice);
    EXPECT_EQ(counter(switched), 2 * SWITCHED);
    EXPECT_EQ(counter(written), 0);
    MPI_Comm_free(&twin);
    counters_end();
    return mpitest_end();
}

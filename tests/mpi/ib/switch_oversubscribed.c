/* switch_oversubscribed.c: with more ranks than processors and no barrier algorithm set, nodes synchronise
 * through the switch once a communicator has been used a few times, without a measurement; no rank leaves
 * early, and nonblocking barriers in between are counted too.
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
    BEFORE = 8, /* number of barriers by a schedule, for the blocking and for the nonblocking form */
    FIRST = 1,  /* the barrier that opens the group in the switch */
    SWITCHED = BARRIERS - 2 * (BEFORE + FIRST)
};

static double arrival_times[BARRIERS], departure_times[BARRIERS];

/* Pretends that the machine has at most two processors. */
static void pretend_two_processors(void)
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

static void run_barriers(MPI_Comm comm, unsigned *random_seed)
{
    for (int i = 0; i < BARRIERS; i++) {
        MPI_Request request;
        delay_randomly(random_seed);
        arrival_times[i] = clock_seconds(CLOCK_MONOTONIC);
        if (i % 5 == 0) {
            MPI_Ibarrier(comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Barrier(comm);
        }
        departure_times[i] = clock_seconds(CLOCK_MONOTONIC);
    }
    EXPECT_EQ(count_early_departures(arrival_times, departure_times, BARRIERS, comm), 0);
}

int main(int argc, char **argv)
{
    MPI_Comm twin;
    pretend_two_processors();
    counters_begin();
    MPI_T_pvar_handle switched = counter_open("coll_barrier_switch"),
                      written = counter_open("coll_barrier_rdma");
    mpitest_begin(&argc, &argv);
    unsigned random_seed = 3u + (unsigned)mpitest_rank;
    run_barriers(MPI_COMM_WORLD, &random_seed);
    EXPECT_EQ(read_counter(switched), SWITCHED);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    run_barriers(twin, &random_seed);
    EXPECT_EQ(read_counter(switched), 2 * SWITCHED);
    EXPECT_EQ(read_counter(written), 0);
    MPI_Comm_free(&twin);
    counters_end();
    return mpitest_end();
}

/* fast_barrier.c: barriers by RDMA writes between nodes with one rank each: most use the fast path of
 * src/coll/barrier/fast.c, and some cannot because a nonblocking barrier of the same communicator is in
 * flight. No rank leaves before both ranks have arrived, by the machine's clock, and each barrier is
 * counted. Without nonblocking barriers all use the fast path if each rank has a processor.
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

static double arrival_times[BLOCK], departure_times[BLOCK];

/* Runs a block of barriers; every `others`-th barrier runs while a nonblocking barrier is in flight. */
static void run_block(unsigned *random_seed, int others)
{
    for (int i = 0; i < BLOCK; i++) {
        MPI_Request other = MPI_REQUEST_NULL;
        delay_randomly(random_seed);
        arrival_times[i] = clock_seconds(CLOCK_MONOTONIC);
        if (others && i % others == 0)
            MPI_Ibarrier(MPI_COMM_WORLD, &other);
        MPI_Barrier(MPI_COMM_WORLD);
        departure_times[i] = clock_seconds(CLOCK_MONOTONIC);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
    }
    EXPECT_EQ(count_early_departures(arrival_times, departure_times, BLOCK, MPI_COMM_WORLD), 0);
}

/* Returns the number of processors on which the ranks together may run. */
static int count_processors(void)
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
    MPI_T_pvar_handle rdma_barriers = counter_open("coll_barrier_rdma"),
                      fast_barriers = counter_open("coll_barrier_rdma_direct");
    mpitest_begin(&argc, &argv);
    unsigned random_seed = 7u + (unsigned)mpitest_rank;
    for (int i = 0; i < 4; i++)
        run_block(&random_seed, 3);
    const long before = (long)read_counter(rdma_barriers);
    run_block(&random_seed, 3);
    EXPECT_EQ((long)read_counter(rdma_barriers) - before, BLOCK + BLOCK / 3);
    const long fast_before = (long)read_counter(fast_barriers);
    run_block(&random_seed, 0);
    const long fast = (long)read_counter(fast_barriers) - fast_before;
    if (fast != 0 || count_processors() >= 2)
        EXPECT_EQ(fast, BLOCK);
    counters_end();
    return mpitest_end();
}

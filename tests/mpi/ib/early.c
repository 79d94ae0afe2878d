/* early.c: no rank leaves a barrier before all ranks have arrived, by the machine's clock, with random
 * delays, for every barrier algorithm between nodes. BARRIERS=1000000 in the environment selects the long
 * form, which takes some minutes (tests/mpi/README.md).
 *
 * ranks: 5
 * nodes: only 4
 * env: FISHPLATE_COLL=barrier=rdma
 * also: FISHPLATE_COLL=barrier=rdma:n=3
 * also: FISHPLATE_COLL=barrier=rdma_pairwise
 * also: FISHPLATE_COLL=barrier=rdma_counter
 * also: FISHPLATE_COLL=barrier=switch SOFTIB_FABRIC=switch_loss=0.05,seed=3
 * also: FISHPLATE_COLL=barrier=multicast SOFTIB_FABRIC=ud_loss=0.02,seed=3
 * also: FISHPLATE_COLL=barrier=node+nway:n=2
 * also: FISHPLATE_COLL=barrier=nway:n=2
 * also: FISHPLATE_COLL=barrier=wires SOFTIB_FABRIC=hub=1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "late.h"

enum { BLOCK = 100, SHORT = 300 };

static double arrival_times[BLOCK], departure_times[BLOCK];

/* Compares the time at which the last rank entered each barrier with the time at which this rank left it. */
static int run_block(unsigned *random_seed)
{
    for (int i = 0; i < BLOCK; i++) {
        delay_randomly(random_seed);
        arrival_times[i] = clock_seconds(CLOCK_MONOTONIC);
        MPI_Barrier(MPI_COMM_WORLD);
        departure_times[i] = clock_seconds(CLOCK_MONOTONIC);
    }
    return count_early_departures(arrival_times, departure_times, BLOCK, MPI_COMM_WORLD);
}

static const char *get_counter_name(const char *setting)
{
    static const char *const algorithms[][2] = {{"rdma_counter", "coll_barrier_counter"},
                                                {"rdma", "coll_barrier_rdma"},
                                                {"switch", "coll_barrier_switch"},
                                                {"multicast", "coll_barrier_multicast"},
                                                {"wires", "coll_barrier_wires"}};
    for (int i = 0; i < 5; i++)
        if (setting && strstr(setting, algorithms[i][0]))
            return algorithms[i][1];
    return NULL;
}

int main(int argc, char **argv)
{
    const char *text = getenv("BARRIERS"), *way = get_counter_name(getenv("FISHPLATE_COLL"));
    const long wanted = text ? atol(text) : SHORT;
    long done = 0;
    counters_begin();
    MPI_T_pvar_handle counted = way ? counter_open(way) : NULL;
    mpitest_begin(&argc, &argv);
    unsigned random_seed = 11u + 7u * (unsigned)mpitest_rank;
    for (; done < wanted && mpitest_failures == 0; done += BLOCK)
        EXPECT_EQ(run_block(&random_seed), 0);
    if (way)
        EXPECT((long)read_counter(counted) >= done - 2);
    if (text && mpitest_rank == 0)
        printf("%ld barriers, no rank left early\n", done);
    counters_end();
    return mpitest_end();
}

/* switch_groups.c: every communicator has its own barrier group in the switch; when all groups are in use,
 * further communicators use no group, and groups become free when communicators are freed.
 *
 * ranks: 2
 * nodes: only 2
 * env: FISHPLATE_COLL=barrier=switch FISHPLATE_VERBS=softib
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

enum { GROUPS = 128, MORE = 5 }; /* GROUPS: number of groups of softib's switch */

/* Runs two barriers, since the first barrier of a communicator uses messages. */
static void run_two_barriers(MPI_Comm comm)
{
    MPI_Barrier(comm);
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    static MPI_Comm comms[GROUPS + MORE];
    counters_begin();
    MPI_T_pvar_handle switched = counter_open("coll_barrier_switch"), full = counter_open("coll_switch_full"),
                      written = counter_open("coll_barrier_rdma");
    mpitest_begin(&argc, &argv);
    for (int i = 0; i < GROUPS + MORE; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        run_two_barriers(comms[i]);
    }
    EXPECT_EQ(read_counter(switched), GROUPS);
    EXPECT_EQ(read_counter(written), MORE);
    EXPECT_EQ(read_counter(full), mpitest_rank == 0 ? MORE : 0);
    for (int i = 0; i < GROUPS + MORE; i++)
        MPI_Barrier(comms[i]);
    for (int i = 0; i < GROUPS + MORE; i++)
        MPI_Comm_free(&comms[i]);
    run_two_barriers(MPI_COMM_WORLD); /* both ranks have freed the communicators when these barriers end */
    const unsigned long long before = read_counter(switched);
    for (int i = 0; i < MORE; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        run_two_barriers(comms[i]);
        MPI_Comm_free(&comms[i]);
    }
    EXPECT_EQ(read_counter(switched), before + MORE);
    counters_end();
    return mpitest_end();
}

/* switch_groups.c: every communicator has a barrier group of its own in the switch; when all are in use the next ones do without,
 * and groups come back when communicators are freed.
 *
 * ranks: 2
 * nodes: only 2
 * env: FISHPLATE_COLL=barrier=switch FISHPLATE_VERBS=softib
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

enum { GROUPS = 128, MORE = 5 }; /* as many as softib's switch has */

/* The first barrier of a communicator is done by messages. */
static void two_barriers(MPI_Comm comm)
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
        two_barriers(comms[i]);
    }
    EXPECT_EQ(counter(switched), GROUPS);
    EXPECT_EQ(counter(written), MORE);
    EXPECT_EQ(counter(full), mpitest_rank == 0 ? MORE : 0);
    for (int i = 0; i < GROUPS + MORE; i++)
        MPI_Barrier(comms[i]);
    for (int i = 0; i < GROUPS + MORE; i++)
        MPI_Comm_free(&comms[i]);
    two_barriers(MPI_COMM_WORLD); /* after which both ranks have left the groups */
    const unsigned long long before = counter(switched);
    for (int i = 0; i < MORE; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        two_barriers(comms[i]);
        MPI_Comm_free(&comms[i]);
    }
    EXPECT_EQ(counter(switched), before + MORE);
    counters_end();
    return mpitest_end();
}

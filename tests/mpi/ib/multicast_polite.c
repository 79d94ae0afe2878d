/* multicast_polite.c: packets of a multicast group arrive at a member that has not yet received the
 * announcements of all other members. The member sleeps until then: its processor time is a small part of
 * the waiting time. The link of rank 2 is slow; rank 0 learns of rank 3 through rank 2, so rank 0 is the
 * last to know all members, and rank 1 broadcasts before that.
 *
 * ranks: 4
 * nodes: only 4
 * env: FISHPLATE_COLL=bcast=multicast:max=4m FISHPLATE_SPIN_US=0 SOFTIB_FABRIC=node2:,latency=100ms
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"
#include "counters.h"

enum { GROUPS = 4, ROOT = 1 };

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD); /* opens all connections */
    double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID), wall = clock_seconds(CLOCK_MONOTONIC);
    for (int i = 1; i <= GROUPS; i++) {
        MPI_Comm group;
        int x = mpitest_rank == ROOT ? i : 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &group);
        MPI_Bcast(&x, 1, MPI_INT, ROOT, group);
        EXPECT_EQ(x, i);
        MPI_Comm_free(&group);
    }
    cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = clock_seconds(CLOCK_MONOTONIC) - wall;
    EXPECT_EQ(read_counter(done), GROUPS);
    /* The root sleeps repeatedly until all members have acknowledged; a member that does not sleep uses
     * twice as much processor time. */
    if (mpitest_rank == 0 && cpu >= 0.08 * wall)
        printf("rank 0 used %.3f s of processor time in %.3f s\n", cpu, wall);
    EXPECT(mpitest_rank != 0 || cpu < 0.08 * wall);
    counters_end();
    return mpitest_end();
}

/* multicast_jobs.c: two jobs on the same nodes broadcast by multicast at the same time: each group belongs
 * to one job, and its members accept no packet of the other job.
 *
 * ranks: 3
 * nodes: only 3
 * env: FISHPLATE_COLL=bcast=multicast
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

enum { CALLS = 60, LENGTH = 100 };

static void test_broadcasts(int job)
{
    int data[LENGTH], wrong = 0;
    for (int call = 0; call < CALLS; call++) {
        const int root = call % mpitest_size, first = job * 1000000 + call * 1000;
        for (int i = 0; i < LENGTH; i++)
            data[i] = mpitest_rank == root ? first + i : -1;
        MPI_Bcast(data, LENGTH, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < LENGTH; i++)
            wrong += data[i] != first + i;
    }
    EXPECT_EQ(wrong, 0);
}

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    MPI_Comm other;
    MPI_Comm_get_parent(&other);
    const int job = other == MPI_COMM_NULL ? 1 : 2;
    if (job == 1)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, mpitest_size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                       MPI_ERRCODES_IGNORE);
    MPI_Bcast(&(int){0}, 1, MPI_INT, 0, MPI_COMM_WORLD); /* opens the multicast group */
    MPI_Barrier(other);
    test_broadcasts(job);
    MPI_Barrier(other); /* no rank closes its group while the other job broadcasts */
    EXPECT_EQ(read_counter(done) > CALLS, 1);
    MPI_Comm_disconnect(&other);
    counters_end();
    return mpitest_end();
}

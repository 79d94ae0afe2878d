/* rdma_barrier.c: in barriers by RDMA writes no rank leaves early, back to back and with random delays;
 * all but the first barrier of a communicator are counted; many communicators are created and freed,
 * overlap, and some have ranks on one node.
 *
 * ranks: 5 2
 * nodes: only 5
 * env: FISHPLATE_COLL=barrier=rdma
 * also: FISHPLATE_COLL=barrier=rdma:n=2
 * also: FISHPLATE_COLL=barrier=rdma_pairwise
 * also: FISHPLATE_COLL=barrier=rdma FISHPLATE_IB_RECEIVE=shared
 * also: FISHPLATE_COLL=barrier=rdma:n=3 FISHPLATE_IB_MAX_CONNECTIONS=2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "late.h"
#include "mpitest.h"

enum { ROUNDS = 600, COMMS = 40 };

static double arrival_times[ROUNDS], departure_times[ROUNDS];

/* Runs more than 256 consecutive barriers, so that the numbers in the flags wrap around. */
static void test_nobody_is_early(MPI_Comm comm)
{
    unsigned random_seed = 77u + (unsigned)mpitest_rank;
    for (int i = 0; i < ROUNDS; i++) {
        delay_randomly(&random_seed);
        arrival_times[i] = clock_seconds(CLOCK_MONOTONIC);
        MPI_Barrier(comm);
        departure_times[i] = clock_seconds(CLOCK_MONOTONIC);
    }
    EXPECT_EQ(count_early_departures(arrival_times, departure_times, ROUNDS, comm), 0);
}

int main(int argc, char **argv)
{
    int provided, index, count, size = 0;
    unsigned long long value = 0, expected;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_Comm comm;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    EXPECT_EQ(MPI_T_pvar_get_index("coll_barrier_rdma", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_start(session, handle);
    mpitest_begin(&argc, &argv);

    test_nobody_is_early(MPI_COMM_WORLD);
    MPI_T_pvar_read(session, handle, &value);
    expected = ROUNDS - 1;
    EXPECT_EQ(value, expected);

    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? mpitest_rank % 2 : 0, i % 3 ? mpitest_rank : -mpitest_rank,
                       &comm);
        MPI_Comm_size(comm, &size);
        for (int k = 0; k < 3; k++)
            MPI_Barrier(comm);
        MPI_Comm_free(&comm);
        expected += size > 1 ? 2 : 0;
    }
    MPI_T_pvar_read(session, handle, &value);
    EXPECT_EQ(value, expected);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return mpitest_end();
}

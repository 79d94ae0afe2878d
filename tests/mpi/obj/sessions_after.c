/* sessions_after.c: sessions before MPI_Init, and sessions that begin after MPI_Finalize, when no MPI
 * object is open.
 *
 * ranks: 2 1 3 4 5 8
 * also: FISHPLATE_PROGRESS=thread
 * nodes: no (after MPI_Finalize a process reconnects only to processes of its own node)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void expect_sum(MPI_Comm c)
{
    int rank, size, sum = -1;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c);
    EXPECT_EQ(sum, size * (size - 1) / 2);
}

/* Passes a message around the ring that is too large for its send to complete at once. */
static void pass_around_ring(MPI_Comm c)
{
    enum { N = 100000 };
    static int out[N], in[N];
    int rank, size, wrong = 0;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    for (int i = 0; i < N; i++)
        out[i] = rank + i;
    MPI_Sendrecv(out, N, MPI_INT, (rank + 1) % size, 0, in, N, MPI_INT, (rank + size - 1) % size, 0, c,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++)
        wrong += in[i] != (rank + size - 1) % size + i;
    EXPECT_EQ(wrong, 0);
}

static void run_session(const char *tag)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    expect_sum(comm);
    pass_around_ring(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    int flag = 0;
    run_session("before");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    expect_sum(MPI_COMM_WORLD);
    MPI_Finalize();
    MPI_Finalized(&flag);
    EXPECT(flag);
    for (int i = 0; i < 3; i++)
        run_session("after");
    return mpitest_failures != 0;
}

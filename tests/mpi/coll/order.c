/* order.c: blocking, nonblocking and persistent collectives of one communicator in a different order at each
 * rank. MPI 5.0, 6.12, requires one order, but programs that run with other libraries violate it, and since
 * each of the three forms has separate messages all data is correct.
 *     ranks: 2 5
 *     nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { ROUNDS = 120, LENGTH = 3000 };

static int blocking[LENGTH], nonblocking[LENGTH], persistent[LENGTH];

static void fill_input(int *at, int value)
{
    for (int i = 0; i < LENGTH; i++)
        at[i] = value + i;
}

static void expect_vector(const int *at, int value)
{
    for (int i = 0; i < LENGTH; i++)
        if (at[i] != value + i) {
            EXPECT_EQ(at[i], value + i);
            return;
        }
}

/* Executes the blocking call, or starts one of the other two calls, of a round. */
static void start_call(int which, int round, MPI_Request *request)
{
    int one = mpitest_rank + round;
    int sum = 0, root = round % mpitest_size;
    if (which == 0 && round % 3 == 0)
        MPI_Bcast(blocking, LENGTH, MPI_INT, root, MPI_COMM_WORLD);
    else if (which == 0 && round % 3 == 1)
        MPI_Barrier(MPI_COMM_WORLD);
    else if (which == 0) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EXPECT_EQ(sum, mpitest_size * round + mpitest_size * (mpitest_size - 1) / 2);
    } else if (which == 1 && round % 4 == 3)
        MPI_Ibarrier(MPI_COMM_WORLD, &request[0]);
    else if (which == 1)
        MPI_Ibcast(nonblocking, LENGTH, MPI_INT, root, MPI_COMM_WORLD, &request[0]);
    else
        MPI_Start(&request[1]);
}

int main(int argc, char **argv)
{
    static const int orders[6][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}};
    MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    mpitest_begin(&argc, &argv);
    MPI_Bcast_init(persistent, LENGTH, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request[1]);
    for (int round = 0; round < ROUNDS; round++) {
        const int *order = orders[(mpitest_rank + round) % 6], root = round % mpitest_size;
        fill_input(blocking, mpitest_rank == root ? round : -1);
        fill_input(nonblocking, mpitest_rank == root ? 2 * round : -1);
        fill_input(persistent, mpitest_rank == 0 ? 3 * round : -1);
        for (int i = 0; i < 3; i++)
            start_call(order[i], round, request);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        if (round % 3 == 0)
            expect_vector(blocking, round);
        if (round % 4 != 3)
            expect_vector(nonblocking, 2 * round);
        expect_vector(persistent, 3 * round);
    }
    MPI_Request_free(&request[1]);
    return mpitest_end();
}

/* persistent.c: persistent collectives, created in the same order at all ranks and started repeatedly in
 * different orders with new data; the communicator is freed before the requests.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#define N 33

int main(int argc, char **argv)
{
    enum { BARRIER, BCAST, ALLREDUCE, ALLTOALL, SCAN, COUNT };
    static int bdata[N], x[N], sum[N], out[64], in[64], prefix[N];
    MPI_Request r[COUNT];
    MPI_Comm comm;
    mpitest_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int n = mpitest_size, me = mpitest_rank, root = n - 1;
    MPI_Barrier_init(comm, MPI_INFO_NULL, &r[BARRIER]);
    MPI_Bcast_init(bdata, N, MPI_INT, root, comm, MPI_INFO_NULL, &r[BCAST]);
    MPI_Allreduce_init(x, sum, N, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[ALLREDUCE]);
    MPI_Alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, comm, MPI_INFO_NULL, &r[ALLTOALL]);
    MPI_Scan_init(x, prefix, N, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[SCAN]);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) {
            bdata[i] = me == root ? round * 7 + i : -1;
            x[i] = me + round + i;
            sum[i] = prefix[i] = -1;
        }
        for (int i = 0; i < n; i++)
            out[i] = me * 100 + i + round;
        if (round % 2)
            MPI_Startall(COUNT, r);
        else
            for (int i = 0; i < COUNT; i++)
                MPI_Start(&r[(i + me) % COUNT]);
        MPI_Waitall(COUNT, r, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++) {
            EXPECT_EQ(bdata[i], round * 7 + i);
            EXPECT_EQ(sum[i], n * (n - 1) / 2 + n * (round + i));
            EXPECT_EQ(prefix[i], me * (me + 1) / 2 + (me + 1) * (round + i));
        }
        for (int i = 0; i < n; i++)
            EXPECT_EQ(in[i], i * 100 + me + round);
    }
    MPI_Comm_free(&comm);
    for (int i = 0; i < COUNT; i++)
        MPI_Request_free(&r[i]);
    return mpitest_end();
}

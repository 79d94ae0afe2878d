/* inter.c: collectives on an intercommunicator, blocking and nonblocking, from both sides and every root.
 *
 * ranks: 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static MPI_Comm inter;
static int side, rank, mine, others; /* own group, own rank in it, sizes of the own and the other group */

/* Element i of the data that process (side, rank) has for rank `to` of the other group. */
static int element_value(int from_side, int from, int to, int i)
{
    return from_side * 500000 + from * 1000 + to * 50 + i;
}

static int *make_block(int n)
{
    int *p = malloc(((size_t)n + 1) * sizeof(int));
    for (int i = 0; i <= n; i++)
        p[i] = -1;
    return p;
}

/* Returns the `root` argument that this rank passes if the root is rank `root` of side `root_side`. */
static int get_root_argument(int root_side, int root)
{
    if (side != root_side)
        return root;
    return rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void test_bcast(int root_side, int root, int n)
{
    int *data = make_block(n);
    if (side == root_side && rank == root)
        for (int i = 0; i < n; i++)
            data[i] = element_value(side, rank, 0, i);
    MPI_Bcast(data, n, MPI_INT, get_root_argument(root_side, root), inter);
    if (side != root_side)
        for (int i = 0; i < n; i++)
            EXPECT_EQ(data[i], element_value(root_side, root, 0, i));
    else if (rank != root && n > 0)
        EXPECT_EQ(data[0], -1);
    free(data);
}

static void test_gather_scatter(int root_side, int root, int n)
{
    const int is_root = side == root_side && rank == root, leaf = side != root_side;
    int *many = make_block(n * others), *one = make_block(n), *counts = make_block(others),
        *displs = make_block(others);
    for (int r = 0; r < others; r++) {
        counts[r] = n;
        displs[r] = (others - 1 - r) * n;
    }
    for (int i = 0; i < n; i++)
        one[i] = element_value(side, rank, root, i);
    for (int v = 0; v < 2; v++) {
        if (v == 0)
            MPI_Gather(one, n, MPI_INT, many, n, MPI_INT, get_root_argument(root_side, root), inter);
        else
            MPI_Gatherv(one, n, MPI_INT, many, counts, displs, MPI_INT, get_root_argument(root_side, root),
                        inter);
        for (int r = 0; is_root && r < others; r++)
            for (int i = 0; i < n; i++)
                EXPECT_EQ(many[(v ? displs[r] : r * n) + i], element_value(!side, r, root, i));
    }
    for (int v = 0; v < 2; v++) {
        for (int r = 0; is_root && r < others; r++)
            for (int i = 0; i < n; i++)
                many[(v ? displs[r] : r * n) + i] = element_value(side, rank, r, i);
        for (int i = 0; i < n; i++)
            one[i] = -1;
        if (v == 0)
            MPI_Scatter(many, n, MPI_INT, one, n, MPI_INT, get_root_argument(root_side, root), inter);
        else
            MPI_Scatterv(many, counts, displs, MPI_INT, one, n, MPI_INT, get_root_argument(root_side, root),
                         inter);
        for (int i = 0; leaf && i < n; i++)
            EXPECT_EQ(one[i], element_value(root_side, root, rank, i));
    }
    free(many);
    free(one);
    free(counts);
    free(displs);
}

static void test_rootless(int n)
{
    int *send = make_block(n * others), *recv = make_block(n * others), *counts = make_block(others),
        *displs = make_block(others);
    MPI_Datatype types[64];
    int bytes[64];
    for (int r = 0; r < others; r++) {
        counts[r] = n;
        displs[r] = (others - 1 - r) * n;
        bytes[r] = displs[r] * (int)sizeof(int);
        types[r] = MPI_INT;
        for (int i = 0; i < n; i++)
            send[r * n + i] = element_value(side, rank, r, i);
    }
    MPI_Alltoall(send, n, MPI_INT, recv, n, MPI_INT, inter);
    for (int r = 0; r < others; r++)
        for (int i = 0; i < n; i++)
            EXPECT_EQ(recv[r * n + i], element_value(!side, r, rank, i));
    for (int r = 0; r < others; r++)
        for (int i = 0; i < n; i++)
            send[displs[r] + i] = element_value(side, rank, r, i);
    for (int w = 0; w < 2; w++) {
        memset(recv, 0, (size_t)(n * others) * sizeof(int));
        if (w == 0)
            MPI_Alltoallv(send, counts, displs, MPI_INT, recv, counts, displs, MPI_INT, inter);
        else
            MPI_Alltoallw(send, counts, bytes, types, recv, counts, bytes, types, inter);
        for (int r = 0; r < others; r++)
            for (int i = 0; i < n; i++)
                EXPECT_EQ(recv[displs[r] + i], element_value(!side, r, rank, i));
    }
    for (int i = 0; i < n; i++)
        send[i] = element_value(side, rank, 0, i);
    for (int v = 0; v < 2; v++) {
        memset(recv, 0, (size_t)(n * others) * sizeof(int));
        if (v == 0)
            MPI_Allgather(send, n, MPI_INT, recv, n, MPI_INT, inter);
        else
            MPI_Allgatherv(send, n, MPI_INT, recv, counts, displs, MPI_INT, inter);
        for (int r = 0; r < others; r++)
            for (int i = 0; i < n; i++)
                EXPECT_EQ(recv[(v ? displs[r] : r * n) + i], element_value(!side, r, 0, i));
    }
    free(send);
    free(recv);
    free(counts);
    free(displs);
}

static int expected_sum(int from_side, int ranks, int i)
{
    int s = 0;
    for (int r = 0; r < ranks; r++)
        s += element_value(from_side, r, 0, i);
    return s;
}

static void test_reduce(int root_side, int root, int n)
{
    int *send = make_block(n), *recv = make_block(n);
    for (int i = 0; i < n; i++)
        send[i] = element_value(side, rank, 0, i);
    MPI_Reduce(send, recv, n, MPI_INT, MPI_SUM, get_root_argument(root_side, root), inter);
    for (int i = 0; side == root_side && rank == root && i < n; i++)
        EXPECT_EQ(recv[i], expected_sum(!side, others, i));
    MPI_Allreduce(send, recv, n, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < n; i++)
        EXPECT_EQ(recv[i], expected_sum(!side, others, i));
    free(send);
    free(recv);
}

static void test_reduce_scatter(int n)
{
    /* Both groups distribute the same number of elements over their ranks. */
    const int total = n * mine * others;
    int *send = make_block(total), *recv = make_block(total), *counts = make_block(mine);
    for (int i = 0; i < total; i++)
        send[i] = element_value(side, rank, 0, i);
    MPI_Reduce_scatter_block(send, recv, n * others, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < n * others; i++)
        EXPECT_EQ(recv[i], expected_sum(!side, others, rank * n * others + i));
    for (int r = 0; r < mine; r++)
        counts[r] = r == 0 ? total : 0;
    MPI_Reduce_scatter(send, recv, counts, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < counts[rank]; i++)
        EXPECT_EQ(recv[i], expected_sum(!side, others, i));
    free(send);
    free(recv);
    free(counts);
}

static void test_nonblocking(void)
{
    MPI_Request requests[3];
    int data = side == 0 && rank == 0 ? 77 : 0, give = rank + 1, got = 0;
    MPI_Ibarrier(inter, &requests[0]);
    MPI_Ibcast(&data, 1, MPI_INT, get_root_argument(0, 0), inter, &requests[1]);
    MPI_Iallreduce(&give, &got, 1, MPI_INT, MPI_SUM, inter, &requests[2]);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(got, others * (others + 1) / 2);
    if (side == 1)
        EXPECT_EQ(data, 77);
}

int main(int argc, char **argv)
{
    MPI_Comm local;
    mpitest_begin(&argc, &argv);
    const int split = mpitest_size > 3 ? mpitest_size / 3 : 1;
    side = mpitest_rank >= split;
    MPI_Comm_split(MPI_COMM_WORLD, side, mpitest_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, side ? 0 : split, 5, &inter);
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &mine);
    MPI_Comm_remote_size(inter, &others);
    static const int counts[] = {0, 1, 7, 3000};
    for (int c = 0; c < 4; c++) {
        MPI_Barrier(inter);
        for (int s = 0; s < 2; s++)
            for (int root = 0; root < (s == side ? mine : others); root++) {
                test_bcast(s, root, counts[c]);
                test_gather_scatter(s, root, counts[c]);
                test_reduce(s, root, counts[c]);
            }
        test_rootless(counts[c]);
        test_reduce_scatter(counts[c] > 100 ? 100 : counts[c]);
    }
    test_nonblocking();
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    return mpitest_end();
}

/* errors.c: invalid arguments of collectives return the correct error class and leave the communicator
 * usable.
 *
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void expect_class(int rc, int wanted, const char *what)
{
    int class = -1;
    MPI_Error_class(rc, &class);
    if (class != wanted && mpitest_failures++ < 20)
        fprintf(stderr, "rank %d: %s: error class %d, expected %d\n", mpitest_rank, what, class, wanted);
}

int main(int argc, char **argv)
{
    int a[8] = {0}, b[8] = {0}, counts[2] = {1, -1}, sum = 0;
    double d[4] = {0}, e[4];
    MPI_Comm w = MPI_COMM_WORLD;
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(w, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    expect_class(MPI_Bcast(a, 1, MPI_INT, 2, w), MPI_ERR_ROOT, "bcast from rank 2 of 2");
    expect_class(MPI_Bcast(a, 1, MPI_INT, -1, w), MPI_ERR_ROOT, "bcast from rank -1");
    expect_class(MPI_Bcast(a, -1, MPI_INT, 0, w), MPI_ERR_COUNT, "bcast of -1");
    expect_class(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, w), MPI_ERR_BUFFER, "bcast in place");
    expect_class(MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, w), MPI_ERR_TYPE, "bcast of no type");
    expect_class(MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, w), MPI_ERR_BUFFER, "allreduce onto itself");
    expect_class(MPI_Allreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, w), MPI_ERR_BUFFER,
                 "allreduce into in place");
    expect_class(MPI_Allreduce(d, e, 1, MPI_DOUBLE, MPI_BAND, w), MPI_ERR_OP, "bitwise and of doubles");
    expect_class(MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, w), MPI_ERR_OP, "allreduce with no operator");
    expect_class(MPI_Reduce(a, a, 1, MPI_INT, MPI_SUM, mpitest_rank, MPI_COMM_SELF),
                 mpitest_rank ? MPI_ERR_ROOT : MPI_ERR_BUFFER, "reduce onto itself");
    expect_class(MPI_Allgather(a, 1, MPI_INT, a, 1, MPI_INT, w), MPI_ERR_BUFFER, "allgather onto itself");
    expect_class(MPI_Allgather(&b[mpitest_rank], 1, MPI_INT, b, 1, MPI_INT, w), MPI_ERR_BUFFER,
                 "allgather of a block of the result");
    expect_class(MPI_Allgather(&b[mpitest_rank], 0, MPI_INT, b, 0, MPI_INT, w), MPI_SUCCESS,
                 "allgather of nothing");
    expect_class(MPI_Alltoallv(a, counts, counts, MPI_INT, b, counts, counts, MPI_INT, w), MPI_ERR_COUNT,
                 "alltoallv of -1");
    int ones[2] = {1, 1}, low[2] = {0, 1}, high[2] = {2, 3}, low_at[2] = {0, sizeof(int)};
    MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
    expect_class(MPI_Alltoallv(a, ones, low, MPI_INT, a, ones, low, MPI_INT, w), MPI_ERR_BUFFER,
                 "alltoallv onto itself");
    expect_class(MPI_Alltoallv(a, ones, low, MPI_INT, a, ones, high, MPI_INT, w), MPI_SUCCESS,
                 "alltoallv between parts of a buffer");
    expect_class(MPI_Alltoallw(a, ones, low_at, ints, a, ones, low_at, ints, w), MPI_ERR_BUFFER,
                 "alltoallw onto itself");
    expect_class(MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, w), MPI_ERR_COUNT,
                 "reduce_scatter of -1");
    expect_class(MPI_Gather(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, mpitest_rank, MPI_COMM_SELF),
                 mpitest_rank ? MPI_ERR_ROOT : MPI_ERR_BUFFER, "gather into in place");
    if (mpitest_rank == 1)
        expect_class(MPI_Reduce(MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM, 0, w), MPI_ERR_BUFFER,
                     "in place at a leaf");
    expect_class(MPI_Neighbor_allgather(a, 1, MPI_INT, b, 1, MPI_INT, w), MPI_ERR_TOPOLOGY, "no neighbours");
    expect_class(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM, "barrier of nobody");

    int one = 1;
    EXPECT_EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, w), MPI_SUCCESS);
    EXPECT_EQ(sum, 2);
    return mpitest_end();
}

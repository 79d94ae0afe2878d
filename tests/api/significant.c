/* significant.c: arguments that are significant only at the root may have any value at other ranks, and
 * are checked at the root. Three ranks, on intra- and intercommunicators.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>

#include "expect.h"

/* Invalid values, passed where an argument is not significant. */
#define NO_COUNT (-99)
#define NO_TYPE  MPI_DATATYPE_NULL
#define NO_OP    MPI_OP_NULL

static int rank, size;

static void test_gather(MPI_Comm comm, int root)
{
    int mine = rank, all[8] = {0}, counts[8], displs[8];
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        displs[i] = i;
    }
    if (rank == root) {
        EXPECT_EQ(MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, root, comm), MPI_SUCCESS);
        EXPECT_EQ(all[size - 1], size - 1);
        EXPECT_EQ(MPI_Gatherv(&mine, 1, MPI_INT, all, counts, displs, MPI_INT, root, comm), MPI_SUCCESS);
        EXPECT_EQ(MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, NO_COUNT, NO_TYPE, root, comm), MPI_SUCCESS);
        EXPECT_EQ(MPI_Scatterv(all, counts, displs, MPI_INT, &mine, 1, MPI_INT, root, comm), MPI_SUCCESS);
    } else {
        EXPECT_EQ(MPI_Gather(&mine, 1, MPI_INT, NULL, NO_COUNT, NO_TYPE, root, comm), MPI_SUCCESS);
        EXPECT_EQ(MPI_Gatherv(&mine, 1, MPI_INT, NULL, NULL, NULL, NO_TYPE, root, comm), MPI_SUCCESS);
        EXPECT_EQ(MPI_Scatter(NULL, NO_COUNT, NO_TYPE, &mine, 1, MPI_INT, root, comm), MPI_SUCCESS);
        EXPECT_EQ(mine, rank);
        EXPECT_EQ(MPI_Scatterv(NULL, NULL, NULL, NO_TYPE, &mine, 1, MPI_INT, root, comm), MPI_SUCCESS);
    }
    EXPECT_EQ(mine, rank);
}

static void test_reduce(MPI_Comm comm, int root)
{
    int mine = 1, sum = 0;
    EXPECT_EQ(MPI_Reduce(&mine, rank == root ? &sum : NULL, 1, MPI_INT, MPI_SUM, root, comm), MPI_SUCCESS);
    EXPECT_EQ(sum, rank == root ? size : 0);
}

static void test_in_place(MPI_Comm comm)
{
    int all[8] = {0};
    all[rank] = rank;
    EXPECT_EQ(MPI_Allgather(MPI_IN_PLACE, NO_COUNT, NO_TYPE, all, 1, MPI_INT, comm), MPI_SUCCESS);
    EXPECT_EQ(all[size - 1], size - 1);
    EXPECT_EQ(MPI_Alltoall(MPI_IN_PLACE, NO_COUNT, NO_TYPE, all, 1, MPI_INT, comm), MPI_SUCCESS);
    EXPECT_EQ(all[0], rank);
}

/* Rank 0, the root, is alone on one side, all others are on the other side; then the reverse. */
static void test_inter(void)
{
    MPI_Comm side, inter;
    int value = -1, mine = rank, all[8] = {0}, others = size - 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank != 0, rank, &side);
    EXPECT_EQ(MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank ? 0 : 1, 7, &inter), MPI_SUCCESS);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    EXPECT_EQ(MPI_Bcast(&mine, 1, MPI_INT, size, inter), MPI_ERR_ROOT);
    if (rank == 0) {
        value = 5;
        EXPECT_EQ(MPI_Bcast(&value, 1, MPI_INT, MPI_ROOT, inter), MPI_SUCCESS);
        EXPECT_EQ(MPI_Gather(NULL, NO_COUNT, NO_TYPE, all, 1, MPI_INT, MPI_ROOT, inter), MPI_SUCCESS);
        EXPECT_EQ(all[others - 1], others);
        EXPECT_EQ(MPI_Bcast(&value, 1, MPI_INT, 0, inter), MPI_SUCCESS);
        EXPECT_EQ(value, 1);
    } else {
        EXPECT_EQ(MPI_Bcast(&value, 1, MPI_INT, 0, inter), MPI_SUCCESS);
        EXPECT_EQ(value, 5);
        EXPECT_EQ(MPI_Gather(&mine, 1, MPI_INT, NULL, NO_COUNT, NO_TYPE, 0, inter), MPI_SUCCESS);
        if (rank == 1)
            EXPECT_EQ(MPI_Bcast(&mine, 1, MPI_INT, MPI_ROOT, inter), MPI_SUCCESS);
        else
            EXPECT_EQ(MPI_Bcast(NULL, NO_COUNT, NO_TYPE, MPI_PROC_NULL, inter), MPI_SUCCESS);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&side);
}

/* Invalid significant arguments are detected; all ranks pass the same, so that no rank waits. */
static void test_errors(MPI_Comm comm)
{
    int mine = 0, all[8];
    EXPECT_EQ(MPI_Bcast(&mine, 1, MPI_INT, size, comm), MPI_ERR_ROOT);
    EXPECT_EQ(MPI_Reduce(&mine, all, 1, MPI_INT, NO_OP, 0, comm), MPI_ERR_OP);
    EXPECT_EQ(MPI_Gather(&mine, NO_COUNT, MPI_INT, all, 1, MPI_INT, 0, comm), MPI_ERR_COUNT);
    EXPECT_EQ(MPI_Scatter(all, 1, MPI_INT, &mine, 1, NO_TYPE, 0, comm), MPI_ERR_TYPE);
    if (rank == 0)
        EXPECT_EQ(MPI_Gather(&mine, 1, MPI_INT, all, 1, NO_TYPE, 0, comm), MPI_ERR_TYPE);
    if (rank != 0)
        EXPECT_EQ(MPI_Gather(MPI_IN_PLACE, 1, NO_TYPE, all, 1, MPI_INT, 0, comm), MPI_ERR_TYPE);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int root = 0; root < size; root++) {
        test_gather(MPI_COMM_WORLD, root);
        test_reduce(MPI_COMM_WORLD, root);
    }
    test_in_place(MPI_COMM_WORLD);
    test_inter();
    test_errors(MPI_COMM_WORLD);
    MPI_Finalize();
    return expect_done();
}

/* types.c: partitions of data with gaps, and sides whose partition boundaries lie within elements of the
 * other side.
 * ranks: 2
 * also: FISHPLATE_LAB=PARTITION_TOGETHER=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

#define N 24

/* Rank 0 sends N integers by type `stype`; rank 1 receives them into every other element, in partitions of
 * three. */
static void test_data_with_gaps(int sparts, MPI_Datatype stype, int scount, int stride)
{
    int data[2 * N];
    MPI_Datatype three;
    MPI_Request r;
    MPI_Type_vector(3, 1, 2, MPI_INT, &three);
    MPI_Datatype spread;
    MPI_Type_create_resized(three, 0, 6 * sizeof(int), &spread);
    MPI_Type_commit(&spread);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2 * N; i++)
            data[i] = mpitest_rank == 0 ? (i % stride == 0 ? i / stride + round : -2) : -1;
        if (round == 0 && mpitest_rank == 0)
            MPI_Psend_init(data, sparts, scount, stype, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        if (round == 0 && mpitest_rank == 1)
            MPI_Precv_init(data, 4, N / 12, spread, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        for (int i = 0; mpitest_rank == 0 && i < sparts; i++)
            MPI_Pready((i + 1) % sparts, r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (int i = 0; mpitest_rank == 1 && i < 2 * N; i++)
            EXPECT_EQ(data[i], i % 2 ? -1 : i / 2 + round);
    }
    MPI_Request_free(&r);
    MPI_Type_free(&three);
    MPI_Type_free(&spread);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Datatype sparse;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &sparse);
    MPI_Type_commit(&sparse);
    test_data_with_gaps(N, MPI_INT, 1, 1);
    test_data_with_gaps(6, MPI_INT, 4, 1);
    test_data_with_gaps(8, MPI_INT, 3, 1);
    test_data_with_gaps(12, sparse, 2, 2);
    test_data_with_gaps(4, sparse, 6, 2);
    MPI_Type_free(&sparse);
    return mpitest_end();
}

/* errors.c: invalid arguments of partitioned calls, and sides whose sizes do not match.
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void test_arguments(void)
{
    int x[4], flag, list[2] = {1, 9};
    MPI_Request r = MPI_REQUEST_NULL, plain;
    int n = MPI_PROC_NULL;
    MPI_Comm c = MPI_COMM_WORLD;
    EXPECT_CLASS(MPI_Psend_init(x, -1, 1, MPI_INT, n, 0, c, MPI_INFO_NULL, &r), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_Psend_init(x, 1, -1, MPI_INT, n, 0, c, MPI_INFO_NULL, &r), MPI_ERR_COUNT);
    /* A program with an int count may leave any value in the upper half of the register. */
    const MPI_Count garbage = ((MPI_Count)0x7ffe1234 << 32) + 1, most = (MPI_Count)1 << 62;
    EXPECT_CLASS(MPI_Psend_init(x, 1, garbage, MPI_INT, n, 0, c, MPI_INFO_NULL, &r), MPI_ERR_COUNT);
    EXPECT_CLASS(MPI_Precv_init(x, 4, most, MPI_INT, n, 0, c, MPI_INFO_NULL, &r), MPI_ERR_COUNT);
    EXPECT_CLASS(MPI_Psend_init(x, 1, 1, MPI_INT, 99, 0, c, MPI_INFO_NULL, &r), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Precv_init(x, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, c, MPI_INFO_NULL, &r), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Precv_init(x, 1, 1, MPI_INT, 0, MPI_ANY_TAG, c, MPI_INFO_NULL, &r), MPI_ERR_TAG);
    MPI_Psend_init_c(x, 4, 1, MPI_INT, n, 0, c, MPI_INFO_NULL, &r);
    EXPECT_CLASS(MPI_Pready(0, r), MPI_ERR_REQUEST);
    MPI_Start(&r);
    EXPECT_CLASS(MPI_Start(&r), MPI_ERR_REQUEST);
    EXPECT_CLASS(MPI_Pready(4, r), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_Pready(-1, r), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_Pready_range(2, 1, r), MPI_ERR_ARG);
    EXPECT_EQ(MPI_Pready(0, r), MPI_SUCCESS);
    EXPECT_CLASS(MPI_Pready(0, r), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_Pready_list(2, list, r), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_Parrived(r, 0, &flag), MPI_ERR_REQUEST);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Request_free(&r);
    EXPECT_CLASS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    MPI_Send_init(x, 1, MPI_INT, n, 0, c, &plain);
    EXPECT_CLASS(MPI_Pready(0, plain), MPI_ERR_REQUEST);
    MPI_Request_free(&plain);
    flag = 0;
    EXPECT_EQ(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag), MPI_SUCCESS);
    EXPECT_EQ(flag, 1);
}

static void test_size_mismatch(int sent, int room, int expected)
{
    int x[8] = {0};
    MPI_Request r;
    if (mpitest_rank == 0) {
        MPI_Psend_init(x, sent, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        MPI_Pready_range(0, sent - 1, r);
    } else {
        MPI_Precv_init(x, room, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Start(&r);
    }
    EXPECT_CLASS(MPI_Wait(&r, MPI_STATUS_IGNORE), expected);
    MPI_Request_free(&r);
}

/* Two rounds of a message that is shorter than the receive and has partitions of another size. */
static void test_shorter_message(int sent, int room, int each)
{
    int out[16], in[2 * 16], count = -1, flag = 0;
    MPI_Datatype spread; /* a type with gaps; the message may end within an element */
    MPI_Request r;
    MPI_Status s;
    MPI_Type_vector(each, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    if (mpitest_rank == 0)
        MPI_Psend_init(out, sent, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    else
        MPI_Precv_init(in, room, 1, spread, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 16; i++)
            out[i] = 100 * round + i;
        memset(in, -1, sizeof(in));
        MPI_Start(&r);
        if (mpitest_rank == 0)
            MPI_Pready_range(0, sent - 1, r);
        EXPECT_EQ(MPI_Wait(&r, &s), MPI_SUCCESS);
        if (mpitest_rank == 0)
            continue;
        MPI_Get_count(&s, MPI_INT, &count);
        EXPECT_EQ(count, sent);
        MPI_Parrived(r, room - 1, &flag);
        EXPECT(flag);
        for (int i = 0; i < room * each; i++) {
            int at = i / each * (2 * each - 1) + i % each * 2;
            EXPECT_EQ(in[at], i < sent ? 100 * round + i : -1);
        }
    }
    MPI_Request_free(&r);
    MPI_Type_free(&spread);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_arguments();
    test_size_mismatch(4, 3, MPI_ERR_TRUNCATE);
    test_shorter_message(3, 4, 1);
    test_shorter_message(4, 2, 5);
    test_shorter_message(1, 7, 1);
    test_shorter_message(5, 3, 3);
    return mpitest_end();
}

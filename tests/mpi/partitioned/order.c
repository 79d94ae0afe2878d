/* order.c: partitioned requests match in the order of their initialisation, for any order of starts and
 * independently of ordinary messages with the same tag; MPI_PROC_NULL; freeing before completion; a
 * partition that arrives while another is not ready.
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

static void test_order_of_init(void)
{
    MPI_Request r[3];
    int data[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++) {
        data[i] = mpitest_rank == 0 ? 100 + i : -1;
        if (mpitest_rank == 0)
            MPI_Psend_init(&data[i], 1, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]);
        else
            MPI_Precv_init(&data[i], 1, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]);
    }
    for (int k = 2; k >= 0; k--) {
        int i = mpitest_rank == 0 ? k : 2 - k;
        MPI_Start(&r[i]);
        if (mpitest_rank == 0)
            MPI_Pready(0, r[i]);
    }
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(data[i], 100 + i);
        MPI_Request_free(&r[i]);
    }
}

static void test_ordinary_messages_do_not_match(void)
{
    int a = 11, b = 22, x = 0, y = 0, flag = 0;
    MPI_Request r;
    MPI_Status status;
    if (mpitest_rank == 0) {
        MPI_Psend_init(&a, 1, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        MPI_Pready(0, r);
        MPI_Send(&b, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQ(y, 22);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        EXPECT_EQ(flag, 0);
        MPI_Precv_init(&x, 1, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        EXPECT_EQ(x, 11);
    }
    MPI_Request_free(&r);
}

static void test_proc_null(void)
{
    int x[4] = {1, 2, 3, 4}, flag = 0, count;
    MPI_Request r;
    MPI_Status status;
    MPI_Psend_init(x, 4, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Pready_range(0, 3, r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Request_free(&r);
    MPI_Precv_init(x, 4, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    MPI_Start(&r);
    MPI_Parrived(r, 2, &flag);
    EXPECT_EQ(flag, 1);
    MPI_Wait(&r, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
    MPI_Request_free(&r);
    EXPECT_EQ(x[3], 4);
}

/* Freed requests that were never started match each other and do not affect later requests. */
static void test_freed_requests(void)
{
    static int y; /* static, since it is read after this function has returned */
    int x = 7;
    y = mpitest_rank == 0 ? 8 : 0;
    MPI_Request r, never;
    if (mpitest_rank == 0) {
        MPI_Psend_init(&x, 1, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &never);
        MPI_Psend_init(&y, 1, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    } else {
        MPI_Precv_init(&x, 1, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &never);
        MPI_Request_free(&never);
        MPI_Precv_init(&y, 1, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    }
    MPI_Start(&r);
    if (mpitest_rank == 0) {
        MPI_Pready(0, r);
        MPI_Request_free(&r); /* active: freed after its round has ended */
        MPI_Request_free(&never);
    } else {
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_Request_free(&r);
        EXPECT_EQ(y, 8);
        EXPECT_EQ(x, 7);
    }
}

/* The sender waits for a reply to its first partition before it marks the second one. */
static void test_partition_waits_for_reply(void)
{
    int data[2] = {5, 6}, flag = 0, go = 0;
    MPI_Request r;
    if (mpitest_rank == 0) {
        MPI_Psend_init(data, 2, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        MPI_Pready(1, r);
        MPI_Recv(&go, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Pready(0, r);
    } else {
        data[0] = data[1] = 0;
        MPI_Precv_init(data, 2, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        MPI_Start(&r);
        while (!flag)
            MPI_Parrived(r, 1, &flag);
        EXPECT_EQ(data[1], 6);
        MPI_Parrived(r, 0, &flag);
        EXPECT_EQ(flag, 0);
        MPI_Send(&go, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT_EQ(data[0], 5);
    if (mpitest_rank == 1) {
        MPI_Parrived(r, 0, &flag); /* the request is inactive */
        EXPECT_EQ(flag, 1);
    }
    MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_order_of_init();
    test_ordinary_messages_do_not_match();
    test_proc_null();
    test_freed_requests();
    test_partition_waits_for_reply();
    return mpitest_end();
}

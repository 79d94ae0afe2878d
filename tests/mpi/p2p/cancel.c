/* cancel.c: unmatched receives and sends can be cancelled, matched ones complete as usual; in both cases
 * the wait returns and reports whether the request was cancelled.
 *
 * ranks: 2
 * also: FISHPLATE_SHM_CMA=0 FISHPLATE_EAGER_MAX=64
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

enum { LARGE = 200000 };

static char buf[LARGE], other[LARGE];

static int wait_and_get_cancelled(MPI_Request *r)
{
    MPI_Status s;
    int flag = -1;
    MPI_Wait(r, &s);
    MPI_Test_cancelled(&s, &flag);
    return flag;
}

static void test_receives(void)
{
    MPI_Request r[3];
    int peer = 1 - mpitest_rank, in[3] = {0}, flag;
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, i == 1 ? MPI_ANY_SOURCE : peer, 5, MPI_COMM_WORLD, &r[i]);
    MPI_Cancel(&r[1]);
    MPI_Cancel(&r[1]); /* a second cancel has no effect */
    EXPECT_EQ(wait_and_get_cancelled(&r[1]), 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 1; i <= 2; i++)
        MPI_Send(&i, 1, MPI_INT, peer, 5, MPI_COMM_WORLD);
    for (flag = 0; !flag;)
        MPI_Test(&r[2], &flag, MPI_STATUS_IGNORE);
    MPI_Cancel(&r[0]); /* too late: the message has arrived */
    EXPECT_EQ(wait_and_get_cancelled(&r[0]), 0);
    EXPECT(in[0] == 1 && in[1] == 0 && in[2] == 2);
}

static void test_persistent_receive(void)
{
    MPI_Request r;
    int in = 0, out = 9, peer = 1 - mpitest_rank;
    MPI_Recv_init(&in, 1, MPI_INT, peer, 6, MPI_COMM_WORLD, &r);
    MPI_Start(&r);
    MPI_Cancel(&r);
    EXPECT_EQ(wait_and_get_cancelled(&r), 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&r); /* the request can be started again, and the cancel has no effect on the new round */
    MPI_Send(&out, 1, MPI_INT, peer, 6, MPI_COMM_WORLD);
    EXPECT_EQ(wait_and_get_cancelled(&r), 0);
    EXPECT_EQ(in, 9);
    MPI_Request_free(&r);
}

/* Rank 0 sends with `start`, cancels, and reports the result; rank 1 receives exactly the messages that
 * were not cancelled. */
typedef int start_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void test_unmatched_send(start_fn *start, int size)
{
    int flag = 0;
    if (mpitest_rank == 0) {
        MPI_Request r;
        start(buf, size, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &r);
        MPI_Cancel(&r);
        flag = wait_and_get_cancelled(&r);
        MPI_Send(&flag, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(&flag, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int there;
    MPI_Iprobe(0, 7, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    EXPECT_EQ(there, !flag);
    if (size == LARGE || start == MPI_Issend)
        EXPECT_EQ(flag, 1);
    if (!flag)
        MPI_Recv(other, size, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void test_matched_send(start_fn *start, int size)
{
    struct layout l = make_layout((size_t)size, 0);
    MPI_Request r;
    if (mpitest_rank == 0) {
        pattern_fill(buf, &l, 3);
        MPI_Barrier(MPI_COMM_WORLD);
        start(buf, size, MPI_BYTE, 1, 9, MPI_COMM_WORLD, &r);
        MPI_Cancel(&r);
        EXPECT_EQ(wait_and_get_cancelled(&r), 0);
    } else {
        memset(other, 0, sizeof(other));
        MPI_Irecv(other, size, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &r);
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT_EQ(wait_and_get_cancelled(&r), 0);
        EXPECT_EQ(pattern_count_wrong(other, &l, 3), 0);
    }
}

/* Cancels sends that are queued until the receiver has room. */
static void test_queued_sends(void)
{
    enum { N = 4000 };
    static MPI_Request r[N];
    int n = 0;
    if (mpitest_rank == 0) {
        for (int i = 0; i < N; i++)
            MPI_Isend(buf, 1000 + i % 2, MPI_BYTE, 1, 10, MPI_COMM_WORLD, &r[i]);
        for (int i = N; i-- > 0;)
            MPI_Cancel(&r[i]);
        for (int i = 0; i < N; i++)
            n += !wait_and_get_cancelled(&r[i]);
        MPI_Send(&n, 1, MPI_INT, 1, 11, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(&n, 1, MPI_INT, 0, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        MPI_Recv(other, 1001, MPI_BYTE, 0, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iprobe(0, 10, MPI_COMM_WORLD, &n, MPI_STATUS_IGNORE);
    EXPECT_EQ(n, 0);
}

/* Collectives, one-sided operations and partitioned messages cannot be cancelled: an error, also when they
 * are complete. */
static void test_not_cancellable(void)
{
    enum { KINDS = 5 };
    static int in[2], out[2];
    MPI_Request r[KINDS];
    MPI_Comm c, copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    /* Errors must call this handler; the handler of MPI_COMM_SELF stays fatal. */
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Ibarrier(c, &r[0]);
    MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, c, &r[1]);
    MPI_Comm_idup(c, &copy, &r[2]);
    MPI_Bcast_init(in, 1, MPI_INT, 0, c, MPI_INFO_NULL, &r[3]);
    MPI_Precv_init(in, 1, 1, MPI_INT, 1 - mpitest_rank, 0, c, MPI_INFO_NULL, &r[4]);
    for (int i = 0; i < KINDS; i++) {
        int errclass = MPI_SUCCESS;
        MPI_Error_class(MPI_Cancel(&r[i]), &errclass);
        EXPECT_EQ(errclass, MPI_ERR_REQUEST);
    }
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    MPI_Request_free(&r[3]);
    MPI_Request_free(&r[4]);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
    static start_fn *const starts[] = {MPI_Isend, MPI_Issend, MPI_Irsend};
    mpitest_begin(&argc, &argv);
    test_receives();
    test_persistent_receive();
    for (int i = 0; i < 3; i++) {
        if (i < 2) {
            test_unmatched_send(starts[i], 10);
            MPI_Barrier(MPI_COMM_WORLD); /* otherwise the probe could see the message of the next test */
            test_unmatched_send(starts[i], LARGE);
        }
        test_matched_send(starts[i], 10);
        test_matched_send(starts[i], LARGE);
    }
    test_queued_sends();
    test_not_cancellable();
    return mpitest_end();
}

/* complete.c: wait and test for one, any, some and all requests; null, inactive and freed requests;
 * contents of statuses and when MPI_ERROR is written; MPI_Request_get_status, which completes nothing.
 *
 * ranks: 2 1 3 4 5 8
 * also: FISHPLATE_SHM_CMA=0 FISHPLATE_EAGER_MAX=64
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpitest.h"

enum { N = 6, UNTOUCHED = -4711 };

static int peer, in[N], out[N];
static MPI_Request r[N];
static MPI_Status s[N];

static void preset_statuses(void)
{
    for (int i = 0; i < N; i++)
        s[i].MPI_ERROR = UNTOUCHED;
}

static void post_receives(void)
{
    for (int i = 0; i < N; i++) {
        in[i] = -1;
        out[i] = 100 + i;
        MPI_Irecv(&in[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &r[i]);
    }
    preset_statuses();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void send_all_messages(void)
{
    for (int i = 0; i < N; i++)
        MPI_Send(&out[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD);
}

static void expect_empty(const MPI_Status *status)
{
    int count = -1, flag = 1;
    EXPECT_EQ(status->MPI_SOURCE, MPI_ANY_SOURCE);
    EXPECT_EQ(status->MPI_TAG, MPI_ANY_TAG);
    EXPECT_EQ(status->MPI_ERROR, MPI_SUCCESS);
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Test_cancelled(status, &flag);
    EXPECT(count == 0 && flag == 0);
}

static void expect_received(int i, const MPI_Status *status)
{
    EXPECT_EQ(in[i], 100 + i);
    EXPECT_EQ(status->MPI_SOURCE, peer);
    EXPECT_EQ(status->MPI_TAG, i);
    EXPECT_EQ(status->MPI_ERROR, UNTOUCHED);
}

static void test_no_active_request(void)
{
    MPI_Request null = MPI_REQUEST_NULL, idle[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int flag = 0, index = 7, many = 7, indices[2];
    MPI_Recv_init(in, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &idle[1]);
    preset_statuses();
    MPI_Wait(&null, &s[0]);
    expect_empty(&s[0]);
    MPI_Wait(&idle[1], &s[1]);
    expect_empty(&s[1]);
    MPI_Test(&null, &flag, &s[2]);
    expect_empty(&s[2]);
    EXPECT_EQ(flag, 1);
    preset_statuses();
    MPI_Waitany(2, idle, &index, &s[0]);
    EXPECT_EQ(index, MPI_UNDEFINED);
    expect_empty(&s[0]);
    flag = 0;
    MPI_Testany(2, idle, &index, &flag, &s[1]);
    EXPECT(flag == 1 && index == MPI_UNDEFINED);
    expect_empty(&s[1]);
    MPI_Waitsome(2, idle, &many, indices, s);
    EXPECT_EQ(many, MPI_UNDEFINED);
    many = 7;
    MPI_Testsome(2, idle, &many, indices, s);
    EXPECT_EQ(many, MPI_UNDEFINED);
    preset_statuses();
    MPI_Waitall(2, idle, s);
    expect_empty(&s[0]);
    expect_empty(&s[1]);
    flag = 0;
    MPI_Testall(2, idle, &flag, MPI_STATUSES_IGNORE);
    EXPECT_EQ(flag, 1);
    MPI_Waitall(0, NULL, NULL);
    MPI_Request_get_status(null, &flag, &s[0]);
    EXPECT_EQ(flag, 1);
    MPI_Request_get_status(idle[1], &flag, &s[0]);
    EXPECT_EQ(flag, 1);
    expect_empty(&s[0]);
    MPI_Request_free(&idle[1]);
    EXPECT(idle[1] == MPI_REQUEST_NULL);
}

static void test_all(void)
{
    int flag = 1;
    post_receives();
    MPI_Testall(N, r, &flag, s);
    EXPECT_EQ(flag, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    send_all_messages();
    MPI_Waitall(N, r, s);
    for (int i = 0; i < N; i++)
        expect_received(i, &s[i]);
    post_receives();
    send_all_messages();
    for (flag = 0; !flag;)
        MPI_Testall(N, r, &flag, s);
    for (int i = 0; i < N; i++) {
        EXPECT(r[i] == MPI_REQUEST_NULL);
        expect_received(i, &s[i]);
    }
}

static void test_any(int test)
{
    int seen = 0, index, flag;
    post_receives();
    send_all_messages();
    for (int n = 0; n < N; n++) {
        preset_statuses();
        if (test)
            for (flag = 0; !flag;)
                MPI_Testany(N, r, &index, &flag, s);
        else
            MPI_Waitany(N, r, &index, s);
        EXPECT(index >= 0 && index < N && !(seen >> index & 1) && r[index] == MPI_REQUEST_NULL);
        seen |= 1 << index;
        expect_received(index, s);
    }
    EXPECT_EQ(seen, (1 << N) - 1);
}

static void test_some(int test)
{
    int seen = 0, left = N, many, indices[N];
    post_receives();
    send_all_messages();
    while (left > 0) {
        preset_statuses();
        if (test)
            MPI_Testsome(N, r, &many, indices, s);
        else
            MPI_Waitsome(N, r, &many, indices, s);
        EXPECT(many >= !test && many <= left);
        for (int i = 0; i < many; i++) {
            expect_received(indices[i], &s[i]);
            seen |= 1 << indices[i];
        }
        left -= many;
    }
    EXPECT_EQ(seen, (1 << N) - 1);
}

static void test_request_get_status(void)
{
    int flag = 1, index = 0, many = 7, indices[N];
    post_receives();
    MPI_Request_get_status(r[0], &flag, s);
    EXPECT_EQ(flag, 0);
    MPI_Request_get_status_any(N, r, &index, &flag, s);
    EXPECT(flag == 0 && index == MPI_UNDEFINED);
    MPI_Request_get_status_all(N, r, &flag, s);
    EXPECT_EQ(flag, 0);
    MPI_Request_get_status_some(N, r, &many, indices, s);
    EXPECT_EQ(many, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    send_all_messages();
    for (flag = 0; !flag;)
        MPI_Request_get_status_all(N, r, &flag, s);
    for (int i = 0; i < N; i++)
        EXPECT(r[i] != MPI_REQUEST_NULL && s[i].MPI_TAG == i && in[i] == 100 + i &&
               s[i].MPI_ERROR == UNTOUCHED);
    MPI_Request_get_status_any(N, r, &index, &flag, s);
    EXPECT(flag == 1 && index == 0);
    MPI_Request_get_status_some(N, r, &many, indices, s);
    EXPECT(many == N && indices[N - 1] == N - 1);
    MPI_Request_get_status(r[3], &flag, s);
    EXPECT(flag == 1 && s[0].MPI_TAG == 3);
    MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
}

/* If one of several requests fails, the call returns MPI_ERR_IN_STATUS and the statuses show which request
 * failed. */
static void test_failures(int which)
{
    int many = 0, indices[N], longer[2] = {1, 2}, rc;
    post_receives();
    for (int i = 0; i < N; i++)
        MPI_Send(i == 2 ? longer : &out[i], i == 2 ? 2 : 1, MPI_INT, peer, i, MPI_COMM_WORLD);
    for (int flag = 0; !flag;) {
        rc = MPI_Request_get_status_all(N, r, &flag, s);
        EXPECT_EQ(rc, flag ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
    }
    for (int i = 0; i < N; i++)
        EXPECT_EQ(s[i].MPI_ERROR, i == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    EXPECT_EQ(MPI_Request_get_status_some(N, r, &many, indices, s), MPI_ERR_IN_STATUS);
    EXPECT(many == N && s[2].MPI_ERROR == MPI_ERR_TRUNCATE && s[3].MPI_ERROR == MPI_SUCCESS);
    rc = which == 0 ? MPI_Waitall(N, r, s) : MPI_Waitsome(N, r, &many, indices, s);
    EXPECT_EQ(rc, MPI_ERR_IN_STATUS);
    for (int i = 0; i < N; i++)
        EXPECT_EQ(s[i].MPI_ERROR, i == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    post_receives();
    for (int i = 0; i < N; i++)
        MPI_Send(longer, 2, MPI_INT, peer, i, MPI_COMM_WORLD);
    EXPECT_EQ(MPI_Wait(&r[0], &s[0]), MPI_ERR_TRUNCATE);
    EXPECT_EQ(s[0].MPI_ERROR, UNTOUCHED);
    EXPECT_EQ(MPI_Waitany(N, r, indices, &s[0]), MPI_ERR_TRUNCATE);
    EXPECT_EQ(indices[0], 1);
    EXPECT_EQ(MPI_Waitall(N, r, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
}

/* Requests that are freed while in progress still complete. */
static void test_freed_requests(void)
{
    enum { LARGE = 50000 };
    static int big[LARGE], got[LARGE];
    MPI_Request send, recv;
    for (int i = 0; i < LARGE; i++)
        big[i] = i;
    MPI_Irecv(got, LARGE, MPI_INT, peer, 50, MPI_COMM_WORLD, &recv);
    MPI_Isend(big, LARGE, MPI_INT, peer, 50, MPI_COMM_WORLD, &send);
    MPI_Request_free(&send);
    EXPECT(send == MPI_REQUEST_NULL);
    MPI_Wait(&recv, MPI_STATUS_IGNORE);
    for (int i = 0; i < LARGE; i++)
        if (got[i] != i) {
            EXPECT_EQ(got[i], i);
            break;
        }
    got[0] = -1;
    MPI_Recv_init(got, 1, MPI_INT, peer, 51, MPI_COMM_WORLD, &recv);
    MPI_Start(&recv);
    MPI_Request_free(&recv); /* persistent and active */
    MPI_Send(&big[7], 1, MPI_INT, peer, 51, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Sendrecv(&big[8], 1, MPI_INT, peer, 52, &got[1], 1, MPI_INT, peer, 52, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    EXPECT_EQ(got[0], 7); /* sent before the message just received */
}

static void test_persistent_lists(void)
{
    MPI_Request sends[N];
    for (int i = 0; i < N; i++) {
        MPI_Recv_init(&in[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &r[i]);
        MPI_Send_init(&out[i], 1, MPI_INT, peer, i, MPI_COMM_WORLD, &sends[i]);
    }
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < N; i++)
            out[i] = 100 + i;
        memset(in, 0, sizeof(in));
        preset_statuses();
        MPI_Startall(N, r);
        MPI_Startall(N, sends);
        MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
        MPI_Waitall(N, r, s);
        for (int i = 0; i < N; i++)
            expect_received(i, &s[i]);
        EXPECT(r[0] != MPI_REQUEST_NULL);
    }
    for (int i = 0; i < N; i++) {
        MPI_Request_free(&r[i]);
        MPI_Request_free(&sends[i]);
    }
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    peer = mpitest_size - 1 - mpitest_rank;
    test_no_active_request();
    test_all();
    for (int test = 0; test < 2; test++) {
        test_any(test);
        test_some(test);
        test_failures(test);
    }
    test_request_get_status();
    test_persistent_lists();
    test_freed_requests();
    return mpitest_end();
}

/* grequest.c: generalized requests: the user's functions are called at the required moments, calls return
 * the functions' codes, and generalized requests can be completed together with ordinary ones.
 *
 * ranks: 1 2 3 4 5 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "mpitest.h"

struct state {
    int queried, freed, cancelled, was_complete;
    int query_code, free_code, cancel_code;
};

static int on_query(void *extra, MPI_Status *status)
{
    struct state *s = extra;
    s->queried++;
    status->MPI_SOURCE = 41;
    status->MPI_TAG = 42;
    MPI_Status_set_elements(status, MPI_INT, 43);
    MPI_Status_set_cancelled(status, s->cancelled && !s->was_complete);
    return s->query_code;
}

static int on_free(void *extra)
{
    struct state *s = extra;
    s->freed++;
    return s->free_code;
}

static int on_cancel(void *extra, int complete)
{
    struct state *s = extra;
    s->cancelled++;
    s->was_complete = complete;
    return s->cancel_code;
}

static void start_request(struct state *s, MPI_Request *r)
{
    *s = (struct state){0};
    MPI_Grequest_start(on_query, on_free, on_cancel, s, r);
}

static void test_usual_case(void)
{
    struct state s;
    MPI_Request r;
    MPI_Status status;
    int flag = 1, count = 0;
    start_request(&s, &r);
    MPI_Test(&r, &flag, &status);
    EXPECT(flag == 0 && s.queried == 0);
    MPI_Grequest_complete(r);
    MPI_Request_get_status(r, &flag, &status);
    EXPECT(flag == 1 && status.MPI_TAG == 42 && s.freed == 0);
    MPI_Wait(&r, &status);
    EXPECT(r == MPI_REQUEST_NULL && s.queried >= 1 && s.freed == 1);
    EXPECT(status.MPI_SOURCE == 41 && status.MPI_TAG == 42);
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, 43);
    start_request(&s, &r);
    MPI_Grequest_complete(r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(s.queried == 1 && s.freed == 1);
}

static void test_freed_before_completion(void)
{
    struct state s;
    MPI_Request r, copy;
    start_request(&s, &r);
    copy = r;
    MPI_Request_free(&r);
    EXPECT(r == MPI_REQUEST_NULL && s.freed == 0);
    MPI_Grequest_complete(copy);
    EXPECT_EQ(s.freed, 1);
}

static void test_cancelling(void)
{
    struct state s;
    MPI_Request r;
    MPI_Status status;
    int flag = 0;
    start_request(&s, &r);
    s.cancel_code = MPI_ERR_OTHER;
    EXPECT_EQ(MPI_Cancel(&r), MPI_ERR_OTHER);
    EXPECT(s.cancelled == 1 && s.was_complete == 0);
    MPI_Grequest_complete(r);
    MPI_Wait(&r, &status);
    MPI_Test_cancelled(&status, &flag);
    EXPECT_EQ(flag, 1);
    start_request(&s, &r);
    MPI_Grequest_complete(r);
    MPI_Cancel(&r); /* the callback is informed that the request was complete */
    EXPECT(s.cancelled == 1 && s.was_complete != 0);
    MPI_Wait(&r, &status);
    MPI_Test_cancelled(&status, &flag);
    EXPECT_EQ(flag, 0);
}

static void test_codes(void)
{
    struct state s[2];
    MPI_Request r[2];
    MPI_Status status[2];
    start_request(&s[0], &r[0]);
    s[0].query_code = MPI_ERR_ARG;
    MPI_Grequest_complete(r[0]);
    EXPECT_EQ(MPI_Wait(&r[0], MPI_STATUS_IGNORE), MPI_ERR_ARG);
    start_request(&s[0], &r[0]);
    start_request(&s[1], &r[1]);
    s[1].free_code = MPI_ERR_OTHER; /* the code of free_fn is returned */
    s[1].query_code = MPI_ERR_ARG;
    MPI_Grequest_complete(r[0]);
    MPI_Grequest_complete(r[1]);
    EXPECT_EQ(MPI_Waitall(2, r, status), MPI_ERR_IN_STATUS);
    EXPECT_EQ(status[0].MPI_ERROR, MPI_SUCCESS);
    EXPECT_EQ(status[1].MPI_ERROR, MPI_ERR_OTHER);
    EXPECT(s[0].freed == 1 && s[1].freed == 1);
}

/* Body of a thread that completes the request while the main thread waits. */
static void *complete_request(void *arg)
{
    MPI_Grequest_complete(*(MPI_Request *)arg);
    return NULL;
}

static void test_with_ordinary_requests(void)
{
    struct state s;
    MPI_Request r[2], copy;
    pthread_t thread;
    int x = 1, y = 0, index;
    MPI_Irecv(&y, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &r[0]);
    start_request(&s, &r[1]);
    copy = r[1];
    MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    EXPECT_EQ(index, 0);
    pthread_create(&thread, NULL, complete_request, &copy);
    MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    EXPECT_EQ(index, 1);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    EXPECT_EQ(provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_usual_case();
    test_freed_before_completion();
    test_cancelling();
    test_codes();
    test_with_ordinary_requests();
    return mpitest_end();
}

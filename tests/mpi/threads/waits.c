/* waits.c: threads that sleep for requests are woken by every source of completion: another thread's
 * progress, a message from another thread of the same rank, a cancel, or room for a queued send. A missed
 * wake-up makes the program hang.
 *
 * ranks: 2 1 3 4 5 8
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { ROUNDS = 300 };

/* Threads 0 and 1 exchange ping-pong messages within the rank; threads 2 and 3 do so with MPI_Waitany over
 * both requests. */
static void *exchange_within_rank(void *number)
{
    int me = (int)(long)number, other = me ^ 1, x = 0;
    long failures = 0;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request r[2];
        int index = -1, never = 0;
        if (me % 2 == 0)
            MPI_Send(&i, 1, MPI_INT, 0, other, MPI_COMM_SELF);
        if (me < 2) {
            MPI_Recv(&x, 1, MPI_INT, 0, me, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        } else {
            MPI_Irecv(&x, 1, MPI_INT, 0, me, MPI_COMM_SELF, &r[0]);
            MPI_Irecv(&never, 1, MPI_INT, 0, 100 + me, MPI_COMM_SELF, &r[1]);
            MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
            failures += WRONG(index != 0);
            MPI_Cancel(&r[1]);
            MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        }
        failures += WRONG(x != i);
        if (me % 2)
            MPI_Send(&i, 1, MPI_INT, 0, other, MPI_COMM_SELF);
    }
    return (void *)failures;
}

/* One thread waits for a request that another thread cancels. */
static MPI_Request waited;

static void *wait_for_request(void *number)
{
    MPI_Status s;
    int flag = 0;
    (void)number;
    MPI_Request r = waited;
    MPI_Wait(&r, &s);
    MPI_Test_cancelled(&s, &flag);
    return (void *)WRONG(!flag);
}

static void test_cancelled_by_another_thread(void)
{
    for (int i = 0; i < 50; i++) {
        pthread_t t;
        void *failures;
        int x;
        MPI_Irecv(&x, 1, MPI_INT, 0, 55, MPI_COMM_SELF, &waited);
        MPI_Request mine = waited;
        pthread_create(&t, NULL, wait_for_request, NULL);
        MPI_Cancel(&mine);
        pthread_join(t, &failures);
        EXPECT_EQ((long)failures, 0);
    }
}

/* A thread sleeps in a receive; the main thread queues more messages than there is room for and makes no
 * further MPI call until the answer has arrived. The sleeping thread must send the queued messages. */
static void *wait_for_answer(void *number)
{
    int x = 0;
    (void)number;
    MPI_Recv(&x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (void *)WRONG(x != 77);
}

static void test_sleeping_thread_sends_queue(void)
{
    enum { N = 400, WORDS = 1000 };
    static int words[WORDS];
    static MPI_Request r[N];
    if (mpitest_size < 2)
        return;
    if (mpitest_rank == 0) {
        pthread_t t;
        void *failures;
        pthread_create(&t, NULL, wait_for_answer, NULL);
        for (int i = 0; i < N; i++)
            MPI_Isend(words, WORDS, MPI_INT, 1, 8, MPI_COMM_WORLD, &r[i]);
        pthread_join(t, &failures);
        EXPECT_EQ((long)failures, 0);
        MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
    } else if (mpitest_rank == 1) {
        int answer = 77;
        for (int i = 0; i < N; i++)
            MPI_Recv(words, WORDS, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&answer, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    threadtest_begin(&argc, &argv);
    threadtest_run(exchange_within_rank);
    test_cancelled_by_another_thread();
    test_sleeping_thread_sends_queue();
    return mpitest_end();
}

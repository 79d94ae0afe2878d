/* token.c: many more threads than processors wait in blocking and polling calls while one thread holds a
 * token, which is passed around all threads of all ranks. Waiting threads must not prevent the thread with
 * the token from running.
 *
 * ranks: 1 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { THREADS_PER_RANK = 25, ROUNDS = 8 };
enum { RECEIVE, TEST, PROBE, CALLS };

static int call_kind;

/* Receives the token for thread `me` from the previous thread, which may be the last thread of the
 * previous rank. */
static int receive_token(int me)
{
    const int from = me > 0 ? mpitest_rank : (mpitest_rank + mpitest_size - 1) % mpitest_size;
    int token = -1, flag = 0;
    MPI_Request r;
    if (call_kind == TEST) {
        MPI_Irecv(&token, 1, MPI_INT, from, me, MPI_COMM_WORLD, &r);
        while (!flag)
            MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        return token;
    }
    while (call_kind == PROBE && !flag)
        MPI_Iprobe(from, me, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(&token, 1, MPI_INT, from, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return token;
}

static void *pass_token(void *number)
{
    const int me = (int)(long)number;
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const int place = (round * mpitest_size + mpitest_rank) * THREADS_PER_RANK + me;
        int token = place > 0 ? receive_token(me) : 0;
        wrong += WRONG(token != place);
        token++;
        const int next = me < THREADS_PER_RANK - 1 ? mpitest_rank : (mpitest_rank + 1) % mpitest_size;
        if (token < ROUNDS * mpitest_size * THREADS_PER_RANK)
            MPI_Send(&token, 1, MPI_INT, next, (me + 1) % THREADS_PER_RANK, MPI_COMM_WORLD);
    }
    return (void *)wrong;
}

int main(int argc, char **argv)
{
    threadtest_begin(&argc, &argv);
    for (call_kind = RECEIVE; call_kind < CALLS; call_kind++) {
        pthread_t threads[THREADS_PER_RANK];
        for (long i = 0; i < THREADS_PER_RANK; i++)
            pthread_create(&threads[i], NULL, pass_token, (void *)i);
        for (int i = 0; i < THREADS_PER_RANK; i++) {
            void *failures = NULL;
            pthread_join(threads[i], &failures);
            EXPECT_EQ((long)failures, 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return mpitest_end();
}

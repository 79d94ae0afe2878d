/* token.c: many more threads than processors wait in blocking and in polling calls while one of them has the token,
 * which goes round all threads of all ranks. Threads that wait must not keep the one with the token from running.
 *
 * ranks: 1 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { MANY = 25, ROUNDS = 8 };
enum { RECEIVE, TEST, PROBE, CALLS };

static int way;

/* The token for thread `me`, from the thread before, which may be the last one of the rank before. */
static int token_consume(int me)
{
    const int from = me > 0 ? mpitest_rank : (mpitest_rank + mpitest_size - 1) % mpitest_size;
    int token = -1, flag = 0;
    MPI_Request r;
    if (way == TEST) {
        MPI_Irecv(&token, 1, MPI_INT, from, me, MPI_COMM_WORLD, &r);
        while (!flag)
            MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
        return token;
    }
    while (way == PROBE && !flag)
        MPI_Iprobe(from, me, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(&token, 1, MPI_INT, from, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return token;
}

static void *pass_on(void *number)
{
    const int me = (int)(long)number;
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const int place = (round * mpitest_size + mpitest_rank) * MANY + me;
        int token = place > 0 ? token_consume(me) : 0;
        wrong += WRONG(token != place);
        token++;
        const int next = me < MANY - 1 ? mpitest_rank : (mpitest_rank + 1) % mpitest_size;
        if (token < ROUNDS * mpitest_size * MANY)
            MPI_Send(&token, 1, MPI_INT, next, (me + 1) % MANY, MPI_COMM_WORLD);
    }
    return (void *)wrong;
}

int main(int argc, char **argv)
{
    threadtest_begin(&argc, &argv);
    for (way = RECEIVE; way < CALLS; way++) {
        pthread_t threads[MANY];
        for (long i = 0; i < MANY; i++)
            pthread_create(&threads[i], NULL, pass_on, (void *)i);
        for (int i = 0; i < MANY; i++) {
            void *failures = NULL;
            pthread_join(threads[i], &failures);
            EXPECT_EQ((long)failures, 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return mpitest_end();
}

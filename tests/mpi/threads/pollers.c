/* pollers.c: threads that test and probe in loops let blocking threads get the lock; and many threads
 * send, each in its own order, to one thread that receives with wildcards.
 *
 * ranks: 2 1
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>

#include "threadtest.h"

enum { EACH = 300 };

static _Atomic int done;

/* Threads 0 and 1 poll until threads 2 and 3, which block, have received all messages. */
static void *poll_or_block(void *number)
{
    int me = (int)(long)number, peer = mpitest_size - 1 - mpitest_rank, flag, x = 0;
    long failures = 0;
    if (me < 2) {
        MPI_Request never;
        MPI_Irecv(&x, 1, MPI_INT, peer, 1000 + me, MPI_COMM_WORLD, &never);
        while (atomic_load(&done) < 2) {
            if (me == 0)
                MPI_Test(&never, &flag, MPI_STATUS_IGNORE);
            else
                MPI_Iprobe(MPI_ANY_SOURCE, 2000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            failures += WRONG(flag != 0);
        }
        MPI_Cancel(&never);
        MPI_Wait(&never, MPI_STATUS_IGNORE);
        return (void *)failures;
    }
    for (int i = 0; i < EACH; i++) {
        MPI_Send(&i, 1, MPI_INT, peer, me, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_INT, peer, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        failures += WRONG(x != i);
    }
    atomic_fetch_add(&done, 1);
    return (void *)failures;
}

static void *send_numbers(void *number)
{
    for (int i = 0; i < EACH; i++)
        MPI_Send(&i, 1, MPI_INT, 0, (int)(long)number, MPI_COMM_WORLD);
    return NULL;
}

static void *receive_numbers(void *arg)
{
    int next[2][THREADS] = {{0}};
    long failures = 0;
    (void)arg;
    for (int i = 0; i < EACH * THREADS * mpitest_size; i++) {
        MPI_Status s;
        int x = -1;
        MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
        failures += WRONG(x != next[s.MPI_SOURCE][s.MPI_TAG]++);
    }
    return (void *)failures;
}

int main(int argc, char **argv)
{
    pthread_t receiver;
    void *failures = NULL;
    threadtest_begin(&argc, &argv);
    threadtest_run(poll_or_block);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 0)
        pthread_create(&receiver, NULL, receive_numbers, NULL);
    threadtest_run(send_numbers);
    if (mpitest_rank == 0)
        pthread_join(receiver, &failures);
    EXPECT_EQ((long)failures, 0);
    return mpitest_end();
}

/* threads.c: several threads run blocking and nonblocking collectives at once, each on its own communicator.
 *
 * ranks: 1 2 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "mpitest.h"

#define THREADS 4
#define ROUNDS  200

struct thread_job {
    MPI_Comm comm;
    int number;
    long wrong;
};

static void *run_collectives(void *arg)
{
    struct thread_job *j = arg;
    int rank, size;
    MPI_Comm_rank(j->comm, &rank);
    MPI_Comm_size(j->comm, &size);
    for (int round = 0; round < ROUNDS; round++) {
        int x = rank + round + j->number, sum = -1, root = round % size, word = rank == root ? round : -1;
        int all[64], prefix = -1;
        MPI_Request r;
        MPI_Iscan(&x, &prefix, 1, MPI_INT, MPI_SUM, j->comm, &r);
        MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, j->comm);
        MPI_Bcast(&word, 1, MPI_INT, root, j->comm);
        if (round % 16 == 0)
            MPI_Barrier(j->comm);
        MPI_Allgather(&x, 1, MPI_INT, all, 1, MPI_INT, j->comm);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        j->wrong += sum != size * (size - 1) / 2 + size * (round + j->number);
        j->wrong += prefix != rank * (rank + 1) / 2 + (rank + 1) * (round + j->number);
        j->wrong += word != round;
        for (int i = 0; i < size; i++)
            j->wrong += all[i] != i + round + j->number;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpitest_size);
    if (level < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    struct thread_job jobs[THREADS] = {0};
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        jobs[t].number = t;
        MPI_Comm_dup(MPI_COMM_WORLD, &jobs[t].comm);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, run_collectives, &jobs[t]);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        EXPECT_EQ(jobs[t].wrong, 0);
    }
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&jobs[t].comm);
    return mpitest_end();
}

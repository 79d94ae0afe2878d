/* threadtest.h: starts an MPI program with MPI_THREAD_MULTIPLE and runs a function in several threads at
 * once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_MPI_THREADTEST_H
#define FP_MPI_THREADTEST_H

#include <pthread.h>

#include "mpitest.h"

enum { THREADS = 4 };

static inline void threadtest_begin(int *argc, char ***argv)
{
    int provided = -1;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpitest_size);
    EXPECT_EQ(provided, MPI_THREAD_MULTIPLE);
}

/* Runs the threads and adds the numbers of failures that they return, since the counter of mpitest.h is
 * not thread-safe. */
static inline void threadtest_run(void *(*body)(void *number))
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *failures = NULL;
        pthread_join(threads[i], &failures);
        EXPECT_EQ((long)failures, 0);
    }
}

/* Evaluates to 1, and prints the condition, if it does not hold; else to 0. For use in threads. */
#define WRONG(cond)                                                                                         \
    ((cond) ? (fprintf(stderr, "rank %d: %s:%d: in %s: unexpected: %s\n", mpitest_rank, __FILE__, __LINE__, \
                       __func__, #cond),                                                                    \
               1L)                                                                                          \
            : 0L)

#endif

/* threads_create.c: threads create communicators from different parents at the same time, in any order,
 * and from groups of one parent under different tags.
 *
 * ranks: 1 2 3 4 8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "mpitest.h"

enum { THREADS = 4, ROUNDS = 25 };

static MPI_Comm parents[THREADS];

static void expect_message_around_ring(MPI_Comm c, int tag)
{
    int size, rank, in = -1;
    MPI_Comm_size(c, &size);
    MPI_Comm_rank(c, &rank);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, tag, &in, 1, MPI_INT, (rank + size - 1) % size, tag, c,
                 MPI_STATUS_IGNORE);
    EXPECT_EQ(in, (rank + size - 1) % size);
}

static void *create_communicators(void *arg)
{
    int me = (int)(size_t)arg;
    MPI_Comm parent = parents[me], made, part, late;
    MPI_Request r;
    MPI_Group g;
    MPI_Comm_group(MPI_COMM_WORLD, &g);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm_idup(parent, &late, &r);
        MPI_Comm_dup(parent, &made);
        MPI_Comm_split(made, mpitest_rank % 2, 0, &part);
        expect_message_around_ring(made, 1);
        expect_message_around_ring(part, 1);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        expect_message_around_ring(late, 1);
        MPI_Comm_free(&late);
        MPI_Comm_free(&part);
        MPI_Comm_free(&made);
        /* All threads create from one parent; the tag distinguishes their calls. */
        MPI_Comm_create_group(MPI_COMM_WORLD, g, me, &made);
        expect_message_around_ring(made, 2);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&g);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpitest_size);
    EXPECT_EQ(provided, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, create_communicators, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&parents[i]);
    return mpitest_end();
}

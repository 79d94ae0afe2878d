/* threads.c: several threads mark partitions ready and query their arrival at the same time.
 * ranks: 2 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "mpitest.h"

#define THREADS               4
#define PARTITIONS_PER_THREAD 8
#define COUNT                 50
#define ROUNDS                10
#define TOTAL                 (THREADS * PARTITIONS_PER_THREAD * COUNT)

static int data[TOTAL];
static MPI_Request request;
static int round_now;

static void *mark_partitions_ready(void *arg)
{
    int t = (int)(long)arg;
    for (int p = t; p < THREADS * PARTITIONS_PER_THREAD; p += THREADS) {
        for (int i = 0; i < COUNT; i++)
            data[p * COUNT + i] = round_now + p * COUNT + i;
        MPI_Pready(p, request);
    }
    return NULL;
}

static void *wait_for_partitions(void *arg)
{
    int t = (int)(long)arg;
    for (int p = t * PARTITIONS_PER_THREAD; p < (t + 1) * PARTITIONS_PER_THREAD; p++) {
        int flag = 0;
        while (!flag)
            MPI_Parrived(request, p, &flag);
        for (int i = p * COUNT; i < (p + 1) * COUNT; i++)
            if (data[i] != round_now + i)
                return arg ? arg : (void *)1;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpitest_size);
    EXPECT_EQ(provided, MPI_THREAD_MULTIPLE);
    int other = mpitest_rank ^ 1, sends = mpitest_rank % 2 == 0;
    if (sends)
        MPI_Psend_init(data, THREADS * PARTITIONS_PER_THREAD, COUNT, MPI_INT, other, 0, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(data, THREADS * PARTITIONS_PER_THREAD, COUNT, MPI_INT, other, 0, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    for (round_now = 0; round_now < ROUNDS; round_now++) {
        pthread_t threads[THREADS];
        memset(data, 0xff, sizeof(data));
        MPI_Start(&request);
        for (long t = 0; t < THREADS; t++)
            pthread_create(&threads[t], NULL, sends ? mark_partitions_ready : wait_for_partitions, (void *)t);
        for (int t = 0; t < THREADS; t++) {
            void *wrong;
            pthread_join(threads[t], &wrong);
            EXPECT(wrong == NULL);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    return mpitest_end();
}

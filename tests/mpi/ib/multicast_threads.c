/* multicast_threads.c: several threads broadcast by multicast at once, each on two separate communicators,
 * with changing roots and sizes, blocking and nonblocking. Every byte is checked, and that multicast was
 * used.
 *
 * ranks: 4
 * nodes: only 4
 * env: FISHPLATE_COLL=bcast=multicast:max=4m
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:window=4:coroots=2:aggregate=10 FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 * also: SOFTIB_FABRIC=ud_drop=0.1,ud_dup=0.1,ud_reorder=0.1,seed=8
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "counters.h"

enum { THREADS = 4, ROUNDS = 60, LENGTH_MAX = 70000 };

static const int sizes[] = {1, 64, 2024, 4073, LENGTH_MAX};
#define SIZES ((int)(sizeof(sizes) / sizeof(*sizes)))

struct thread_job {
    MPI_Comm comm[2];
    int number;
    long wrong;
    unsigned char data[2][LENGTH_MAX];
};

static unsigned char data_byte(int number, int round, int i)
{
    return (unsigned char)(number * 41 + round * 7 + i * 3 + (i >> 8));
}

static void fill_message(struct thread_job *j, int which, int round, int root, int n)
{
    int rank;
    MPI_Comm_rank(j->comm[which], &rank);
    for (int i = 0; i < n; i++)
        j->data[which][i] = rank == root ? data_byte(j->number + which, round, i) : 0xee;
}

static void *run_broadcasts(void *arg)
{
    struct thread_job *j = arg;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request r;
        const int n[2] = {sizes[round % SIZES], sizes[(round + 2 + j->number) % SIZES]};
        const int root[2] = {round % mpitest_size, (round + j->number) % mpitest_size};
        for (int k = 0; k < 2; k++)
            fill_message(j, k, round, root[k], n[k]);
        MPI_Ibcast(j->data[0], n[0], MPI_BYTE, root[0], j->comm[0], &r);
        MPI_Bcast(j->data[1], n[1], MPI_BYTE, root[1], j->comm[1]);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < n[k]; i++)
                j->wrong += j->data[k][i] != data_byte(j->number + k, round, i);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static struct thread_job jobs[THREADS];
    pthread_t threads[THREADS];
    int level;
    counters_begin();
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpitest_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpitest_size);
    EXPECT_EQ(level, MPI_THREAD_MULTIPLE);
    for (int t = 0; t < THREADS; t++) {
        jobs[t].number = t;
        for (int k = 0; k < 2; k++)
            MPI_Comm_split(MPI_COMM_WORLD, 0, k ? -mpitest_rank : mpitest_rank, &jobs[t].comm[k]);
        /* Opens the multicast group, since MPI_Ibcast does not open one. */
        MPI_Bcast(jobs[t].data[0], 1, MPI_BYTE, 0, jobs[t].comm[0]);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, run_broadcasts, &jobs[t]);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        EXPECT_EQ(jobs[t].wrong, 0);
    }
    EXPECT_EQ(read_counter(done), THREADS * (2 * ROUNDS + 1));
    for (int t = 0; t < THREADS; t++)
        for (int k = 0; k < 2; k++)
            MPI_Comm_free(&jobs[t].comm[k]);
    counters_end();
    return mpitest_end();
}

/* thread.c: with FISHPLATE_PROGRESS=thread transfers complete while the program computes. The odd ranks
 * start large sends, receives and collectives and then stay outside MPI: they read a file that all ranks
 * have mapped until the even ranks, which wait inside MPI for these transfers, have written there that the
 * transfers are complete. Without the progress thread the program would hang.
 *
 * ranks: 2 1 3 4 5 8
 * env: FISHPLATE_PROGRESS=thread
 * also: FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "clock.h"
#include "shared_page.h"

enum { LEN = 3 << 20, ROUNDS = 5 };

static _Atomic int *done; /* by rank: number of rounds whose transfers are complete */

/* Computes outside MPI until that rank has reached the round. */
static void compute_until(int rank, int round)
{
    while (atomic_load(&done[rank]) < round)
        sched_yield();
}

static unsigned char pattern_byte(int from, int round, size_t i)
{
    return (unsigned char)(i * 7 + i / 4096 + (size_t)from * 31 + (size_t)round);
}

static void fill_message(unsigned char *buf, int round)
{
    for (size_t i = 0; i < LEN; i++)
        buf[i] = pattern_byte(mpitest_rank, round, i);
}

static void check_message(const unsigned char *buf, int from, int round)
{
    size_t wrong = 0;
    for (size_t i = 0; i < LEN; i++)
        wrong += buf[i] != pattern_byte(from, round, i);
    EXPECT_EQ(wrong, 0);
}

/* Exchanges in both directions; only the even rank waits in MPI. */
static void test_pairs(unsigned char *out, unsigned char *in, int round)
{
    MPI_Request r[2];
    int partner = mpitest_rank ^ 1;
    if (partner >= mpitest_size)
        return;
    fill_message(out, round);
    MPI_Irecv(in, LEN, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, LEN, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &r[1]);
    if (mpitest_rank % 2)
        compute_until(partner, round);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    atomic_store(&done[mpitest_rank], round);
    check_message(in, partner, round);
}

/* Runs a collective of several steps in which the odd ranks must forward data. */
static void test_collective(int *out, int *in, int round)
{
    enum { N = 1 << 14 };
    MPI_Request r;
    int wrong = 0;
    for (int i = 0; i < N; i++)
        out[i] = mpitest_rank + i + round;
    MPI_Iallreduce(out, in, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
    if (mpitest_rank % 2)
        compute_until(mpitest_rank - 1, ROUNDS + round);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    atomic_store(&done[mpitest_rank], ROUNDS + round);
    for (int i = 0; i < N; i++)
        wrong += in[i] != mpitest_size * (i + round) + mpitest_size * (mpitest_size - 1) / 2;
    EXPECT_EQ(wrong, 0);
}

/* Checks that the thread sleeps when only a receive is posted. */
static void test_idle(void)
{
    int x = 0, partner = mpitest_rank ^ 1;
    MPI_Request r = MPI_REQUEST_NULL;
    if (partner < mpitest_size)
        MPI_Irecv(&x, 1, MPI_INT, partner, 1, MPI_COMM_WORLD, &r);
    MPI_Barrier(MPI_COMM_WORLD);
    double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID), wall = clock_seconds(CLOCK_MONOTONIC);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = clock_seconds(CLOCK_MONOTONIC) - wall;
    EXPECT(cpu < 0.3 * wall);
    if (partner < mpitest_size)
        MPI_Send(&mpitest_rank, 1, MPI_INT, partner, 1, MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    EXPECT(partner >= mpitest_size || x == partner);
}

int main(int argc, char **argv)
{
    unsigned char *out = malloc(LEN), *in = malloc(LEN);
    int level;
    mpitest_begin(&argc, &argv);
    MPI_Query_thread(&level);
    /* MPI_Init provides the level that the program requested; the progress thread does not raise it. */
    EXPECT_EQ(level, MPI_THREAD_SINGLE);
    done = map_shared_page();
    for (int round = 1; round <= ROUNDS; round++)
        test_pairs(out, in, round);
    for (int round = 1; round <= ROUNDS; round++)
        test_collective((int *)out, (int *)in, round);
    test_idle();
    free(out);
    free(in);
    return mpitest_end();
}

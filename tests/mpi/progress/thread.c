/* thread.c: with FISHPLATE_PROGRESS=thread transfers end while the program computes. The odd ranks start
 * large sends, receives and collectives and then stay outside MPI: they watch a file that is mapped by all
 * ranks until the even ranks, which wait inside MPI for exactly these transfers, have written there that they
 * are done. Without the thread the program would wait for ever.
 *
 * ranks: 2 1 3 4 5 8
 * env: FISHPLATE_PROGRESS=thread
 * also: FISHPLATE_SHM_CMA=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mpitest.h"

enum { LEN = 3 << 20, ROUNDS = 5 };

static _Atomic int *done; /* by rank: how many rounds its waiting is over */

/* One page of memory that all ranks of the job see; it has no name that could stay behind. */
static void share_a_page(void)
{
    char path[64] = "";
    int fd = -1;
    if (mpitest_rank == 0) {
        fd = memfd_create("fishplate-test", MFD_CLOEXEC);
        EXPECT(fd >= 0);
        EXPECT_EQ(ftruncate(fd, 4096), 0);
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
    }
    MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (mpitest_rank != 0)
        fd = open(path, O_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (done == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    close(fd);
}

/* Computes outside MPI until that rank has reached the round. */
static void compute_until(int rank, int round)
{
    while (atomic_load(&done[rank]) < round)
        sched_yield();
}

static unsigned char thread_pattern(int from, int round, size_t i)
{
    return (unsigned char)(i * 7 + i / 4096 + (size_t)from * 31 + (size_t)round);
}

static void thread_fill(unsigned char *buf, int round)
{
    for (size_t i = 0; i < LEN; i++)
        buf[i] = thread_pattern(mpitest_rank, round, i);
}

static void thread_check(const unsigned char *buf, int from, int round)
{
    size_t wrong = 0;
    for (size_t i = 0; i < LEN; i++)
        wrong += buf[i] != thread_pattern(from, round, i);
    EXPECT_EQ(wrong, 0);
}

/* Exchanges in both directions; only the even rank waits in MPI. */
static void test_pairs(unsigned char *out, unsigned char *in, int round)
{
    MPI_Request r[2];
    int partner = mpitest_rank ^ 1;
    if (partner >= mpitest_size)
        return;
    thread_fill(out, round);
    MPI_Irecv(in, LEN, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, LEN, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &r[1]);
    if (mpitest_rank % 2)
        compute_until(partner, round);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    atomic_store(&done[mpitest_rank], round);
    thread_check(in, partner, round);
}

/* Runs a schedule of several steps in which the odd ranks have to pass on data. */
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

static double thread_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Checks that the thread sleeps when only a receive is posted. */
static void test_idle(void)
{
    int x = 0, partner = mpitest_rank ^ 1;
    MPI_Request r = MPI_REQUEST_NULL;
    if (partner < mpitest_size)
        MPI_Irecv(&x, 1, MPI_INT, partner, 1, MPI_COMM_WORLD, &r);
    MPI_Barrier(MPI_COMM_WORLD);
    double cpu = thread_seconds(CLOCK_PROCESS_CPUTIME_ID), wall = thread_seconds(CLOCK_MONOTONIC);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    cpu = thread_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = thread_seconds(CLOCK_MONOTONIC) - wall;
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
    EXPECT_EQ(level, MPI_THREAD_SINGLE); /* what the program requested, whatever the library does with it */
    share_a_page();
    for (int round = 1; round <= ROUNDS; round++)
        test_pairs(out, in, round);
    for (int round = 1; round <= ROUNDS; round++)
        test_collective((int *)out, (int *)in, round);
    test_idle();
    free(out);
    free(in);
    return mpitest_end();
}

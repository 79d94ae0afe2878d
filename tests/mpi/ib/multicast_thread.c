/* multicast_thread.c: broadcasts by multicast with FISHPLATE_PROGRESS=thread. A root starts a broadcast of
 * more than a window and stays outside MPI until all others have received it; then receivers stay outside
 * MPI until a root whose messages fill their buffers has been acknowledged. Without the progress thread
 * the program would hang. After everything is delivered the thread sleeps.
 *
 * ranks: 4
 * nodes: only 4
 * env: FISHPLATE_PROGRESS=thread FISHPLATE_COLL=bcast=multicast:max=4m:window=8
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:window=8:coroots=2:aggregate=10
 * also: SOFTIB_FABRIC=ud_drop=0.1,ud_dup=0.05,ud_reorder=0.05,seed=2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "shared_page.h"

enum { BYTES = 300000, ROUNDS = 6, BURST = 40 };

static unsigned char data[BYTES];
static _Atomic int *done; /* by rank: number of finished rounds */

static unsigned char data_byte(int round, int i)
{
    return (unsigned char)(round * 13 + i * 3 + (i >> 8));
}

static void compute_until_others(int round)
{
    for (int r = 0; r < mpitest_size; r++)
        while (r != mpitest_rank && atomic_load(&done[r]) < round)
            sched_yield();
}

/* The root computes while all other ranks are inside MPI. */
static void test_root_computes(int round)
{
    MPI_Request r;
    int wrong = 0;
    for (int i = 0; i < BYTES; i++)
        data[i] = mpitest_rank == 0 ? data_byte(round, i) : 0;
    MPI_Ibcast(data, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, &r);
    if (mpitest_rank == 0)
        compute_until_others(round);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    atomic_store(&done[mpitest_rank], round);
    for (int i = 0; i < BYTES; i++)
        wrong += data[i] != data_byte(round, i);
    EXPECT_EQ(wrong, 0);
}

/* The root's messages exceed its window: it continues only when all have acknowledged. */
static void test_receivers_compute(int round)
{
    static unsigned char many[BURST][2000];
    MPI_Request r[BURST];
    for (int k = 0; k < BURST; k++) {
        for (int i = 0; i < 2000; i++)
            many[k][i] = mpitest_rank == 0 ? data_byte(k, i) : 0;
        MPI_Ibcast(many[k], 2000, MPI_BYTE, 0, MPI_COMM_WORLD, &r[k]);
    }
    while (mpitest_rank != 0 && atomic_load(&done[0]) < round)
        sched_yield();
    MPI_Waitall(BURST, r, MPI_STATUSES_IGNORE);
    atomic_store(&done[mpitest_rank], round);
    for (int k = 0; k < BURST; k++)
        for (int i = 0; i < 2000; i += 97)
            EXPECT_EQ(many[k][i], data_byte(k, i));
}

/* Checks that the idle progress thread sleeps. A polling thread would wake up thousands of times meanwhile, a
 * thread with short sleeps hundreds of times. */
static void test_thread_sleeps(MPI_T_pvar_handle wakes)
{
    const struct timespec a_while = {.tv_nsec = 100000000};
    unsigned long long least = ~0ull;
    for (int i = 0; i < 10 && least > 50; i++) {
        const unsigned long long before = read_counter(wakes);
        nanosleep(&a_while, NULL);
        const unsigned long long more = read_counter(wakes) - before;
        least = more < least ? more : least;
    }
    EXPECT(least <= 50);
}

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle multicasts = counter_open("coll_bcast_multicast"),
                      wakes = counter_open("net_thread_wakes");
    mpitest_begin(&argc, &argv);
    done = map_shared_page();
    for (int round = 1; round <= ROUNDS; round++)
        test_root_computes(round);
    for (int round = 1; round <= ROUNDS; round++)
        test_receivers_compute(ROUNDS + round);
    EXPECT_EQ(read_counter(multicasts), 1 + ROUNDS + ROUNDS * BURST);
    MPI_Barrier(MPI_COMM_WORLD);
    test_thread_sleeps(wakes);
    MPI_Barrier(MPI_COMM_WORLD);
    counters_end();
    return mpitest_end();
}

/* multicast_stopped.c: in each round a receiver of broadcasts by multicast is stopped (SIGSTOP) for a
 * time. The other ranks wait when windows and buffers are full, and every byte arrives after the receiver
 * continues; the root's memory does not grow. usage: multicast_stopped [milliseconds that it is stopped
 * each time]
 *
 * ranks: 4
 * nodes: only 4
 * env: FISHPLATE_COLL=bcast=multicast:max=4m
 * also: FISHPLATE_COLL=bcast=multicast:max=4m:coroots=2:aggregate=10
 * also: SOFTIB_FABRIC=ud_drop=0.05,seed=3
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"

enum { ROUNDS = 2, CALLS = 400, BYTES = 50000, GROWTH = 24 << 20 };

static unsigned char data[BYTES];

/* Forks a process that, on request, stops its parent for `ms` milliseconds and always continues it
 * afterwards. */
static pid_t start_stopper(int requests, long ms)
{
    const struct timespec a_while = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    pid_t parent = getpid(), child = fork();
    char byte;
    if (child != 0)
        return child;
    while (read(requests, &byte, 1) == 1) {
        kill(parent, SIGSTOP);
        nanosleep(&a_while, NULL);
        kill(parent, SIGCONT);
    }
    _exit(0);
}

static long resident_bytes(void)
{
    long all = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        EXPECT_EQ(fscanf(f, "%ld %ld", &all, &pages), 2);
        fclose(f);
    }
    return pages * sysconf(_SC_PAGESIZE);
}

static unsigned char data_byte(int call, int i)
{
    return (unsigned char)(call * 7 + i * 3 + (i >> 8));
}

static void test_broadcast(int call, int root)
{
    int wrong = 0;
    for (int i = 0; i < BYTES; i++)
        data[i] = mpitest_rank == root ? data_byte(call, i) : 0;
    MPI_Bcast(data, BYTES, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int i = 0; i < BYTES; i++)
        wrong += data[i] != data_byte(call, i);
    EXPECT_EQ(wrong, 0);
}

int main(int argc, char **argv)
{
    int pipe_ends[2];
    const long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 300;
    EXPECT_EQ(pipe(pipe_ends), 0);
    counters_begin();
    MPI_T_pvar_handle done = counter_open("coll_bcast_multicast");
    mpitest_begin(&argc, &argv);
    const int stops = mpitest_rank == mpitest_size - 1;
    test_broadcast(0, 0);
    long before = resident_bytes();
    pid_t stopper = stops ? start_stopper(pipe_ends[0], ms) : 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (stops)
            EXPECT_EQ(write(pipe_ends[1], "", 1), 1);
        for (int i = 0; i < CALLS / ROUNDS; i++)
            test_broadcast(i, round); /* 20 MB in all: more than windows and buffers hold */
    }
    EXPECT(resident_bytes() < before + GROWTH);
    EXPECT_EQ(read_counter(done), CALLS + 1);
    if (stops) {
        close(pipe_ends[1]);
        kill(stopper, SIGKILL);
        waitpid(stopper, NULL, 0);
    }
    counters_end();
    return mpitest_end();
}

/* rma.c: the threads of each rank use the same windows at once: they access a target for the first time
 * together, flush while other threads access, and hold locks of different targets. Flushed data has
 * arrived, no update is lost, and no lock remains held.
 *
 * ranks: 4 2
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { ROUNDS = 20, RANKS_MAX = 8, WORDS = 1 + RANKS_MAX * THREADS };

struct window {
    MPI_Win win;
    long *memory;
};

enum { WINDOWS = 3 };
static struct window
    windows[WINDOWS]; /* by MPI_Win_allocate, by MPI_Win_create, and for atomics of the adapter */
static pthread_barrier_t all_threads;

static void open_windows(void)
{
    const MPI_Aint bytes = WORDS * sizeof(long);
    MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &windows[0].memory, &windows[0].win);
    windows[1].memory = malloc((size_t)bytes);
    MPI_Win_create(windows[1].memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &windows[1].win);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "fishplate_accumulate_by", "adapter");
    MPI_Win_allocate(bytes, sizeof(long), info, MPI_COMM_WORLD, &windows[2].memory, &windows[2].win);
    MPI_Info_free(&info);
    for (int i = 0; i < WINDOWS; i++)
        memset(windows[i].memory, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void flush_target(MPI_Win win, int to, int every)
{
    if (every)
        MPI_Win_flush_all(win);
    else
        MPI_Win_flush(to, win);
}

/* Updates and reads a word that only this thread uses. Accumulates and puts may use another path than
 * gets: only the flush orders them. */
static long update_own_word(MPI_Win win, int to, int word, long value, int every)
{
    long failures = 0, seen = -1, next = value + 1;
    MPI_Accumulate(&value, 1, MPI_LONG, to, word, 1, MPI_LONG, MPI_REPLACE, win);
    flush_target(win, to, every);
    MPI_Get(&seen, 1, MPI_LONG, to, word, 1, MPI_LONG, win);
    flush_target(win, to, !every);
    failures += WRONG(seen != value);
    MPI_Put(&next, 1, MPI_LONG, to, word, 1, MPI_LONG, win);
    MPI_Win_flush_local_all(win);
    flush_target(win, to, every);
    MPI_Fetch_and_op(NULL, &seen, MPI_LONG, to, word, MPI_NO_OP, win);
    MPI_Win_flush(to, win);
    return failures + WRONG(seen != next);
}

static void *use_windows(void *number)
{
    const int thread = (int)(long)number, across = (mpitest_rank + (mpitest_size + 1) / 2) % mpitest_size;
    const int word = 1 + mpitest_rank * THREADS + thread;
    const long one = 1;
    long failures = 0, old, last = -1;
    /* All threads make the first access to a target, which acquires its lock, at the same time. */
    pthread_barrier_wait(&all_threads);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win win = windows[(i + thread) % WINDOWS].win;
        MPI_Fetch_and_op(&one, &old, MPI_LONG, across, 0, MPI_SUM, windows[0].win);
        MPI_Accumulate(&one, 1, MPI_LONG, across, 0, 1, MPI_LONG, MPI_SUM, windows[2].win);
        MPI_Win_flush(across, windows[0].win);
        failures += WRONG(old <= last);
        last = old;
        failures +=
            update_own_word(win, (across + i) % mpitest_size, word, 1000 * i + thread, (i + thread) % 3 == 0);
    }
    return (void *)failures;
}

/* Each thread locks another target, reads, writes and unlocks, in competition with the same thread of all
 * ranks. */
static void *lock_targets(void *number)
{
    const int to = (int)(long)number;
    for (int i = 0; i < ROUNDS && to < mpitest_size; i++) {
        MPI_Win win = windows[1].win;
        long value;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
        MPI_Get(&value, 1, MPI_LONG, to, 0, 1, MPI_LONG, win);
        MPI_Win_flush(to, win);
        value++;
        MPI_Put(&value, 1, MPI_LONG, to, 0, 1, MPI_LONG, win);
        MPI_Win_unlock(to, win);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    threadtest_begin(&argc, &argv);
    EXPECT(mpitest_size <= RANKS_MAX);
    pthread_barrier_init(&all_threads, NULL, THREADS);
    open_windows();
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_lock_all(0, windows[i].win);
    threadtest_run(use_windows);
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_unlock_all(windows[i].win);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(windows[0].memory[0], THREADS * ROUNDS);
    EXPECT_EQ(windows[2].memory[0], THREADS * ROUNDS);
    /* No target is still locked, as it would be if two threads had acquired the lock. */
    for (int i = 0; i < WINDOWS; i++)
        for (int r = 0; r < mpitest_size; r++) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, windows[i].win);
            MPI_Win_unlock(r, windows[i].win);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    threadtest_run(lock_targets);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank < THREADS)
        EXPECT_EQ(windows[1].memory[0], mpitest_size * ROUNDS);
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_free(&windows[i].win);
    free(windows[1].memory);
    pthread_barrier_destroy(&all_threads);
    return mpitest_end();
}

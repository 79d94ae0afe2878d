/* rma.c: the threads of each rank use the same windows at once: they touch a target for the first time together, flush while the
 * others send, and hold locks of different targets. What a thread has flushed is there, nothing is lost, and no lock stays
 * taken.
 *
 * ranks: 4 2
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { ROUNDS = 20, MOST = 8, WORDS = 1 + MOST * THREADS };

struct window {
    MPI_Win win;
    long *memory;
};

enum { WINDOWS = 3 };
static struct window all[WINDOWS]; /* of MPI_Win_allocate, of MPI_Win_create, and by the adapter's atomics */
static pthread_barrier_t together;

static void open_all(void)
{
    const MPI_Aint bytes = WORDS * sizeof(long);
    MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &all[0].memory, &all[0].win);
    all[1].memory = malloc((size_t)bytes);
    MPI_Win_create(all[1].memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &all[1].win);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "fishplate_accumulate_by", "adapter");
    MPI_Win_allocate(bytes, sizeof(long), info, MPI_COMM_WORLD, &all[2].memory, &all[2].win);
    MPI_Info_free(&info);
    for (int i = 0; i < WINDOWS; i++)
        memset(all[i].memory, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_flush(MPI_Win win, int to, int every)
{
    if (every)
        MPI_Win_flush_all(win);
    else
        MPI_Win_flush(to, win);
}

/* A word of this thread alone. Accumulates and puts may travel another way than gets: only the flush is between them. */
static long own_word(MPI_Win win, int to, int word, long value, int every)
{
    long failures = 0, seen = -1, next = value + 1;
    MPI_Accumulate(&value, 1, MPI_LONG, to, word, 1, MPI_LONG, MPI_REPLACE, win);
    test_flush(win, to, every);
    MPI_Get(&seen, 1, MPI_LONG, to, word, 1, MPI_LONG, win);
    test_flush(win, to, !every);
    failures += WRONG(seen != value);
    MPI_Put(&next, 1, MPI_LONG, to, word, 1, MPI_LONG, win);
    MPI_Win_flush_local_all(win);
    test_flush(win, to, every);
    MPI_Fetch_and_op(NULL, &seen, MPI_LONG, to, word, MPI_NO_OP, win);
    MPI_Win_flush(to, win);
    return failures + WRONG(seen != next);
}

static void *rma_use(void *number)
{
    const int thread = (int)(long)number, across = (mpitest_rank + (mpitest_size + 1) / 2) % mpitest_size;
    const int word = 1 + mpitest_rank * THREADS + thread;
    const long one = 1;
    long failures = 0, old, last = -1;
    pthread_barrier_wait(&together); /* the first touch takes the lock */
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win win = all[(i + thread) % WINDOWS].win;
        MPI_Fetch_and_op(&one, &old, MPI_LONG, across, 0, MPI_SUM, all[0].win);
        MPI_Accumulate(&one, 1, MPI_LONG, across, 0, 1, MPI_LONG, MPI_SUM, all[2].win);
        MPI_Win_flush(across, all[0].win);
        failures += WRONG(old <= last);
        last = old;
        failures +=
            own_word(win, (across + i) % mpitest_size, word, 1000 * i + thread, (i + thread) % 3 == 0);
    }
    return (void *)failures;
}

/* Each thread locks another target, reads, writes and unlocks, against the same thread of all ranks. */
static void *lock_one(void *number)
{
    const int to = (int)(long)number;
    for (int i = 0; i < ROUNDS && to < mpitest_size; i++) {
        MPI_Win win = all[1].win;
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
    EXPECT(mpitest_size <= MOST);
    pthread_barrier_init(&together, NULL, THREADS);
    open_all();
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_lock_all(0, all[i].win);
    threadtest_run(rma_use);
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_unlock_all(all[i].win);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(all[0].memory[0], THREADS * ROUNDS);
    EXPECT_EQ(all[2].memory[0], THREADS * ROUNDS);
    for (int i = 0; i < WINDOWS; i++) /* a lock that was taken twice would stay */
        for (int r = 0; r < mpitest_size; r++) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, all[i].win);
            MPI_Win_unlock(r, all[i].win);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    threadtest_run(lock_one);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank < THREADS)
        EXPECT_EQ(all[1].memory[0], mpitest_size * ROUNDS);
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_free(&all[i].win);
    free(all[1].memory);
    pthread_barrier_destroy(&together);
    return mpitest_end();
}

/* rma.c: the threads of each rank use the same windows at once: they touch a target for the first time together, flush while the
 * others send, and hold locks of different targets. What a thread has flushed is there, nothing is lost, and no lock stays
 * taken.
 *
 * ranks: 4 2
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_YIELDS=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "threadtest.h"

enum { ROUNDS = 20, MOST = 8, WORDS = 1 + MOST * THREADS };

struct window {
    MPI_Win win;
    long *memory;
};

static struct window both[2]; /* of MPI_Win_allocate and MPI_Win_create */
static pthread_barrier_t together;

static void open_both(void)
{
    const MPI_Aint bytes = WORDS * sizeof(long);
    MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &both[0].memory, &both[0].win);
    both[1].memory = malloc((size_t)bytes);
    MPI_Win_create(both[1].memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &both[1].win);
    for (int i = 0; i < 2; i++)
        memset(both[i].memory, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void flush(MPI_Win win, int to, int all)
{
    if (all)
        MPI_Win_flush_all(win);
    else
        MPI_Win_flush(to, win);
}

/* A word of this thread alone. Accumulates and puts may travel another way than gets: only the flush is between them. */
static long own_word(MPI_Win win, int to, int word, long value, int all)
{
    long failures = 0, seen = -1, next = value + 1;
    MPI_Accumulate(&value, 1, MPI_LONG, to, word, 1, MPI_LONG, MPI_REPLACE, win);
    flush(win, to, all);
    MPI_Get(&seen, 1, MPI_LONG, to, word, 1, MPI_LONG, win);
    flush(win, to, !all);
    failures += WRONG(seen != value);
    MPI_Put(&next, 1, MPI_LONG, to, word, 1, MPI_LONG, win);
    MPI_Win_flush_local_all(win);
    flush(win, to, all);
    MPI_Fetch_and_op(NULL, &seen, MPI_LONG, to, word, MPI_NO_OP, win);
    MPI_Win_flush(to, win);
    return failures + WRONG(seen != next);
}

static void *use(void *number)
{
    const int thread = (int)(long)number, across = (mpitest_rank + (mpitest_size + 1) / 2) % mpitest_size;
    const int word = 1 + mpitest_rank * THREADS + thread;
    const long one = 1;
    long failures = 0, old, last = -1;
    pthread_barrier_wait(&together); /* the first touch takes the lock */
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win win = both[(i + thread) % 2].win;
        MPI_Fetch_and_op(&one, &old, MPI_LONG, across, 0, MPI_SUM, both[0].win);
        MPI_Win_flush(across, both[0].win);
        failures += WRONG(old <= last);
        last = old;
        failures +=
            own_word(win, (across + i) % mpitest_size, word, 1000 * i + thread, (i + thread) % 3 == 0);
    }
    return (void *)failures;
}

/* Each thread locks another target: read, write, and let go, against the same thread of all ranks. */
static void *lock_one(void *number)
{
    const int to = (int)(long)number;
    for (int i = 0; i < ROUNDS && to < mpitest_size; i++) {
        MPI_Win win = both[1].win;
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
    open_both();
    for (int i = 0; i < 2; i++)
        MPI_Win_lock_all(0, both[i].win);
    threadtest_run(use);
    for (int i = 0; i < 2; i++)
        MPI_Win_unlock_all(both[i].win);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(both[0].memory[0], THREADS * ROUNDS);
    for (int i = 0; i < 2; i++) /* a lock that was taken twice would stay */
        for (int r = 0; r < mpitest_size; r++) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, both[i].win);
            MPI_Win_unlock(r, both[i].win);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    threadtest_run(lock_one);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank < THREADS)
        EXPECT_EQ(both[1].memory[0], mpitest_size * ROUNDS);
    for (int i = 0; i < 2; i++)
        MPI_Win_free(&both[i].win);
    free(both[1].memory);
    pthread_barrier_destroy(&together);
    return mpitest_end();
}

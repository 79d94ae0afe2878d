/* lookup.c: the creation of a window does not announce its memory: the first access to a rank looks the
 * memory up. Between ranks that have communicated the look-up does not need the target's processor; the
 * target here polls its memory and makes no MPI call. Ranks that have not communicated are queried once.
 *
 * ranks: 4
 * nodes: only 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdatomic.h>

#include "counters.h"
#include "mpitest.h"

enum { WINDOWS = 4 };

static MPI_Win wins[WINDOWS];
static long *memory[WINDOWS];

static void open_windows(MPI_Comm comm)
{
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_allocate(sizeof(long), 1, MPI_INFO_NULL, comm, &memory[i], &wins[i]);
    for (int i = 0; i < WINDOWS; i++)
        *memory[i] = 0;
    MPI_Barrier(comm);
}

static void close_windows(void)
{
    for (int i = 0; i < WINDOWS; i++)
        MPI_Win_free(&wins[i]);
}

static void put_and_flush(MPI_Win win, int to)
{
    const long one = 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win);
    MPI_Put(&one, sizeof(one), MPI_BYTE, to, 0, sizeof(one), MPI_BYTE, win);
    MPI_Win_unlock(to, win);
}

static void expect_set(int i)
{
    const _Atomic long *word = (_Atomic long *)(void *)memory[i];
    while (atomic_load(word) == 0)
        sched_yield();
}

int main(int argc, char **argv)
{
    counters_begin();
    MPI_T_pvar_handle queries = counter_open("rma_lookups_by_message"),
                      read = counter_open("rma_lookups_by_read");
    mpitest_begin(&argc, &argv);
    const int half = mpitest_size / 2, across = (mpitest_rank + half) % mpitest_size,
              low = mpitest_rank < half;
    char c = 0;
    MPI_Sendrecv_replace(&c, 1, MPI_CHAR, across, 0, across, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int round = 0; round < 3; round++) { /* window numbers are reused */
        open_windows(MPI_COMM_WORLD);
        for (int i = 0; i < WINDOWS; i++)
            if (low)
                put_and_flush(wins[i], across);
            else
                expect_set(i);
        MPI_Barrier(MPI_COMM_WORLD);
        close_windows();
    }
    EXPECT_EQ(read_counter(queries), 0);
    EXPECT(!low || read_counter(read) >= 3 * WINDOWS - 1);
    open_windows(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++)
        for (int r = 0; r < mpitest_size; r++)
            put_and_flush(wins[i], r);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(read_counter(queries) <= (unsigned long long)half); /* one query for each rank of the other node */
    close_windows();
    counters_end();
    return mpitest_end();
}

/* huge.c: single calls of MPI_Put, MPI_Get and MPI_Accumulate with more than 2^31 bytes, on allocated and
 * created windows. The test needs 4 GiB and many seconds, so it runs only if HUGE=1 is set.
 *
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <sys/mman.h>

#include "mpitest.h"

#define WORDS (((MPI_Count)1 << 28) + 9) /* WORDS: number of 8-byte words */
#define BYTES (WORDS * 8)

static int64_t *huge_reserve(void)
{
    void *at =
        mmap(NULL, (size_t)BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(at != MAP_FAILED);
    return at;
}

/* Words that are not zero: some at both ends and around 2^31 bytes. */
static const MPI_Count marks[] = {0, 1, 1 << 27, (1 << 28) - 1, 1 << 28, WORDS - 1};
enum { MARKS = sizeof(marks) / sizeof(marks[0]) };

static void write_marks(int64_t *at, int64_t factor)
{
    for (int i = 0; i < MARKS; i++)
        at[marks[i]] = factor * (i + 1);
}

static void expect_marks(const int64_t *at, int64_t factor)
{
    for (int i = 0; i < MARKS; i++)
        EXPECT_EQ(at[marks[i]], factor * (i + 1));
    EXPECT_EQ(at[2], 0);
    EXPECT_EQ(at[WORDS - 2], 0);
}

static void test_huge_calls(int allocated)
{
    MPI_Win win;
    const MPI_Aint size = mpitest_rank == 1 ? (MPI_Aint)BYTES : 0;
    int64_t *memory = NULL, *mine = mpitest_rank == 0 || !allocated ? huge_reserve() : NULL;
    if (allocated)
        MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    else
        MPI_Win_create(memory = mine, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    if (mpitest_rank == 0) {
        write_marks(mine, 7);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Put_c(mine, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, win);
        MPI_Win_flush(1, win);
        MPI_Accumulate_c(mine, WORDS, MPI_INT64_T, 1, 0, WORDS, MPI_INT64_T, MPI_SUM, win);
        MPI_Win_flush(1, win);
        write_marks(mine, 0);
        MPI_Get_c(mine, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, win);
        MPI_Win_unlock(1, win);
        expect_marks(mine, 14);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mpitest_rank == 1)
        expect_marks(memory, 14);
    MPI_Win_free(&win);
    if (mine)
        munmap(mine, (size_t)BYTES);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int allocated = 0; allocated < 2 && getenv("HUGE"); allocated++)
        test_huge_calls(allocated);
    return mpitest_end();
}

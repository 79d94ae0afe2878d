/* hints.c: the effects of a window's info keys, as the library's counters show; keys without effect are
 * stored and returned, invalid values of a key are not.
 *
 * ranks: 2
 * nodes: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

enum { WORDS = 4096, TIMES = 8 };

static MPI_T_pvar_handle frames, pieces;
static int rank;

static MPI_Win open_window(const char *key, const char *value, void *memory)
{
    MPI_Win win;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Win_allocate(WORDS * 8, 8, info, MPI_COMM_WORLD, memory, &win);
    MPI_Info_free(&info);
    memset(*(void **)memory, 0, WORDS * 8);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    return win;
}

static int has_hint(MPI_Win win, const char *key, const char *value)
{
    char found[64] = "";
    int flag, len = sizeof(found);
    MPI_Info info;
    MPI_Win_get_info(win, &info);
    MPI_Info_get_string(info, key, &len, found, &flag);
    MPI_Info_free(&info);
    return flag && strcmp(found, value) == 0;
}

/* Rank 0 adds to the same words by the adapter (one element) and by frames (many elements), in turn.
 * Returns the number of frames that it sent. */
static unsigned long long run_mixed_accumulates(const char *ordering)
{
    long long *memory, one[WORDS];
    unsigned long long before = 0, sent = 0;
    MPI_Win win = open_window("accumulate_ordering", ordering, &memory);
    EXPECT(has_hint(win, "accumulate_ordering", ordering));
    const int by_adapter = has_hint(win, "fishplate_accumulate_by", "adapter");
    for (int i = 0; i < WORDS; i++)
        one[i] = 1;
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Accumulate(one, 1, MPI_LONG_LONG, 1, 0, 1, MPI_LONG_LONG, MPI_SUM, win);
        MPI_Win_flush(1, win);
        before = read_counter(frames);
        for (int k = 0; k < TIMES; k++) {
            MPI_Accumulate(one, 8, MPI_LONG_LONG, 1, 0, 8, MPI_LONG_LONG, MPI_SUM, win);
            MPI_Accumulate(one, 1, MPI_LONG_LONG, 1, 0, 1, MPI_LONG_LONG, MPI_SUM, win);
        }
        sent = read_counter(frames) - before;
        MPI_Win_unlock(1, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        EXPECT_EQ(memory[0], 2 * TIMES + 1);
    MPI_Win_free(&win);
    return by_adapter ? sent : 0;
}

static void test_ordering(void)
{
    const unsigned long long strict = run_mixed_accumulates("rar,raw,war,waw"),
                             none = run_mixed_accumulates("none");
    if (strict > 0) { /* strict ordering needs a flush at each change between adapter and frames */
        EXPECT_EQ(none, TIMES);
        EXPECT_EQ(strict, 2 * TIMES);
    }
}

/* Returns the number of pieces that an accumulate of floating-point numbers locks one after the other in the
 * memory of another rank on the node. */
static unsigned long long count_locked_pieces(const char *granularity)
{
    double *memory, one[WORDS];
    MPI_Win win = open_window("mpi_accumulate_granularity", granularity, &memory);
    EXPECT(has_hint(win, "mpi_accumulate_granularity", granularity));
    for (int i = 0; i < WORDS; i++)
        one[i] = 1;
    const unsigned long long before = read_counter(pieces);
    MPI_Win_fence(0, win);
    MPI_Accumulate(one, WORDS, MPI_DOUBLE, !rank, 0, WORDS, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_fence(0, win);
    const unsigned long long taken = read_counter(pieces) - before;
    EXPECT(memory[0] == 1 && memory[WORDS - 1] == 1);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    return taken;
}

static void test_granularity(void)
{
    const unsigned long long preset = count_locked_pieces("0"), small = count_locked_pieces("64"),
                             large = count_locked_pieces("32768");
    if (preset == 0)
        return; /* on separate nodes no other rank changes the memory */
    EXPECT_EQ(preset, WORDS * 8 / 4096);
    EXPECT_EQ(small, WORDS * 8 / 64);
    EXPECT_EQ(large, 1);
}

static void test_hints_are_stored(void)
{
    static const char *const keys[][3] = {{"same_disp_unit", "true", "maybe"},
                                          {"same_size", "true", "maybe"},
                                          {"accumulate_ops", "same_op", "any_op"}};
    for (int i = 0; i < 3; i++) {
        void *memory;
        MPI_Win win = open_window(keys[i][0], keys[i][1], &memory);
        EXPECT(has_hint(win, keys[i][0], keys[i][1]));
        MPI_Win_free(&win);
        win = open_window(keys[i][0], keys[i][2], &memory);
        EXPECT(!has_hint(win, keys[i][0], keys[i][2]));
        MPI_Win_free(&win);
    }
}

static void test_no_locks(void)
{
    void *memory;
    MPI_Win win = open_window("no_locks", "true", &memory);
    EXPECT_EQ(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    EXPECT_EQ(MPI_Win_fence(0, win), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), MPI_SUCCESS);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    counters_begin();
    frames = counter_open("rma_frames_sent");
    pieces = counter_open("rma_pieces_locked");
    mpitest_begin(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    test_ordering();
    test_granularity();
    test_hints_are_stored();
    test_no_locks();
    counters_end();
    return mpitest_end();
}

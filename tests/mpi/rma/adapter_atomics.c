/* adapter_atomics.c: 8-byte integers that the target's adapter changes (fishplate_accumulate_by=adapter).
 * Ranks of the target's node, of another node and the target itself change the same words at once by every
 * method: single requests, compare-and-swap, frames. No update is lost, order is preserved, and other
 * nodes do not need the target's processor. If a process has several adapters (USED=processor), the
 * processor is used whatever the window requests; if the adapter is atomic with respect to processors
 * (USED=both), both are used. A window without a request uses the adapter if no other rank is on the
 * target's node.
 *
 * ranks: 4
 * nodes: only 2
 * also: SOFTIB_FABRIC=hcas=2 USED=processor
 * also: SOFTIB_FABRIC=atomics=global USED=both
 * also: FISHPLATE_PROGRESS=thread
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdatomic.h>

#include "counters.h"
#include "mpitest.h"

#define ROUNDS 16
#define WORDS  32

static MPI_T_pvar_handle by_adapter;
static int rank, size, refused,
    both; /* refused: only the processor is used; both: processor and adapter are used */

struct wide_window {
    MPI_Win win;
    long long *memory;
};

static void open_window(struct wide_window *w, int allocated, const char *by)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (by)
        MPI_Info_set(info, "fishplate_accumulate_by", by);
    w->memory = allocated ? NULL : malloc(WORDS * sizeof(long long));
    if (allocated)
        MPI_Win_allocate(WORDS * sizeof(long long), 8, info, MPI_COMM_WORLD, &w->memory, &w->win);
    else
        MPI_Win_create(w->memory, WORDS * sizeof(long long), 8, info, MPI_COMM_WORLD, &w->win);
    MPI_Info_free(&info);
    memset(w->memory, 0, WORDS * sizeof(long long));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void close_window(struct wide_window *w, int allocated)
{
    MPI_Win_free(&w->win);
    if (!allocated)
        free(w->memory);
}

/* Checks the method in use, not the requested one. */
static void expect_method(MPI_Win win, const char *by)
{
    MPI_Info info;
    char value[16] = "";
    int flag, len = sizeof(value);
    MPI_Win_get_info(win, &info);
    MPI_Info_get_string(info, "fishplate_accumulate_by", &len, value, &flag);
    EXPECT(flag && strcmp(value, by) == 0);
    MPI_Info_free(&info);
}

/* All ranks add to word 0 by single elements, by many elements (frames) and by compare-and-swap at once. */
static void test_concurrent_sums(struct wide_window *w)
{
    long long ones[WORDS], old, last = -1, next, seen;
    for (int i = 0; i < WORDS; i++)
        ones[i] = 1;
    MPI_Win_lock_all(0, w->win);
    for (int k = 0; k < ROUNDS; k++) {
        MPI_Accumulate(ones, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_SUM, w->win);
        MPI_Fetch_and_op(ones, &old, MPI_LONG_LONG, 0, 0, MPI_SUM, w->win);
        MPI_Win_flush(0, w->win);
        EXPECT(old > last); /* includes this rank's preceding accumulate */
        last = old + 1;
        if (k % 4 == 0)
            MPI_Accumulate(ones, WORDS, MPI_LONG_LONG, 0, 0, WORDS, MPI_LONG_LONG, MPI_SUM, w->win);
        do {
            MPI_Fetch_and_op(NULL, &seen, MPI_LONG_LONG, 0, 0, MPI_NO_OP, w->win);
            MPI_Win_flush(0, w->win);
            next = seen + 1;
            MPI_Compare_and_swap(&next, &seen, &old, MPI_LONG_LONG, 0, 0, w->win);
            MPI_Win_flush(0, w->win);
        } while (old != seen);
    }
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        EXPECT_EQ(w->memory[0], size * (3 * ROUNDS + ROUNDS / 4));
        EXPECT_EQ(w->memory[WORDS - 1], size * (ROUNDS / 4));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Uses operators that adapters do not have: or, max, exchange. */
static void test_other_operators(struct wide_window *w)
{
    unsigned long long bit, token = (unsigned long long)rank + 1, sum = 0, total = 0, old;
    long long most;
    if (rank == 0)
        memset(w->memory, 0, WORDS * sizeof(long long));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w->win);
    for (int k = 0; k < 16; k++) {
        bit = 1ull << (16 * rank + k);
        most = 100 * k + rank;
        MPI_Accumulate(&bit, 1, MPI_UNSIGNED_LONG_LONG, 0, 1, 1, MPI_UNSIGNED_LONG_LONG, MPI_BXOR, w->win);
        MPI_Accumulate(&most, 1, MPI_LONG_LONG, 0, 2, 1, MPI_LONG_LONG, MPI_MAX, w->win);
        MPI_Fetch_and_op(&token, &old, MPI_UNSIGNED_LONG_LONG, 0, 3, MPI_REPLACE, w->win);
        MPI_Win_flush(0, w->win);
        token = old; /* tokens are exchanged; none is lost or duplicated */
    }
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(&token, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        total = (unsigned long long)size * (size + 1) / 2;
        EXPECT_EQ((unsigned long long)w->memory[1], size == 4 ? ~0ull : (1ull << 16 * size) - 1);
        EXPECT_EQ(w->memory[2], 1500 + size - 1);
        EXPECT_EQ(sum + (unsigned long long)w->memory[3], total);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Tests request-based accumulates (MPI_Raccumulate, MPI_Rget_accumulate) of several elements in one call. */
static void test_requests(struct wide_window *w)
{
    long long add[3] = {1, 2, 3}, old[3] = {-1, -1, -1};
    MPI_Request request;
    const int to = (rank + size / 2) % size; /* a rank on the other node */
    MPI_Win_fence(0, w->win);
    memset(w->memory, 0, WORDS * sizeof(long long));
    MPI_Win_fence(0, w->win);
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w->win);
    MPI_Raccumulate(add, 3, MPI_LONG_LONG, to, 4, 3, MPI_LONG_LONG, MPI_SUM, w->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget_accumulate(add, 3, MPI_LONG_LONG, old, 3, MPI_LONG_LONG, to, 4, 3, MPI_LONG_LONG, MPI_SUM,
                        w->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(to, w->win);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(old[i], add[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(w->memory[4 + i], 2 * add[i]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 makes no MPI call until the other node has finished. */
static void test_target_computes(struct wide_window *w)
{
    _Atomic long long *word = (_Atomic long long *)(void *)w->memory;
    const int others = size / 2;
    long long one = 1, old;
    if (rank == 0)
        memset(w->memory, 0, WORDS * sizeof(long long));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && !refused)
        while (atomic_load(word) < others * ROUNDS)
            sched_yield();
    if (rank >= size - others) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, w->win);
        for (int k = 0; k < ROUNDS; k++) {
            MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, 0, 0, MPI_SUM, w->win);
            MPI_Win_flush(0, w->win);
        }
        MPI_Win_unlock(0, w->win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* With one rank per node only the target's processor could change its memory, so the adapter is used
 * without a request. */
static void test_default_method(void)
{
    struct wide_window w;
    MPI_Comm alone;
    MPI_Comm_split(MPI_COMM_WORLD, rank % (size / 2), rank, &alone);
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, alone, &w.memory, &w.win);
    w.memory[0] = 0;
    MPI_Barrier(alone);
    expect_method(w.win, refused ? "processor" : both ? "both" : "adapter");
    const long long before = read_counter(by_adapter);
    long long one = 1, old;
    int here;
    MPI_Comm_rank(alone, &here);
    MPI_Win_lock_all(0, w.win);
    for (int k = 0; k < ROUNDS; k++) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, 0, 0, MPI_SUM, w.win);
        MPI_Win_flush(0, w.win);
    }
    MPI_Win_unlock_all(w.win);
    MPI_Barrier(alone);
    if (here == 0)
        EXPECT_EQ(w.memory[0], 2 * ROUNDS);
    EXPECT_EQ(read_counter(by_adapter) - before, refused || here == 0 ? 0 : ROUNDS);
    MPI_Win_free(&w.win);
    MPI_Comm_free(&alone);
}

int main(int argc, char **argv)
{
    struct wide_window w;
    counters_begin();
    by_adapter = counter_open("rma_adapter_atomics");
    mpitest_begin(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *used = getenv("USED");
    refused = used && strcmp(used, "processor") == 0;
    both = used && strcmp(used, "both") == 0;
    for (int allocated = 0; allocated < 2; allocated++) {
        open_window(&w, allocated, "processor");
        expect_method(w.win, "processor");
        test_concurrent_sums(&w);
        close_window(&w, allocated);
        EXPECT_EQ(read_counter(by_adapter), 0);
    }
    test_default_method();
    /* softib cannot be atomic towards processors in private memory. */
    for (int allocated = both; allocated < 2; allocated++) {
        open_window(&w, allocated, both ? NULL : "adapter");
        expect_method(w.win, refused ? "processor" : both ? "both" : "adapter");
        test_concurrent_sums(&w);
        test_other_operators(&w);
        test_requests(&w);
        test_target_computes(&w);
        close_window(&w, allocated);
    }
    if (refused)
        EXPECT_EQ(read_counter(by_adapter), 0);
    else
        EXPECT(rank < size / 2 || read_counter(by_adapter) > ROUNDS);
    counters_end();
    return mpitest_end();
}

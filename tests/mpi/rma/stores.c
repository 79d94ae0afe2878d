/* stores.c: FISHPLATE_DEBUG=rma reports stores of a program to its own window that overlap operations of
 * other ranks in one epoch, and reports nothing if the two are ordered or access different bytes.
 *
 * ranks: 3
 * env: FISHPLATE_DEBUG=rma
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "rma/windows.h"

enum {
    SIZE = 4 * 4096,
    AT = 4096 + 64
}; /* AT: an offset in the middle, where the window has whole pages at any alignment */

static int saved = -1, kept = -1;

static void capture_stderr(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(stderr);
    kept = memfd_create("stderr", 0);
    saved = dup(2);
    dup2(kept, 2);
}

/* Returns the number of stores that all ranks have reported since capture_stderr. */
static int count_reports(void)
{
    static char text[65536];
    int count = 0, total = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(stderr);
    dup2(saved, 2);
    ssize_t len = pread(kept, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    for (const char *at = text; (at = strstr(at, "the store by rank 0 at ")) != NULL; at++)
        count += strstr(at, "stores") != NULL && strstr(at, "touch the same bytes of rank 0") != NULL;
    close(saved);
    close(kept);
    MPI_Allreduce(&count, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return total;
}

static void store(struct window *w, int at)
{
    *(volatile int *)(w->memory + at) = 7;
}

/* Runs a fence, a store of rank 0 and an operation of rank 1, a fence. */
static int run_between_fences(struct window *w, int kind, int store_at, int put_at)
{
    int x = 5;
    capture_stderr();
    MPI_Win_fence(0, w->win);
    if (w->rank == 0 && store_at >= 0)
        store(w, store_at);
    if (w->rank == 1 && kind == 0)
        MPI_Put(&x, 1, MPI_INT, 0, put_at, 1, MPI_INT, w->win);
    if (w->rank == 1 && kind == 1)
        MPI_Get(&x, 1, MPI_INT, 0, put_at, 1, MPI_INT, w->win);
    if (w->rank == 1 && kind == 2)
        MPI_Accumulate(&x, 1, MPI_INT, 0, put_at, 1, MPI_INT, MPI_SUM, w->win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    return count_reports();
}

static void test_fences(struct window *w)
{
    for (int kind = 0; kind < 3; kind++) {
        EXPECT_EQ(run_between_fences(w, kind, AT, AT), 1);
        EXPECT_EQ(run_between_fences(w, kind, AT, AT + 4), 0); /* an adjacent word in the same page */
        EXPECT_EQ(run_between_fences(w, kind, AT, AT - 4), 0);
        EXPECT_EQ(run_between_fences(w, kind, AT, AT - 2), 1); /* overlaps in part */
        EXPECT_EQ(run_between_fences(w, kind, AT, AT + 2), 1);
        EXPECT_EQ(run_between_fences(w, kind, -1, AT), 0);
    }

    capture_stderr(); /* no conflict: the two accesses are in different epochs */
    MPI_Win_fence(0, w->win);
    if (w->rank == 0)
        store(w, AT);
    MPI_Win_fence(0, w->win);
    int x = 1;
    if (w->rank == 1)
        MPI_Put(&x, 1, MPI_INT, 0, AT, 1, MPI_INT, w->win);
    MPI_Win_fence(0, w->win);
    if (w->rank == 0)
        store(w, AT);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    EXPECT_EQ(count_reports(), 0);

    capture_stderr(); /* no conflict: a message orders the store before the put (unified memory model) */
    MPI_Win_fence(0, w->win);
    if (w->rank == 0) {
        store(w, AT);
        MPI_Send(&x, 1, MPI_INT, 1, 0, w->comm);
    } else if (w->rank == 1) {
        MPI_Recv(&x, 1, MPI_INT, 0, 0, w->comm, MPI_STATUS_IGNORE);
        MPI_Put(&x, 1, MPI_INT, 0, AT, 1, MPI_INT, w->win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    EXPECT_EQ(count_reports(), 0);

    capture_stderr(); /* conflict: the put is first, but incomplete before the fence, even after a message */
    MPI_Win_fence(0, w->win);
    if (w->rank == 1) {
        MPI_Put(&x, 1, MPI_INT, 0, AT, 1, MPI_INT, w->win);
        MPI_Send(&x, 1, MPI_INT, 0, 0, w->comm);
    } else if (w->rank == 0) {
        MPI_Recv(&x, 1, MPI_INT, 1, 0, w->comm, MPI_STATUS_IGNORE);
        store(w, AT);
        /* Rank 2 gets a message after the store, which must not hide the conflict with the put of rank 1. */
        MPI_Send(&x, 1, MPI_INT, 2, 0, w->comm);
    } else {
        MPI_Recv(&x, 1, MPI_INT, 0, 0, w->comm, MPI_STATUS_IGNORE);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    EXPECT_EQ(count_reports(), 1);
}

/* Stores by memcpy and memset are reported too, and all bytes are stored. */
static void test_block_stores(struct window *w)
{
    static char data[6000];
    int x = 5;
    memset(data, 3, sizeof(data));
    for (int way = 0; way < 2; way++) {
        capture_stderr();
        MPI_Win_fence(0, w->win);
        if (w->rank == 0) {
            if (way == 0)
                memcpy(w->memory + AT, data, sizeof(data));
            else
                memset(w->memory + AT, 3, sizeof(data));
        }
        if (w->rank == 1)
            MPI_Put(&x, 1, MPI_INT, 0, AT + 5900, 1, MPI_INT, w->win);
        if (w->rank == 2)
            /* Directly after the range of the stores. */
            MPI_Put(&x, 1, MPI_INT, 0, AT + 6000, 1, MPI_INT, w->win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
        EXPECT_EQ(count_reports(), 1);
        for (int i = 0; i < 5900 && w->rank == 0; i++)
            if (w->memory[AT + i] != 3)
                EXPECT_EQ(i, -1);
    }
}

static void test_post_and_start(struct window *w)
{
    MPI_Group all, first, second;
    int x = 5;
    MPI_Win_get_group(w->win, &all);
    MPI_Group_incl(all, 1, &(int){0}, &first);
    MPI_Group_incl(all, 1, &(int){1}, &second);
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        capture_stderr();
        if (w->rank == 0) {
            MPI_Win_post(second, 0, w->win);
            store(w, AT);
            MPI_Win_wait(w->win);
            store(w, AT + 400);
        } else if (w->rank == 1) {
            MPI_Win_start(first, 0, w->win);
            MPI_Put(&x, 1, MPI_INT, 0, overlaps ? AT : AT + 400, 1, MPI_INT, w->win);
            MPI_Win_complete(w->win);
        }
        EXPECT_EQ(count_reports(), overlaps);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&first);
    MPI_Group_free(&second);
}

/* Rank 0 stores while rank 1 holds the lock, before or after the flush that completes the put. */
static void test_locks(struct window *w, int same_node)
{
    int x = 5;
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        capture_stderr();
        if (w->rank == 1) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
            MPI_Put(&x, 1, MPI_INT, 0, AT, 1, MPI_INT, w->win);
            if (!overlaps)
                MPI_Win_flush(0, w->win);
            MPI_Send(&x, 1, MPI_INT, 0, 0, w->comm);
            MPI_Recv(&x, 1, MPI_INT, 0, 0, w->comm, MPI_STATUS_IGNORE);
            MPI_Win_unlock(0, w->win);
            MPI_Send(&x, 1, MPI_INT, 0, 1, w->comm);
        } else if (w->rank == 0) {
            MPI_Recv(&x, 1, MPI_INT, 1, 0, w->comm, MPI_STATUS_IGNORE);
            store(w, AT);
            MPI_Send(&x, 1, MPI_INT, 1, 0, w->comm);
            /* The library's notifications about the lock arrive before this message. */
            MPI_Recv(&x, 1, MPI_INT, 1, 1, w->comm, MPI_STATUS_IGNORE);
        }
        EXPECT_EQ(count_reports(), same_node && overlaps);
    }
}

static int are_on_one_node(MPI_Comm comm, int a, int b)
{
    MPI_Comm node;
    MPI_Group mine, all;
    int ranks[2] = {a, b}, there[2], yes;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_group(node, &mine);
    MPI_Comm_group(comm, &all);
    MPI_Group_translate_ranks(all, 2, ranks, mine, there);
    yes = there[0] != MPI_UNDEFINED && there[1] != MPI_UNDEFINED;
    MPI_Bcast(&yes, 1, MPI_INT, a, comm);
    MPI_Group_free(&mine);
    MPI_Group_free(&all);
    MPI_Comm_free(&node);
    return yes;
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
#if !defined(__x86_64__) || !defined(__GLIBC__)
    puts("skipped: stores are observed on x86-64 with glibc only");
    MPI_Finalize();
    return 77;
#endif
    for (int flavor = CREATED; flavor <= SHARED; flavor++) {
        struct window w;
        if (!window_open(&w, flavor, SIZE))
            continue;
        test_fences(&w);
        test_block_stores(&w);
        test_post_and_start(&w);
        test_locks(&w, are_on_one_node(w.comm, 0, 1));
        window_close(&w);
    }
    return mpitest_end();
}

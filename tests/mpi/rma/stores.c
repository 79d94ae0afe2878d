/* stores.c: FISHPLATE_DEBUG=rma finds stores of a program into its own window that overlap operations of others in one epoch, and reports
 * nothing where the two are in order or touch different bytes.
 *
 * ranks: 3
 * env: FISHPLATE_DEBUG=rma
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "rma/windows.h"

enum { SIZE = 4 * 4096, AT = 4096 + 64 }; /* the middle of a window has whole pages wherever it begins */

static int saved = -1, kept = -1;

static void listen(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(stderr);
    kept = memfd_create("stderr", 0);
    saved = dup(2);
    dup2(kept, 2);
}

/* The number of stores that all ranks have reported since the last call. */
static int reports(void)
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
static int between_fences(struct window *w, int kind, int store_at, int put_at)
{
    int x = 5;
    listen();
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
    return reports();
}

static void fences(struct window *w)
{
    for (int kind = 0; kind < 3; kind++) {
        EXPECT_EQ(between_fences(w, kind, AT, AT), 1);
        EXPECT_EQ(between_fences(w, kind, AT, AT + 4), 0); /* a neighbour, in the same page */
        EXPECT_EQ(between_fences(w, kind, AT, AT - 4), 0);
        EXPECT_EQ(between_fences(w, kind, AT, AT - 2), 1); /* in part */
        EXPECT_EQ(between_fences(w, kind, AT, AT + 2), 1);
        EXPECT_EQ(between_fences(w, kind, -1, AT), 0);
    }

    listen(); /* in different epochs */
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
    EXPECT_EQ(reports(), 0);

    listen(); /* a message proves that the store has happened: one model of memory, so the order is clear */
    MPI_Win_fence(0, w->win);
    if (w->rank == 0) {
        store(w, AT);
        MPI_Send(&x, 1, MPI_INT, 1, 0, w->comm);
    } else if (w->rank == 1) {
        MPI_Recv(&x, 1, MPI_INT, 0, 0, w->comm, MPI_STATUS_IGNORE);
        MPI_Put(&x, 1, MPI_INT, 0, AT, 1, MPI_INT, w->win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    EXPECT_EQ(reports(), 0);

    listen(); /* the other way round: the put is not complete before the fence, whatever a message proves */
    MPI_Win_fence(0, w->win);
    if (w->rank == 1) {
        MPI_Put(&x, 1, MPI_INT, 0, AT, 1, MPI_INT, w->win);
        MPI_Send(&x, 1, MPI_INT, 0, 0, w->comm);
    } else if (w->rank == 0) {
        MPI_Recv(&x, 1, MPI_INT, 1, 0, w->comm, MPI_STATUS_IGNORE);
        store(w, AT);
        MPI_Send(&x, 1, MPI_INT, 2, 0,
                 w->comm); /* a message to another rank: only its arrival proves the order */
    } else {
        MPI_Recv(&x, 1, MPI_INT, 0, 0, w->comm, MPI_STATUS_IGNORE);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    EXPECT_EQ(reports(), 1);
}

/* Stores by memcpy and memset are found too, and all bytes are stored. */
static void blocks(struct window *w)
{
    static char data[6000];
    int x = 5;
    memset(data, 3, sizeof(data));
    for (int way = 0; way < 2; way++) {
        listen();
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
            MPI_Put(&x, 1, MPI_INT, 0, AT + 6000, 1, MPI_INT, w->win); /* just behind */
        MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
        EXPECT_EQ(reports(), 1);
        for (int i = 0; i < 5900 && w->rank == 0; i++)
            if (w->memory[AT + i] != 3)
                EXPECT_EQ(i, -1);
    }
}

static void exposed(struct window *w)
{
    MPI_Group all, first, second;
    int x = 5;
    MPI_Win_get_group(w->win, &all);
    MPI_Group_incl(all, 1, &(int){0}, &first);
    MPI_Group_incl(all, 1, &(int){1}, &second);
    for (int meet = 0; meet < 2; meet++) {
        listen();
        if (w->rank == 0) {
            MPI_Win_post(second, 0, w->win);
            store(w, AT);
            MPI_Win_wait(w->win);
            store(w, AT + 400);
        } else if (w->rank == 1) {
            MPI_Win_start(first, 0, w->win);
            MPI_Put(&x, 1, MPI_INT, 0, meet ? AT : AT + 400, 1, MPI_INT, w->win);
            MPI_Win_complete(w->win);
        }
        EXPECT_EQ(reports(), meet);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&first);
    MPI_Group_free(&second);
}

/* Rank 0 stores while rank 1 holds the lock: before or after the flush that completes the put. */
static void locked(struct window *w, int same_node)
{
    int x = 5;
    for (int meet = 0; meet < 2; meet++) {
        listen();
        if (w->rank == 1) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
            MPI_Put(&x, 1, MPI_INT, 0, AT, 1, MPI_INT, w->win);
            if (!meet)
                MPI_Win_flush(0, w->win);
            MPI_Send(&x, 1, MPI_INT, 0, 0, w->comm);
            MPI_Recv(&x, 1, MPI_INT, 0, 0, w->comm, MPI_STATUS_IGNORE);
            MPI_Win_unlock(0, w->win);
            MPI_Send(&x, 1, MPI_INT, 0, 1, w->comm);
        } else if (w->rank == 0) {
            MPI_Recv(&x, 1, MPI_INT, 1, 0, w->comm, MPI_STATUS_IGNORE);
            store(w, AT);
            MPI_Send(&x, 1, MPI_INT, 1, 0, w->comm);
            MPI_Recv(&x, 1, MPI_INT, 1, 1, w->comm,
                     MPI_STATUS_IGNORE); /* notices about locks arrive before it */
        }
        EXPECT_EQ(reports(), same_node && meet);
    }
}

static int together(MPI_Comm comm, int a, int b)
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
    puts("stores are seen on x86-64 with glibc only");
    MPI_Finalize();
    return 77;
#endif
    for (int flavor = CREATED; flavor <= SHARED; flavor++) {
        struct window w;
        if (!window_open(&w, flavor, SIZE))
            continue;
        fences(&w);
        blocks(&w);
        exposed(&w);
        locked(&w, together(w.comm, 0, 1));
        window_close(&w);
    }
    return mpitest_end();
}

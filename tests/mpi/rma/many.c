/* many.c: a thousand windows at once, of all kinds, are cheap, all of them work, and nothing of them stays when they are freed:
 * neither heap nor mappings nor numbers.
 *
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>

#include "rma/windows.h"

enum { MANY = 250, BYTES = 64 }; /* of each kind */

static MPI_Comm together[FLAVORS]; /* all ranks, or (SHARED) those of this node */
static MPI_Win wins[FLAVORS][MANY];
static char *memory[FLAVORS][MANY], mine[BYTES];

static long many_heap(void)
{
    struct mallinfo2 now = mallinfo2();
    return (long)(now.uordblks + now.hblkhd);
}

static long many_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    long lines = 0;
    for (int c; f && (c = getc(f)) != EOF;)
        lines += c == '\n';
    if (f)
        fclose(f);
    return lines;
}

static void many_make(enum flavor f, int i)
{
    char **at = &memory[f][i];
    MPI_Win *win = &wins[f][i];
    if (f == CREATED)
        MPI_Win_create(mine, BYTES, 1, MPI_INFO_NULL, together[f], win);
    else if (f == ALLOCATED)
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, together[f], at, win);
    else if (f == SHARED)
        MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, together[f], at, win);
    else
        MPI_Win_create_dynamic(MPI_INFO_NULL, together[f], win);
}

/* Uses some windows at the same time; created ones share one piece of memory, dynamic ones have none. */
static void many_use(enum flavor f, int n)
{
    int rank, size;
    MPI_Comm_rank(together[f], &rank);
    MPI_Comm_size(together[f], &size);
    for (int i = 0; i < n && f != DYNAMIC; i += n / 2 - 1) {
        const int value = 100 * i + rank;
        int *at = (int *)(void *)(f == CREATED ? mine : memory[f][i]);
        MPI_Win_fence(0, wins[f][i]);
        MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, wins[f][i]);
        MPI_Win_fence(0, wins[f][i]);
        EXPECT_EQ(*at, 100 * i + (rank + size - 1) % size);
    }
}

/* Creates and frees `n` windows of each kind; returns the heap memory they used at the same time. */
static long round_of(int n)
{
    const long before = many_heap();
    for (int f = 0; f < FLAVORS; f++)
        for (int i = 0; i < n; i++)
            many_make((enum flavor)f, i);
    for (int f = 0; f < FLAVORS; f++)
        many_use((enum flavor)f, n);
    const long taken = many_heap() - before;
    for (int f = 0; f < FLAVORS; f++)
        for (int i = 0; i < n; i++)
            MPI_Win_free(&wins[f][i]);
    return taken;
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int f = 0; f < FLAVORS; f++)
        if (f == SHARED)
            MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &together[f]);
        else
            MPI_Comm_dup(MPI_COMM_WORLD, &together[f]);
    round_of(MANY); /* what is made once for all, and what malloc keeps at hand of pieces of these sizes */
    const long before = many_heap(), maps = many_mappings();
    const long each = round_of(MANY) / (FLAVORS * MANY);
    const long stay = many_heap() - before, maps_stay = many_mappings() - maps;
    if (getenv("MANY_FIGURES"))
        printf("%ld bytes of heap a window; %ld bytes and %ld mappings stay\n", each, stay, maps_stay);
    EXPECT(each <= 2048);
    EXPECT(stay <= 200 * MANY);
    EXPECT(before == 0 || maps_stay <= MANY / 5); /* a sanitizer's heap is no measure: it maps on its own */
    for (int f = 0; f < FLAVORS; f++)
        MPI_Comm_free(&together[f]);
    return mpitest_end();
}

/* many.c: a thousand windows of all kinds at once need little memory, all of them work, and after they are
 * freed no heap memory, mapping or window number remains in use.
 *
 * ranks: 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>

#include "rma/windows.h"

enum { WINDOWS = 250, BYTES = 64 }; /* WINDOWS: number of windows of each kind */

static MPI_Comm window_comms[FLAVORS]; /* all ranks, or (SHARED) those of this node */
static MPI_Win wins[FLAVORS][WINDOWS];
static char *memory[FLAVORS][WINDOWS], mine[BYTES];

static long get_allocated_bytes(void)
{
    struct mallinfo2 now = mallinfo2();
    return (long)(now.uordblks + now.hblkhd);
}

static long count_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    long lines = 0;
    for (int c; f && (c = getc(f)) != EOF;)
        lines += c == '\n';
    if (f)
        fclose(f);
    return lines;
}

static void create_window(enum flavor f, int i)
{
    char **at = &memory[f][i];
    MPI_Win *win = &wins[f][i];
    if (f == CREATED)
        MPI_Win_create(mine, BYTES, 1, MPI_INFO_NULL, window_comms[f], win);
    else if (f == ALLOCATED)
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, window_comms[f], at, win);
    else if (f == SHARED)
        MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, window_comms[f], at, win);
    else
        MPI_Win_create_dynamic(MPI_INFO_NULL, window_comms[f], win);
}

/* Uses some windows at the same time; created windows share one buffer, dynamic windows have no memory. */
static void use_windows(enum flavor f, int n)
{
    int rank, size;
    MPI_Comm_rank(window_comms[f], &rank);
    MPI_Comm_size(window_comms[f], &size);
    for (int i = 0; i < n && f != DYNAMIC; i += n / 2 - 1) {
        const int value = 100 * i + rank;
        int *at = (int *)(void *)(f == CREATED ? mine : memory[f][i]);
        MPI_Win_fence(0, wins[f][i]);
        MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, wins[f][i]);
        MPI_Win_fence(0, wins[f][i]);
        EXPECT_EQ(*at, 100 * i + (rank + size - 1) % size);
    }
}

/* Creates and frees `n` windows of each kind; returns the heap bytes that they used together. */
static long run_round(int n)
{
    const long before = get_allocated_bytes();
    for (int f = 0; f < FLAVORS; f++)
        for (int i = 0; i < n; i++)
            create_window((enum flavor)f, i);
    for (int f = 0; f < FLAVORS; f++)
        use_windows((enum flavor)f, n);
    const long taken = get_allocated_bytes() - before;
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
            MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &window_comms[f]);
        else
            MPI_Comm_dup(MPI_COMM_WORLD, &window_comms[f]);
    run_round(WINDOWS); /* allocates objects that remain, and fills malloc's caches of these sizes */
    const long before = get_allocated_bytes(), maps = count_mappings();
    const long each = run_round(WINDOWS) / (FLAVORS * WINDOWS);
    const long stay = get_allocated_bytes() - before, maps_stay = count_mappings() - maps;
    if (getenv("MANY_FIGURES"))
        printf(
            "%ld bytes of heap per window; %ld bytes and %ld mappings remain after the windows are freed\n",
            each, stay, maps_stay);
    EXPECT(each <= 2048);
    EXPECT(stay <= 200 * WINDOWS);
    /* `before` is 0 if a sanitizer replaces malloc; the sanitizer maps memory itself. */
    EXPECT(before == 0 || maps_stay <= WINDOWS / 5);
    for (int f = 0; f < FLAVORS; f++)
        MPI_Comm_free(&window_comms[f]);
    return mpitest_end();
}

/* put_get.c: put and get of contiguous and strided data on every kind of window, with fences, requests and
 * locks; to the own rank, of no data, and of more data than a frame holds.
 *
 * ranks: 4 1
 * also: FISHPLATE_SHM_CMA=0 FISHPLATE_LAB=SHM_FRAME=1024
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/windows.h"

#define LONG 50000

static int element_value(int rank, int i)
{
    return rank * 1000003 + i * 7;
}

/* Every rank writes a row to every other rank and reads it back. */
static void test_contiguous_rows(struct window *w)
{
    int n = LONG / w->size, *out = malloc(LONG * sizeof(int)), *in = malloc(LONG * sizeof(int));
    for (int i = 0; i < n; i++)
        out[i] = element_value(w->rank, i);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
    for (int t = 0; t < w->size; t++)
        MPI_Put(out, n, MPI_INT, t, MPI_Aint_add(w->bases[t], (MPI_Aint)sizeof(int) * n * w->rank), n,
                MPI_INT, w->win);
    MPI_Win_fence(0, w->win);
    for (int s = 0; s < w->size; s++)
        for (int i = 0; i < n; i += 97)
            EXPECT_EQ(((int *)w->memory)[s * n + i], element_value(s, i));
    for (int t = 0; t < w->size; t++)
        MPI_Get(in + t * n, n, MPI_INT, t, MPI_Aint_add(w->bases[t], (MPI_Aint)sizeof(int) * n * w->rank), n,
                MPI_INT, w->win);
    MPI_Put(out, 0, MPI_INT, 0, w->bases[0], 0, MPI_INT, w->win);
    MPI_Put(out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w->win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    for (int t = 0; t < w->size; t++)
        for (int i = 0; i < n; i += 97)
            EXPECT_EQ(in[t * n + i], element_value(w->rank, i));
    free(out);
    free(in);
}

/* Transfers columns of a matrix at the target to and from a contiguous row at the origin, and the reverse. */
static void test_columns(struct window *w)
{
    enum { N = 100 };
    int row[N], back[2 * N], t = (w->rank + 1) % w->size, s = (w->rank + w->size - 1) % w->size;
    MPI_Datatype column, spread, mixed;
    MPI_Type_vector(N, 1, N, MPI_INT, &column);
    MPI_Type_vector(N, 1, 2, MPI_INT, &spread);
    MPI_Type_indexed(3, (int[]){1, 3, N - 4}, (int[]){0, 7, 20}, MPI_INT, &mixed);
    MPI_Type_commit(&column);
    MPI_Type_commit(&spread);
    MPI_Type_commit(&mixed);
    memset(w->memory, 0, N * N * sizeof(int));
    memset(back, -1, sizeof(back));
    for (int i = 0; i < N; i++)
        row[i] = element_value(w->rank, i);
    MPI_Win_fence(0, w->win);
    MPI_Put(row, N, MPI_INT, t, MPI_Aint_add(w->bases[t], 12), 1, column, w->win);
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < N; i++) {
        EXPECT_EQ(((int *)w->memory)[i * N + 3], element_value(s, i));
        EXPECT_EQ(((int *)w->memory)[i * N + 4], 0);
    }
    MPI_Get(back, 1, spread, t, MPI_Aint_add(w->bases[t], 12), 1, column, w->win);
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < N; i++)
        EXPECT_EQ(back[2 * i], element_value(w->rank, i));
    EXPECT_EQ(back[1], -1);
    MPI_Put(row, N, MPI_INT, t, w->bases[t], 1, mixed, w->win);
    MPI_Win_fence(0, w->win);
    EXPECT_EQ(((int *)w->memory)[7], element_value(s, 1));
    EXPECT_EQ(((int *)w->memory)[20], element_value(s, 4));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
    MPI_Type_free(&column);
    MPI_Type_free(&spread);
    MPI_Type_free(&mixed);
}

/* Request-based operations complete one by one while all ranks are locked (MPI_Win_lock_all). */
static void test_requests(struct window *w)
{
    enum { N = 40 };
    int out[N], in[N], before[N];
    MPI_Request r[N];
    MPI_Barrier(w->comm);
    MPI_Win_lock_all(0, w->win);
    for (int i = 0; i < N; i++) {
        int t = i % w->size;
        out[i] = element_value(w->rank, i);
        MPI_Rput(&out[i], 1, MPI_INT, t, MPI_Aint_add(w->bases[t], (MPI_Aint)sizeof(int) * (w->rank * N + i)),
                 1, MPI_INT, w->win, &r[i]);
    }
    MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
    MPI_Win_flush_all(w->win);
    for (int i = 0; i < N; i++) {
        int t = i % w->size;
        MPI_Rget(&in[i], 1, MPI_INT, t, MPI_Aint_add(w->bases[t], (MPI_Aint)sizeof(int) * (w->rank * N + i)),
                 1, MPI_INT, w->win, &r[i]);
    }
    MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++)
        EXPECT_EQ(in[i], out[i]);
    for (int i = 0; i < N; i++) {
        int t = i % w->size;
        MPI_Rget_accumulate(&out[i], 1, MPI_INT, &before[i], 1, MPI_INT, t,
                            MPI_Aint_add(w->bases[t], (MPI_Aint)sizeof(int) * (w->rank * N + i)), 1, MPI_INT,
                            MPI_SUM, w->win, &r[i]);
    }
    for (int i = 0, flag = 0; i < N; i++, flag = 0)
        while (!flag)
            MPI_Test(&r[i], &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++)
        EXPECT_EQ(before[i], out[i]);
    MPI_Raccumulate(&out[0], 1, MPI_INT, 0, MPI_Aint_add(w->bases[0], (MPI_Aint)sizeof(int) * w->rank * N), 1,
                    MPI_INT, MPI_SUM, w->win, &r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Win_flush_local_all(w->win);
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
    if (w->rank == 0)
        for (int s = 0; s < w->size; s++)
            EXPECT_EQ(((int *)w->memory)[s * N], 3 * element_value(s, 0));
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        struct window w;
        if (!window_open(&w, flavor, LONG * sizeof(int)))
            continue;
        test_contiguous_rows(&w);
        test_columns(&w);
        test_requests(&w);
        window_close(&w);
    }
    return mpitest_end();
}

/* target_copies.c: puts and gets on memory of MPI_Win_create on one node, which a target that waits inside
 * MPI executes or shares: all lengths, many at once, several origins at one target, all ranks at all
 * ranks; and a target that never calls MPI, whose bytes arrive nevertheless.
 *
 * ranks: 4 2
 * nodes: no
 * env: HELP=true
 * also: HELP=false
 * also: HELP=auto
 * also: FISHPLATE_SPIN_US=0 FISHPLATE_LAB=YIELDS=0
 * also: FISHPLATE_PROGRESS=thread
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "counters.h"
#include "rma/windows.h"

enum { WINDOW_BYTES = 5 << 20, SHORT = 300, LONG = 1 << 20, MIN_LENGTH = 8, LONG_ROUNDS = 200 };

static unsigned char *bytes;

static unsigned char data_byte(int rank, size_t i)
{
    return (unsigned char)(rank * 37 + i * 7 + i / 251);
}

static void expect_bytes(const unsigned char *found, int rank, size_t from, size_t len)
{
    size_t wrong = 0;
    for (size_t i = 0; i < len; i++)
        wrong += found[i] != data_byte(rank, from + i);
    EXPECT_EQ(wrong, 0u);
}

/* Rank 0 waits in a barrier while each other rank accesses a part of its memory. */
static void test_lengths(struct window *w)
{
    static const int some[] = {1,    2,     7,      8,      9,      16,      63,
                               64,   65,    400,    421,    422,    433,     500,
                               513,  4096,  4097,   32768,  65536,  262143,  262144,
                               9999, 70000, 300000, 524289, 600000, 1 << 20, (1 << 20) + 1};
    const MPI_Aint at = (MPI_Aint)w->rank * (LONG + 64);
    unsigned char *back = malloc(LONG + 1);
    MPI_Barrier(w->comm);
    if (w->rank != 0) {
        MPI_Win_lock_all(0, w->win);
        for (size_t k = 0; k < sizeof(some) / sizeof(some[0]); k++) {
            MPI_Put(bytes, some[k], MPI_BYTE, 0, at, some[k], MPI_BYTE, w->win);
            MPI_Win_flush(0, w->win);
            memset(back, 0, (size_t)some[k]);
            MPI_Get(back, some[k], MPI_BYTE, 0, at, some[k], MPI_BYTE, w->win);
            MPI_Win_flush(0, w->win);
            expect_bytes(back, w->rank, 0, (size_t)some[k]);
        }
        MPI_Win_unlock_all(w->win);
    }
    MPI_Barrier(w->comm);
    for (int r = 1; r < w->size && w->rank == 0; r++)
        expect_bytes((unsigned char *)w->memory + r * (LONG + 64), r, 0, LONG + 1);
    free(back);
    MPI_Barrier(w->comm);
}

/* All ranks access all ranks: many short operations of all lengths and long ones in between, with one
 * flush. */
static void test_all_to_all(struct window *w)
{
    enum { N = 200 };
    unsigned char *back = malloc(N * SHORT + 3 * 300000);
    memset(w->memory, 0, WINDOW_BYTES);
    for (int to = 1; to < w->size; to++) {
        const int target = (w->rank + to) % w->size;
        const MPI_Aint base = (MPI_Aint)w->rank * 1200000;
        MPI_Barrier(w->comm);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win);
        for (int k = 0; k < N; k++)
            MPI_Put(bytes + k * SHORT, k % SHORT + 1, MPI_BYTE, target, base + k * SHORT, k % SHORT + 1,
                    MPI_BYTE, w->win);
        for (int k = 0; k < 3; k++)
            MPI_Put(bytes + k * 300000, 300000, MPI_BYTE, target, base + N * SHORT + k * 300000, 300000,
                    MPI_BYTE, w->win);
        MPI_Win_flush(target, w->win);
        for (int k = 0; k < N; k++)
            MPI_Get(back + k * SHORT, k % SHORT + 1, MPI_BYTE, target, base + k * SHORT, k % SHORT + 1,
                    MPI_BYTE, w->win);
        for (int k = 0; k < 3; k++)
            MPI_Get(back + N * SHORT + k * 300000, 300000, MPI_BYTE, target, base + N * SHORT + k * 300000,
                    300000, MPI_BYTE, w->win);
        MPI_Win_unlock(target, w->win);
        for (int k = 0; k < N; k++)
            expect_bytes(back + k * SHORT, w->rank, (size_t)k * SHORT, (size_t)k % SHORT + 1);
        for (int k = 0; k < 3; k++)
            expect_bytes(back + N * SHORT + k * 300000, w->rank, (size_t)k * 300000, 300000);
    }
    free(back);
    MPI_Barrier(w->comm);
}

/* Rank 0 polls its own memory and makes no MPI call. */
static void test_target_computes(struct window *w)
{
    const volatile long *word = (const volatile long *)w->memory;
    enum { N = 2000 };
    memset(w->memory, 0, 64);
    MPI_Barrier(w->comm);
    if (w->rank == 0)
        while (*word != N)
            sched_yield();
    if (w->rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
        for (long k = 1; k <= N; k++) {
            long seen = 0;
            MPI_Put(&k, 1, MPI_LONG, 0, 0, 1, MPI_LONG, w->win);
            MPI_Win_flush(0, w->win);
            MPI_Get(&seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, w->win);
            MPI_Win_flush(0, w->win);
            EXPECT_EQ(seen, k);
        }
        MPI_Win_unlock(0, w->win);
    }
    MPI_Barrier(w->comm);
}

/* Pieces of different lengths are put and read back, so that the target's copies are checked. */
static void test_round_trips(struct window *w, int pieces, int step)
{
    static unsigned char back[3 * LONG];
    for (int k = 0; k < pieces; k++)
        MPI_Put(bytes + k * step, step - k, MPI_BYTE, 0, k * step, step - k, MPI_BYTE, w->win);
    MPI_Win_flush(0, w->win);
    memset(back, 0, (size_t)(pieces * step));
    for (int k = 0; k < pieces; k++)
        MPI_Get(back + k * step, step - k, MPI_BYTE, 0, k * step, step - k, MPI_BYTE, w->win);
    MPI_Win_flush(0, w->win);
    for (int k = 0; k < pieces; k++)
        expect_bytes(back + k * step, w->rank, (size_t)k * (size_t)step, (size_t)(step - k));
    unsigned char zeros[64] = {0};
    for (int at = 0; at < pieces * step; at += step)
        MPI_Put(zeros, MIN_LENGTH, MPI_BYTE, 0, at, MIN_LENGTH, MPI_BYTE, w->win);
    MPI_Win_flush(0, w->win);
}

/* Repeats accesses until a polling target has executed some of them; two ranks that share a core do not share
 * long copies. */
static void test_polling_target_executes_operations(struct window *w, MPI_T_pvar_handle helped)
{
    static const struct {
        int pieces, step;
    } tries[] = {{1, 8}, {10, 20}, {3, 400000}, {1, LONG}};
    MPI_Request request;
    if (w->size > 2 || strcmp(getenv("HELP"), "true") != 0 || getenv("FISHPLATE_SPIN_US"))
        return;
    for (size_t k = 0; k < sizeof(tries) / sizeof(tries[0]); k++) {
        MPI_Barrier(w->comm);
        if (w->rank == 0) {
            MPI_Irecv(NULL, 0, MPI_INT, 1, 0, w->comm, &request);
            for (int done = 0; !done;)
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        if (w->rank == 1) {
            const unsigned long long enough = read_counter(helped) + (unsigned)(2 * tries[k].pieces);
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
            for (int n = 0; read_counter(helped) < enough && (tries[k].step < SHORT || n < LONG_ROUNDS); n++)
                test_round_trips(w, tries[k].pieces, tries[k].step);
            MPI_Win_unlock(0, w->win);
            MPI_Send(NULL, 0, MPI_INT, 0, 0, w->comm);
        }
    }
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    struct window w;
    MPI_Info info;
    counters_begin();
    MPI_T_pvar_handle helped = counter_open("rma_target_copies");
    mpitest_begin(&argc, &argv);
    window_open(&w, CREATED, WINDOW_BYTES);
    MPI_Info_create(&info);
    MPI_Info_set(info, "fishplate_help", getenv("HELP"));
    MPI_Win_set_info(w.win, info);
    MPI_Info_free(&info);
    bytes = malloc(WINDOW_BYTES);
    for (size_t i = 0; i < WINDOW_BYTES; i++)
        bytes[i] = data_byte(w.rank, i);
    test_lengths(&w);
    test_all_to_all(&w);
    test_target_computes(&w);
    test_polling_target_executes_operations(&w, helped);
    free(bytes);
    window_close(&w);
    counters_end();
    return mpitest_end();
}

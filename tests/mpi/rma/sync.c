/* sync.c: every synchronisation orders the accesses that it must order: data is written, the
 * synchronisation reports its arrival, and the reader checks the data.
 *
 * ranks: 4 2
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rma/windows.h"

#define ROUNDS 8

/* A ring in which every rank exposes its window to its left neighbour and writes to its right one. */
static void test_post_start(struct window *w, int with_test)
{
    MPI_Group all, to, from;
    int right = (w->rank + 1) % w->size, left = (w->rank + w->size - 1) % w->size;
    MPI_Win_get_group(w->win, &all);
    MPI_Group_incl(all, 1, &right, &to);
    MPI_Group_incl(all, 1, &left, &from);
    for (int k = 0; k < ROUNDS; k++) {
        int out = w->rank * 100 + k, flag = 0;
        MPI_Win_post(from, 0, w->win);
        MPI_Win_start(to, 0, w->win);
        MPI_Put(&out, 1, MPI_INT, right, w->bases[right], 1, MPI_INT, w->win);
        MPI_Accumulate(&out, 1, MPI_INT, right, MPI_Aint_add(w->bases[right], 8), 1, MPI_INT, MPI_REPLACE,
                       w->win);
        MPI_Win_complete(w->win);
        while (with_test && !flag)
            MPI_Win_test(w->win, &flag);
        if (!with_test)
            MPI_Win_wait(w->win);
        EXPECT_EQ(((int *)w->memory)[0], left * 100 + k);
        EXPECT_EQ(((int *)w->memory)[2], left * 100 + k);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

/* One target with all other ranks as origins, and the reverse; empty groups have no effect. */
static void test_many_to_one(struct window *w)
{
    MPI_Group others = window_get_other_ranks(w), all, root;
    MPI_Win_get_group(w->win, &all);
    MPI_Group_incl(all, 1, (int[]){0}, &root);
    for (int k = 0; k < ROUNDS; k++) {
        int out = w->rank + k, in = -1;
        if (w->rank == 0) {
            ((int *)w->memory)[w->size] = k;
            MPI_Win_post(others, 0, w->win);
            MPI_Win_wait(w->win);
            for (int s = 1; s < w->size; s++)
                EXPECT_EQ(((int *)w->memory)[s], s + k);
        } else {
            MPI_Win_start(root, 0, w->win);
            MPI_Put(&out, 1, MPI_INT, 0, MPI_Aint_add(w->bases[0], 4 * w->rank), 1, MPI_INT, w->win);
            MPI_Get(&in, 1, MPI_INT, 0, MPI_Aint_add(w->bases[0], 4 * w->size), 1, MPI_INT, w->win);
            MPI_Win_complete(w->win);
            EXPECT_EQ(in, k);
        }
    }
    MPI_Win_post(MPI_GROUP_EMPTY, 0, w->win);
    MPI_Win_start(MPI_GROUP_EMPTY, 0, w->win);
    MPI_Win_complete(w->win);
    MPI_Win_wait(w->win);
    MPI_Group_free(&others);
    MPI_Group_free(&all);
    MPI_Group_free(&root);
    MPI_Barrier(w->comm);
}

/* Two words change together under exclusive locks; readers with shared locks never see only one of them
 * changed. */
static void test_exclusive(struct window *w)
{
    memset(w->memory, 0, 4096);
    MPI_Barrier(w->comm);
    for (int k = 0; k < ROUNDS; k++) {
        int t = k % w->size, pair[2];
        if (w->rank % 2 == 0) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t, 0, w->win);
            MPI_Get(pair, 2, MPI_INT, t, w->bases[t], 2, MPI_INT, w->win);
            MPI_Win_flush_local(t, w->win);
            EXPECT_EQ(pair[0], pair[1]);
            pair[0]++;
            MPI_Put(&pair[0], 1, MPI_INT, t, w->bases[t], 1, MPI_INT, w->win);
            MPI_Win_flush(t, w->win);
            MPI_Put(&pair[0], 1, MPI_INT, t, MPI_Aint_add(w->bases[t], 4), 1, MPI_INT, w->win);
            MPI_Win_unlock(t, w->win);
        } else {
            MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w->win);
            MPI_Get(pair, 2, MPI_INT, t, w->bases[t], 2, MPI_INT, w->win);
            MPI_Win_unlock(t, w->win);
            EXPECT_EQ(pair[0], pair[1]);
        }
    }
    MPI_Barrier(w->comm);
    int writers = (w->size + 1) / 2, mine = ROUNDS / w->size + (w->rank < ROUNDS % w->size);
    MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win);
    EXPECT_EQ(((int *)w->memory)[0], writers * mine);
    MPI_Win_unlock(w->rank, w->win);
    MPI_Barrier(w->comm);
}

/* All ranks request one lock repeatedly: no rank waits forever. */
static void test_lock_fairness(struct window *w)
{
    int turns = 0, one = 1, all[64] = {0};
    memset(w->memory, 0, 4096);
    MPI_Barrier(w->comm);
    for (int order = 0; order < 5 * w->size;) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
        MPI_Fetch_and_op(&one, &order, MPI_INT, 0, w->bases[0], MPI_SUM, w->win);
        MPI_Win_unlock(0, w->win);
        turns++;
    }
    MPI_Allgather(&turns, 1, MPI_INT, all, 1, MPI_INT, w->comm);
    for (int s = 0; s < w->size; s++)
        EXPECT(all[s] > 0);
    MPI_Barrier(w->comm);
}

/* The flag is written after the data was flushed: a rank that sees the flag sees the data. */
static void test_flag_after_data(struct window *w)
{
    int t = (w->rank + 1) % w->size, seen = 0, data[8], in[8];
    memset(w->memory, 0, 4096);
    MPI_Barrier(w->comm);
    MPI_Win_lock_all(0, w->win);
    for (int k = 1; k <= ROUNDS; k++) {
        for (int i = 0; i < 8; i++)
            data[i] = k * 8 + i;
        MPI_Put(data, 8, MPI_INT, t, MPI_Aint_add(w->bases[t], 64), 8, MPI_INT, w->win);
        MPI_Win_flush(t, w->win);
        MPI_Accumulate(&k, 1, MPI_INT, t, w->bases[t], 1, MPI_INT, MPI_REPLACE, w->win);
        MPI_Win_flush(t, w->win);
        do {
            MPI_Fetch_and_op(NULL, &seen, MPI_INT, w->rank, w->bases[w->rank], MPI_NO_OP, w->win);
            MPI_Win_flush(w->rank, w->win);
            int flag;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w->comm, &flag, MPI_STATUS_IGNORE);
        } while (seen < k);
        MPI_Get(in, 8, MPI_INT, w->rank, MPI_Aint_add(w->bases[w->rank], 64), 8, MPI_INT, w->win);
        MPI_Win_flush(w->rank, w->win);
        for (int i = 0; i < 8; i++)
            EXPECT_EQ(in[i], k * 8 + i);
        MPI_Barrier(w->comm);
    }
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
}

/* Ranks pass a token around. The waiting rank polls its own memory and makes no waiting call: the frames
 * that carry the token must be handled nevertheless. */
static void test_polled_token(struct window *w, int by_lock)
{
    const int right = (w->rank + 1) % w->size;
    int token = 0, locked = 0;
    memset(w->memory, 0, 64);
    MPI_Barrier(w->comm);
    for (int k = 1; k <= ROUNDS; k++) {
        while (token != k && !(w->rank == 0 && k == 1)) {
            if (by_lock)
                MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win);
            else if (!locked++)
                MPI_Win_lock_all(0, w->win);
            MPI_Fetch_and_op(NULL, &token, MPI_INT, w->rank, w->bases[w->rank], MPI_NO_OP, w->win);
            if (by_lock)
                MPI_Win_unlock(w->rank, w->win);
            else
                MPI_Win_flush(w->rank, w->win);
        }
        if (locked)
            MPI_Win_unlock_all(w->win);
        locked = 0;
        const int next = k + (right == 0);
        MPI_Win_lock(MPI_LOCK_SHARED, right, 0, w->win);
        MPI_Accumulate(&next, 1, MPI_INT, right, w->bases[right], 1, MPI_INT, MPI_REPLACE, w->win);
        MPI_Win_unlock(right, w->win);
    }
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    mpitest_begin(&argc, &argv);
    for (int flavor = 0; flavor < FLAVORS; flavor++) {
        struct window w;
        if (!window_open(&w, flavor, 4096))
            continue;
        test_post_start(&w, 0);
        test_post_start(&w, 1);
        test_many_to_one(&w);
        test_exclusive(&w);
        test_lock_fairness(&w);
        test_flag_after_data(&w);
        test_polled_token(&w, 0);
        test_polled_token(&w, 1);
        window_close(&w);
    }
    return mpitest_end();
}

/* lock.c: contended locks, requested by ranks of the target's node and of other nodes at once: a writer
 * holds the lock alone, readers see consistent values, and the target's processor is not needed.
 *
 * ranks: 4 2
 * also: FISHPLATE_LAB=YIELDS=0 FISHPLATE_SPIN_US=0
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdatomic.h>

#include "counters.h"
#include "rma/windows.h"

#define ROUNDS 25

static MPI_T_pvar_handle far_locks;

static int is_on_one_node(MPI_Comm comm)
{
    MPI_Comm node;
    int here, all;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_size(comm, &all);
    MPI_Comm_free(&node);
    return here == all;
}

/* Adds 1 to both words of the target by get and put: a lost round or a half-written pair would show a
 * second writer. */
static void increment_both_words(struct window *w, int target)
{
    long long pair[2] = {0, 0};
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win);
    MPI_Get(pair, 2, MPI_LONG_LONG, target, w->bases[target], 2, MPI_LONG_LONG, w->win);
    MPI_Win_flush(target, w->win);
    EXPECT_EQ(pair[0], pair[1]);
    pair[0]++;
    pair[1]++;
    MPI_Put(&pair[0], 1, MPI_LONG_LONG, target, w->bases[target], 1, MPI_LONG_LONG, w->win);
    MPI_Win_flush(target, w->win);
    MPI_Put(&pair[1], 1, MPI_LONG_LONG, target, MPI_Aint_add(w->bases[target], 8), 1, MPI_LONG_LONG, w->win);
    MPI_Win_unlock(target, w->win);
}

static void expect_equal_words(struct window *w, int target)
{
    long long first = -1, second = -2;
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win);
    MPI_Get(&first, 1, MPI_LONG_LONG, target, w->bases[target], 1, MPI_LONG_LONG, w->win);
    MPI_Win_flush(target, w->win);
    MPI_Get(&second, 1, MPI_LONG_LONG, target, MPI_Aint_add(w->bases[target], 8), 1, MPI_LONG_LONG, w->win);
    MPI_Win_unlock(target, w->win);
    EXPECT_EQ(first, second);
}

/* All ranks contend for the locks, the targets too, with a different mixture of reads and writes at each
 * rank. */
static void test_contention(struct window *w)
{
    for (int k = 0; k < ROUNDS; k++)
        for (int target = 0; target < 2; target++) {
            if ((k + w->rank) % 3 == 0)
                expect_equal_words(w, target);
            increment_both_words(w, target);
            if ((k * w->rank) % 4 == 1)
                expect_equal_words(w, target);
        }
    MPI_Barrier(w->comm);
    if (w->rank < 2)
        EXPECT_EQ(((long long *)(void *)w->memory)[0], ROUNDS * w->size);
    MPI_Barrier(w->comm);
}

/* The target makes no MPI call until the other ranks have finished. */
static void test_target_computes(struct window *w)
{
    _Atomic long long *last = (_Atomic long long *)(void *)(w->memory + 8);
    const long long all = ROUNDS * w->size + ROUNDS * (w->size - 1);
    if (w->rank == 0)
        while (atomic_load(last) < all)
            sched_yield();
    for (int k = 0; k < ROUNDS && w->rank != 0; k++) {
        increment_both_words(w, 0);
        expect_equal_words(w, 0);
    }
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    counters_begin();
    far_locks = counter_open("rma_remote_locks");
    mpitest_begin(&argc, &argv);
    const int one_node = is_on_one_node(MPI_COMM_WORLD);
    for (enum flavor flavor = CREATED; flavor < FLAVORS; flavor++) {
        struct window w;
        if (!window_open(&w, flavor, 64))
            continue;
        test_contention(&w);
        if (flavor == ALLOCATED)
            test_target_computes(&w);
        window_close(&w);
    }
    unsigned long long mine = read_counter(far_locks), all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(one_node ? all == 0 : all > 0);
    counters_end();
    return mpitest_end();
}

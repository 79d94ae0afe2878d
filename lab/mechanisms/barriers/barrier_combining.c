/* barrier_combining.c: ranks synchronise in groups of n at a counter of the group's first rank, the first
 * ranks again in groups of n, and so on [Hoefler05 2.2.1.2]. Each group's first rank releases its group:
 * the release follows the tree of the check-in downwards, and no rank sends to more than n - 1 others in a
 * round.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/barriers/signal_tree.h"

/* Releases the groups that this rank led, in the reverse order of the rounds. */
static void combining_release(const struct coll_shape *shape, struct sched *s, int64_t step)
{
    const int n = shape->parameter[0], rank = shape->rank, size = shape->size;
    for (; step >= 1; step /= n)
        for (int64_t other = rank + step; other < rank + step * n && other < size; other += step)
            sched_signal(s, (int)other);
}

static void barrier_combining_generate(const struct coll_shape *shape, struct sched *s)
{
    const int n = shape->parameter[0], rank = shape->rank;
    /* distance between members of a group in the round in which this rank is not the first of its group */
    int64_t step = 1;
    barrier_add_games(s, rank, shape->size, n);
    while (step < shape->size && rank % (step * n) == 0)
        step *= n;
    if (rank > 0) {
        sched_await(s, (int)(rank - rank % (step * n)));
        sched_fence(s);
    }
    combining_release(shape, s, step / n);
}

COLL_ALGORITHM(barrier_combining, .name = "combining", .kind = COLL_BARRIER,
               .generate = barrier_combining_generate, .parameter = {{"n", 2, BARRIER_PARTNERS_MAX, 4}},
               .doc = "groups of n meet at their first rank, up a tree and down again");

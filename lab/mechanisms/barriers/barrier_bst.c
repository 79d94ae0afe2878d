/* barrier_bst.c: the binomial spanning tree in which the parent of a rank is the rank without its leftmost 1,
 * and its children are rank + 2^i for every 2^i > rank [Hoefler05 2.2.1.6]. The early ranks have their
 * deepest subtrees last, so that one child of the root finishes in each round.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

/* Distance from a rank to its first child: the smallest power of two above rank. The distance to the
 * parent is half of it. */
static int64_t bst_first_child_distance(int rank)
{
    int64_t power = 1;
    while (power <= rank)
        power *= 2;
    return power;
}

static void barrier_bst_generate(const struct coll_shape *shape, struct sched *s)
{
    const int rank = shape->rank, size = shape->size;
    const int64_t first = bst_first_child_distance(rank);
    const int parent = (int)(rank - first / 2);
    int64_t last = first;
    for (int64_t power = first; rank + power < size; power *= 2, last = power)
        sched_await(s, (int)(rank + power));
    sched_fence(s);
    if (rank > 0) {
        sched_signal(s, parent);
        sched_await(s, parent);
        sched_fence(s);
    }
    for (int64_t power = last / 2; power >= first; power /= 2)
        sched_signal(s, (int)(rank + power));
}

COLL_ALGORITHM(barrier_bst, .name = "bst", .kind = COLL_BARRIER, .generate = barrier_bst_generate,
               .doc = "up and down the binomial spanning tree");

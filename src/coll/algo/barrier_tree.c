/* barrier_tree.c: signals climb a binomial tree and come down again: fewest messages, twice the depth.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/phases.h"

static void generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    tree_signal_up(s, &t);
    tree_signal_down(s, &t);
}

COLL_ALGORITHM(barrier_tree, .name = "tree", .kind = COLL_BARRIER, .generate = generate,
               .doc = "up and down a binomial tree");

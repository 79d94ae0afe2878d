/* barrier_inter.c: each group gathers at its rank 0, the two rank 0s exchange signals, and each releases its
 * group.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/algo/parts/phases.h"

static void barrier_inter_generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    tree_signal_up(s, &t);
    if (shape->rank == 0) {
        sched_signal(s, PEER_REMOTE(0));
        sched_await(s, PEER_REMOTE(0));
    }
    tree_signal_down(s, &t);
}

COLL_ALGORITHM(barrier_inter, .name = "inter", .kind = COLL_BARRIER, .needs = NEED_INTER,
               .generate = barrier_inter_generate, .doc = "two trees whose roots meet");

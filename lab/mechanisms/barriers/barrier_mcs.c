/* barrier_mcs.c: arrivals climb a tree in which every node has n children, and the release descends a tree
 * with `release` children: many on the way up, where waiting for several costs little, few on the way down,
 * where a rank signals its children one after the other [Hoefler05 2.2.1.5].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/barriers/signal_tree.h"

static void barrier_mcs_generate(const struct coll_shape *shape, struct sched *s)
{
    barrier_add_tree_up(s, shape->rank, shape->size, shape->parameter[0]);
    barrier_add_tree_down(s, shape->rank, shape->size, shape->parameter[1]);
}

COLL_ALGORITHM(barrier_mcs, .name = "mcs", .kind = COLL_BARRIER, .generate = barrier_mcs_generate,
               .parameter = {{"n", 1, BARRIER_PARTNERS_MAX, 4}, {"release", 1, BARRIER_PARTNERS_MAX, 2}},
               .doc = "up a tree with n children a rank, down one with `release`");

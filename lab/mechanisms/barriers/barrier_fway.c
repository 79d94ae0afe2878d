/* barrier_fway.c: the tournament with games of f ranks: fewer rounds, but the winner of a game waits for f -
 * 1 others [Hoefler05 2.2.1.4].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/barriers/signal_tree.h"

static void barrier_fway_generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    barrier_add_games(s, shape->rank, shape->size, shape->parameter[0]);
    tree_signal_down(s, &t);
}

COLL_ALGORITHM(barrier_fway, .name = "fway", .kind = COLL_BARRIER, .generate = barrier_fway_generate,
               .parameter = {{"f", 2, BARRIER_PARTNERS_MAX, 4}},
               .doc = "tournament with f players a game; the winner notifies all ranks down a binomial tree");

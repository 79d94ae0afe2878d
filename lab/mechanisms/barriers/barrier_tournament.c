/* barrier_tournament.c: two ranks play in each game, the lower one wins and plays the next round; the
 * champion, rank 0, signals all ranks down a binomial tree [Hoefler05 2.2.1.3].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/barriers/signal_tree.h"

static void barrier_tournament_generate(const struct coll_shape *shape, struct sched *s)
{
    struct tree t = tree_binomial(shape->rank, shape->size, 0);
    barrier_add_games(s, shape->rank, shape->size, 2);
    tree_signal_down(s, &t);
}

COLL_ALGORITHM(
    barrier_tournament, .name = "tournament", .kind = COLL_BARRIER, .generate = barrier_tournament_generate,
    .doc = "tournament with two players a game; the winner notifies all ranks down a binomial tree");

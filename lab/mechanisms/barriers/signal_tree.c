/* signal_tree.c: adds the rounds of a tournament, or the levels of an n-ary tree, to a schedule
 * (signal_tree.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/barriers/signal_tree.h"

void barrier_add_games(struct sched *s, int rank, int size, int players)
{
    for (int64_t step = 1; step < size; step *= players) {
        const int64_t group = step * players;
        if (rank % group != 0) {
            sched_signal(s, (int)(rank - rank % group));
            return;
        }
        for (int64_t other = rank + step; other < rank + group && other < size; other += step)
            sched_await(s, (int)other);
        sched_fence(s);
    }
}

void barrier_add_tree_up(struct sched *s, int rank, int size, int fan)
{
    for (int64_t child = (int64_t)rank * fan + 1; child <= (int64_t)rank * fan + fan && child < size; child++)
        sched_await(s, (int)child);
    sched_fence(s);
    if (rank > 0)
        sched_signal(s, (rank - 1) / fan);
}

void barrier_add_tree_down(struct sched *s, int rank, int size, int fan)
{
    if (rank > 0)
        sched_await(s, (rank - 1) / fan);
    sched_fence(s);
    for (int64_t child = (int64_t)rank * fan + 1; child <= (int64_t)rank * fan + fan && child < size; child++)
        sched_signal(s, (int)child);
}

/* barrier.h: what barrier algorithms share: the games of a tournament and n-ary trees of signals. Pure, like everything in
 * this folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_ALGO_PARTS_BARRIER_H
#define FP_COLL_ALGO_PARTS_BARRIER_H

#include "coll/algo/parts/phases.h"

/* The upper limit of n and f. With more partners than ranks an algorithm has one round. */
#define BARRIER_PARTNERS_MAX 64

/* Check-in by games of `players`: in round k the ranks that are multiples of players^k meet in groups. The lowest of a group
 * waits for the others and goes on to the next round; they are out. Rank 0 has then heard of everybody. */
void barrier_games(struct sched *s, int rank, int size, int players);

/* A tree whose nodes have up to `fan` children: rank * fan + 1 and following. */
void barrier_tree_up(struct sched *s, int rank, int size, int fan);
void barrier_tree_down(struct sched *s, int rank, int size, int fan);

#endif

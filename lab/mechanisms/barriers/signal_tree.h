/* signal_tree.h: the games of a tournament and n-ary trees of signals, shared by several barriers. Pure, like everything in
 * this folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_BARRIERS_SIGNAL_TREE_H
#define FP_LAB_MECHANISMS_BARRIERS_SIGNAL_TREE_H

#include "coll/algo/parts/phases.h"

/* Check-in by games of `players`: in round k the ranks that are multiples of players^k form groups. The lowest rank of a
 * group awaits a signal of each other rank of the group and goes on to the next round. After the last round a chain of signals has
 * led from every rank to rank 0. */
void barrier_games(struct sched *s, int rank, int size, int players);

/* A tree whose nodes have up to `fan` children: rank * fan + 1 and following. */
void barrier_tree_up(struct sched *s, int rank, int size, int fan);
void barrier_tree_down(struct sched *s, int rank, int size, int fan);

#endif

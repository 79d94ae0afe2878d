/* signal_tree.h: games of a tournament and n-ary trees of signals, used by several barriers. No state.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_BARRIERS_SIGNAL_TREE_H
#define FP_LAB_MECHANISMS_BARRIERS_SIGNAL_TREE_H

#include "coll/algo/parts/phases.h"

/* Check-in by games of `players` ranks: in round k the ranks that are multiples of players^k form groups. The
 * lowest rank of a group waits for a signal of each other rank of the group and takes part in the next round.
 * After the last round a chain of signals has led from every rank to rank 0. */
void barrier_add_games(struct sched *s, int rank, int size, int players);

/* Adds signals up or down a tree in which the children of a rank are rank * fan + 1 to rank * fan + fan. */
void barrier_add_tree_up(struct sched *s, int rank, int size, int fan);
void barrier_add_tree_down(struct sched *s, int rank, int size, int fan);

#endif

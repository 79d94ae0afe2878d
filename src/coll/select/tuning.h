/* tuning.h: chooses the schedule of broadcasts, gathers, scatters, allgathers, alltoalls, reduces and
 * allreduces of ranks on several nodes, or multicast, for each class of sizes: a client of tune/tune.h.
 * Candidate 0 is the rules' choice. From the TUNING_AT-th blocking call of a class on, calls that are further
 * and further apart begin with a session: the ranks run candidates a few times with data of the call's size,
 * agree on the greatest time (an allreduce), and report that to a tuner each, so that all choose alike.
 * Sessions spend a share of the program's time. Nonblocking and persistent calls use the choice; they never
 * measure, since sessions wait for all ranks.
 *
 * Another algorithm adds in another order. In deterministic mode reductions keep to the rules.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SELECT_TUNING_H
#define FP_COLL_SELECT_TUNING_H

#include "coll/select/call.h"
#include "tune/tune.h"

#define TUNING_AT      24
#define TUNING_CLASSES 34

struct coll_candidate {
    struct coll_choice choice;
    double predicted; /* us, by the model */
};

/* Replaces *choice, which the rules selected, by the candidate that the tuner prefers for this call. */
int tuning_select(struct call *call, struct coll_choice *choice);
void tuning_close(struct coll_state *state);

/* ---- pure: candidates.c ---- */

/* The class of a call of `bytes` bytes, -1: none; the most bytes of a class. A power of two is a class of its
 * own, and so are the sizes from one to the next: protocols change at powers of two, and programs like them.
 * No rule changes within a class. */
int tuning_class(uint64_t bytes);
uint64_t tuning_limit(int class);

/* Lists the rules' choice first, then others that the model does not predict to be much slower, the fastest
 * first; at most `most`. Returns their number. turns: ranks share processors. */
int tuning_candidates(const struct coll_shape *shape, uint64_t bytes, bool turns,
                      const struct coll_choice *rule, int most, struct coll_candidate *out);
double tuning_predict(const struct coll_choice *choice, int ranks, uint64_t bytes, bool turns);
void tuning_name(const struct coll_choice *choice, char *out, size_t size);

#endif

/* tuning.h: chooses the algorithm (schedule or multicast) of bcast, gather, scatter, allgather, alltoall,
 * reduce and allreduce between several nodes by measurements, for each size class, using tune/tune.h.
 * Candidate 0 is the rules' choice. From the TUNING_AT-th blocking call of a class on, some calls, at
 * increasing distances, begin with a session: the ranks run candidates several times with data of the call's
 * size, agree on the maximum time (an allreduce), and each report this time to their tuner, so that all
 * choose the same candidate. Sessions spend a share of the program's time. Nonblocking and persistent calls
 * use the choice; they never measure, since sessions wait for all ranks.
 *
 * Algorithms differ in the order of floating-point additions, so reductions are not tuned in deterministic
 * mode.
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
    double predicted; /* time in us predicted by the model */
};

/* Replaces *choice, which the rules selected, by the candidate that the tuner prefers for this call. */
int tuning_select(struct call *call, struct coll_choice *choice);
void tuning_close(struct coll_state *state);

/* ---- pure: candidates.c ---- */

/* tuning_class() returns the size class of a call of `bytes` bytes, or -1. tuning_limit() returns the
 * largest size of a class. Each power of two is a class, and so is the range between two powers of two:
 * protocols change at powers of two, and programs use such sizes. No rule changes within a class. */
int tuning_class(uint64_t bytes);
uint64_t tuning_limit(int class);

/* Lists up to `most` candidates and returns their number: first the rules' choice, then all choices that
 * the model does not predict to be much slower, fastest first. turns: ranks share processors. */
int tuning_candidates(const struct coll_shape *shape, uint64_t bytes, bool turns,
                      const struct coll_choice *rule, int most, struct coll_candidate *out);
void tuning_name(const struct coll_choice *choice, char *out, size_t size);

#endif

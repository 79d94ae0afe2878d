/* found.h: what trials have found in this process, of barriers (trial.h), of other operations (size_trial.h) and of multicast
 * (multicast_trial.h): a list for all communicators, so that the next one of a shape has it for nothing, and people can read it. What
 * multicast found is for people only: each communicator has a group of its own, and tries it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_FOUND_H
#define FP_COLL_FOUND_H

#include "coll/trial.h"

struct found {
    struct trial_shape shape;
    enum coll_kind kind;
    bool multicast; /* or not was tried; no candidates: the network refused a group */
    bool undecided; /* time was up: the rules' choice stays, however it did */
    int class;      /* of sizes, multicast has its own classes; 0 for barriers */
    uint64_t bytes; /* that were tried: those of the program's call in which the trial began */
    int best, count;
    struct trial_candidate candidate[TRIAL_MOST]; /* that were tried, the rules' choice first */
    uint64_t ns[TRIAL_MOST];                      /* 0: time was up before */
};

const struct found *found_find(const struct proc *p, const struct trial_shape *s, enum coll_kind kind,
                               int class);
/* Nothing changes when it is known already, but the first class of a trial of multicast replaces an older trial. */
void found_keep(struct proc *p, const struct found *f);

/* A trial of these candidates is over. */
void found_fill(struct found *f, const struct pick *p, const struct trial_candidate *list);

/* The best one as a number that means the same to every rank, which a place in a list of candidates need not. f may be NULL. */
uint64_t found_code(const struct found *f);

#endif

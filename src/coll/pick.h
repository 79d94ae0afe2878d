/* pick.h: which of several ways to do the same thing is the fastest, found by trying a few: a pure state machine that is told
 * figures and says what to try next. Everything it is told is the same at every rank, so that all come to the same end.
 *
 * The first candidate is what the rules would take. It is always tried, and another one wins only by a margin: what cannot be
 * told apart stays as it is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_PICK_H
#define FP_COLL_PICK_H

#include <stdbool.h>
#include <stdint.h>

#define PICK_CANDIDATES 16
#define PICK_MARGIN     95 /* percent of the rules' time that another must stay below */
#define PICK_HOPELESS   3  /* what is predicted so many times slower than the best is not tried */

struct pick {
    int count; /* candidates */
    int order[PICK_CANDIDATES];
    int tries; /* of order[], the rules' choice first, then by what is predicted */
    int next;
    uint64_t ns[PICK_CANDIDATES]; /* measured; 0: not tried */
    uint64_t spent_ns, budget_ns;
};

/* predicted[0] is the rules' choice. At most `most` candidates are tried, in budget_ns. */
void pick_begin(struct pick *p, const double *predicted, int count, int most, uint64_t budget_ns);

/* The candidate to try now, or -1: there is nothing more to try, or no time. */
int pick_next(const struct pick *p);

/* That candidate took ns, and the trial of it spent_ns; both as agreed upon by all. */
void pick_record(struct pick *p, uint64_t ns, uint64_t spent_ns);

int pick_best(const struct pick *p);

#endif

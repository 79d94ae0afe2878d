/* pick.h: which of several ways to do the same thing is the fastest, found by trying them in turns: a pure state machine that
 * is told figures and says what to try next. Everything it is told is the same at every rank, so that all come to the same
 * end.
 *
 * The first candidate is what the rules would take. It is tried as often as any other, and another one wins only by a margin
 * and by being faster in most turns: what cannot be told apart stays as it is. Candidates take turns, a sample each, because a machine's speed drifts; those that
 * are clearly slower leave early. What counts is the median of a candidate's samples: the least of them would favour a
 * candidate whose time varies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_TUNE_PICK_H
#define FP_TOOLS_TUNE_PICK_H

#include <stdbool.h>
#include <stdint.h>

#define PICK_CANDIDATES 16
#define PICK_PASSES     9  /* samples of each candidate that stays to the end */
#define PICK_JUDGED     3  /* passes after which clearly slower ones leave; with fewer nobody wins */
#define PICK_MARGIN     95 /* percent of the rules' time that another must stay below */
#define PICK_HOPELESS   3  /* what is predicted so many times slower than the best is not tried */

struct pick {
    int count; /* candidates */
    int order[PICK_CANDIDATES];
    int tries; /* of order[], the rules' choice first, then by what is predicted */
    int pass, at;
    bool out[PICK_CANDIDATES];
    uint64_t sample[PICK_CANDIDATES][PICK_PASSES]; /* ns */
    int samples[PICK_CANDIDATES];
};

/* predicted[0] is the rules' choice. At most `most` candidates are tried. */
void pick_begin(struct pick *p, const double *predicted, int count, int most);

/* The candidate to try now, or -1: it is decided. */
int pick_next(const struct pick *p);

/* That candidate took ns, as agreed upon by all. */
void pick_record(struct pick *p, uint64_t ns);

/* The winner by what is known so far. */
int pick_best(const struct pick *p);

/* ns of a candidate; 0: not tried. */
uint64_t pick_median(const struct pick *p, int candidate);

#endif

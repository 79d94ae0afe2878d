/* pick.h: selects the fastest of several candidates by measuring them in turns. A pure state machine: input
 * are samples, output is the next candidate to measure. All ranks pass the same samples and reach the same
 * result. The first candidate is the choice of the rules; another one wins only by a margin and if it was
 * faster in most turns. Candidates take turns because a machine's speed drifts; clearly slower ones are
 * dropped early. Candidates are compared by the median: the minimum would favour candidates with varying
 * times.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_TUNE_PICK_H
#define FP_TOOLS_TUNE_PICK_H

#include <stdbool.h>
#include <stdint.h>

#define PICK_CANDIDATES 16
#define PICK_PASSES     9 /* samples of each candidate that stays to the end */
#define PICK_JUDGED     3 /* passes after which clearly slower candidates are dropped, and which a winner needs */
#define PICK_MARGIN     95 /* percent of the rules' time that another must stay below */
#define PICK_HOPELESS   3  /* a candidate predicted to be this many times slower than the best is not tried */

struct pick {
    int count; /* candidates */
    int order[PICK_CANDIDATES];
    int tries; /* order[]: the rules' choice first, then by predicted time */
    int pass, at;
    bool out[PICK_CANDIDATES];
    uint64_t sample[PICK_CANDIDATES][PICK_PASSES]; /* ns */
    int samples[PICK_CANDIDATES];
};

/* predicted[0] is the rules' choice. At most `most` candidates are tried. */
void pick_init(struct pick *p, const double *predicted, int count, int most);

/* The candidate to try now, or -1: it is decided. */
int pick_next(const struct pick *p);

/* That candidate took ns, as agreed upon by all. */
void pick_record(struct pick *p, uint64_t ns);

/* The best candidate by the samples so far. */
int pick_best(const struct pick *p);

/* ns of a candidate; 0: not tried. */
uint64_t pick_median(const struct pick *p, int candidate);

#endif

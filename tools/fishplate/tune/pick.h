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
#define PICK_PASSES     9 /* largest number of samples of a candidate */
/* passes before slower candidates are dropped, and samples that a winner must have */
#define PICK_JUDGED   3
#define PICK_MARGIN   95 /* a winner needs less than this percentage of the time of the rules */
#define PICK_HOPELESS 3  /* candidates predicted to be this many times slower than the best are not tried */

struct pick {
    int count; /* number of candidates */
    int order[PICK_CANDIDATES];
    int tries; /* entries of order[] to measure: the choice of the rules, then by predicted time */
    int pass, at;
    bool out[PICK_CANDIDATES];
    uint64_t sample[PICK_CANDIDATES][PICK_PASSES]; /* ns */
    int samples[PICK_CANDIDATES];
};

/* Starts a selection. predicted[0]: the choice of the rules. most: limit of the candidates measured. */
void pick_init(struct pick *p, const double *predicted, int count, int most);

/* Returns the candidate to measure next; -1: the selection is finished. */
int pick_next(const struct pick *p);

/* Records the time of the candidate from pick_next(); all ranks pass the same value. */
void pick_record(struct pick *p, uint64_t ns);

/* Returns the best candidate according to the samples so far. */
int pick_best(const struct pick *p);

/* Returns the median time of a candidate in ns; 0: not measured. */
uint64_t pick_median(const struct pick *p, int candidate);

#endif

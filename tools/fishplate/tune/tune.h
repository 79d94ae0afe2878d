/* tune.h: `fishplate tune`: measures the algorithms of each collective operation in the job that it is started in, and
 * writes the rules by which they beat the built-in ones, for FISHPLATE_COLL=@FILE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_TUNE_H
#define FP_TOOLS_TUNE_H

#include <stdio.h>

#include "../../../bench/coll.h"
#include "coll/sched/algorithm.h"
#include "pick.h"

/* Longer samples would not make the choice better. */
#define TUNE_SAMPLE_MAX 0.02 /* seconds */

enum { TUNE_SIZES_MAX = 32, TUNE_TEXT = 64 };

struct tune {
    struct bench bench;
    int nodes;
    bool kinds[COLL_KINDS]; /* wanted */
    int nsizes;
    size_t sizes[TUNE_SIZES_MAX]; /* ascending */
    double seconds;               /* limit of the whole run */
    double end;                   /* MPI_Wtime of rank 0 */
    bool over;                    /* the time is up, or the user has stopped it; the same at every rank */
    int measured, cells_all;
    const char *path;
    bool append;
    int rules;   /* written */
    bool trials; /* compare choices by trial with the rules; write no file */
    double logs
        [2]; /* sums of logarithms of ratios: [0] the trial kept the rules' choice, [1] it chose another */
    int cells[2];
};

/* One operation and size. */
struct tune_cell {
    const char *operation;
    size_t bytes;
    int candidates; /* the first candidate is the choice of the built-in rules */
    char text[PICK_CANDIDATES][TUNE_TEXT];
    int best;                            /* 0: nothing beats the rules */
    double rules_us, best_us;            /* measured again, in turns, after the choice */
    double ratio, ratio_low, ratio_high; /* --trials: of the turns, the median and the quarters */
};

/* candidates.c: values of FISHPLATE_COLL that are valid for this operation. */
void tune_candidates(const struct tune *t, enum coll_kind kind, struct tune_cell *cell);

/* stop.c: SIGINT and SIGTERM stop the tuning. */
void tune_catch_stop(void);
bool tune_was_stopped(void);

/* stop.c: collective: sets over. */
bool tune_is_over(struct tune *t);

/* measure.c: collective; the same at every rank. False: too large for this benchmark, or the time was up first. */
bool tune_measure(struct tune *t, double seconds, struct tune_cell *cell);

/* trials.c: the same of --trials; best: 1 when a trial found another choice. */
void tune_trials_begin(void);
bool tune_trials(struct tune *t, double seconds, struct tune_cell *cell);
void tune_trials_show(const struct tune_cell *c);
void tune_trials_end(const struct tune *t); /* rank 0 prints */

/* rules.c: the lines of one operation. Sizes next to each other with the same winner share a line. Returns how many. */
int tune_write(const struct tune *t, const struct tune_cell *cell, int n, FILE *out);

#endif

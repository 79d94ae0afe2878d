/* tune.h: `fishplate tune`: measures the algorithms of each collective operation in the job that runs it, and
 * writes rules for the algorithms that are faster than the built-in choice, for FISHPLATE_COLL=@FILE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_TUNE_H
#define FP_TOOLS_TUNE_H

#include <stdio.h>

#include "../../../bench/coll.h"
#include "coll/sched/algorithm.h"
#include "pick.h"

/* Longest sample; longer ones would not improve the choice. */
#define TUNE_SAMPLE_MAX 0.02 /* seconds */

enum { TUNE_SIZES_MAX = 32, TUNE_TEXT = 64 };

struct tune {
    struct bench bench;
    int nodes;
    bool kinds[COLL_KINDS]; /* operations to tune */
    int nsizes;
    size_t sizes[TUNE_SIZES_MAX]; /* ascending */
    double seconds;               /* limit of the whole run */
    double end;                   /* MPI_Wtime of rank 0 at which the tuning ends */
    bool over;                    /* the time is up, or the user has stopped it; the same at every rank */
    int measured, cells_all;
    const char *path;
    bool append;
    int rules;      /* number of rules written */
    bool trials;    /* compare choices by trial with the rules; write no file */
    double logs[2]; /* sums of logarithms of ratios; [0]: the trial kept the rules' choice, [1]: it did not */
    int cells[2];
};

/* The measurement of one operation and size. */
struct tune_cell {
    const char *operation;
    size_t bytes;
    int candidates; /* the first candidate is the choice of the built-in rules */
    char text[PICK_CANDIDATES][TUNE_TEXT];
    int best; /* index of the winner; 0: the built-in rules */
    /* median times of the rules and of the winner, measured again in turns */
    double rules_us, best_us;
    double ratio, ratio_low, ratio_high; /* --trials: median and quartiles of the ratios of all turns */
};

/* Lists values of FISHPLATE_COLL for this operation as candidates (candidates.c). */
void tune_candidates(const struct tune *t, enum coll_kind kind, struct tune_cell *cell);

/* Makes SIGINT and SIGTERM stop the tuning (stop.c). */
void tune_catch_stop(void);
bool tune_was_stopped(void);

/* Collective: sets t->over if the time is over or the user has stopped the tuning (stop.c). */
bool tune_is_over(struct tune *t);

/* Collective, with the same result at every rank. False: the size is too large, or the time over
 * (measure.c). */
bool tune_measure(struct tune *t, double seconds, struct tune_cell *cell);

/* The same for --trials; cell->best is 1 if a trial selected another algorithm than the rules (trials.c). */
void tune_trials_begin(void);
bool tune_trials(struct tune *t, double seconds, struct tune_cell *cell);
void tune_trials_show(const struct tune_cell *c);
void tune_trials_end(const struct tune *t); /* rank 0 prints */

/* Writes the lines of one operation. Consecutive sizes with the same winner share a line. Returns the
 * number of lines (rules.c). */
int tune_write(const struct tune *t, const struct tune_cell *cell, int n, FILE *out);

#endif

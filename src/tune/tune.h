/* tune.h: the one place of the library that learns from measurements: it chooses among a few equivalent
 * protocols or algorithms (candidates) by their measured costs. Pure: no clock, no I/O, no allocation,
 * integers only; the same calls with the same arguments give the same choices.
 *
 * The algorithm: successive elimination with re-examination [EvenDar06], over windowed medians [Garivier11].
 * One candidate, the best so far, is in use. Another one is examined by using it for a run of TUNE_RUN uses
 * in a row; the median cost of the second half of the run is its cost (during the first half the caches still
 * contain the data of the previous candidate). The candidate replaces the best if its cost is lower by at
 * least one part in TUNE_MARGIN. Otherwise it is eliminated until its next examination; the gap doubles each
 * time, from TUNE_GAP to TUNE_GAP_MAX uses, and the run doubles up to TUNE_WINDOW uses, but ends after
 * TUNE_RUN uses that all cost TUNE_FAR times the best. After the first two examinations of a candidate, an
 * examination starts only if its expected excess cost is below the budget: one part in TUNE_SHARE of all that
 * was spent with this key. If the cost of the best changes by one half, all other candidates are examined
 * again at once, since the machine or the program has changed.
 *
 * A client keeps one `struct tune` for each key (an operation, a class of sizes, a kind of traffic). It calls
 * tune_pick_candidate() before a use and reports the cost of the use, in any unit that is the same for the
 * key (ns, or ns for 64 KiB where sizes differ). A use that was disturbed, or not measured, is reported as
 * invalid: it counts as a use, but its cost is ignored.
 *
 * Several ranks that must use the same candidate have one leader: only the leader calls
 * tune_pick_candidate(), and sends its choice in a message of the operation. The other ranks use the
 * candidate that they received (at first candidate 0) and may send a cost back, which the leader reports.
 * Where ranks share their costs anyway (the maximum over all ranks, from an allreduce), each rank may use its
 * own tuner instead: equal reports in equal order lead to equal choices on all ranks, without a message.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TUNE_TUNE_H
#define FP_TUNE_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUNE_CANDIDATES 8

/* docs/tuning.md measures half and twice each of these values. */
#define TUNE_RUN     4    /* uses of the first examination of a candidate */
#define TUNE_WINDOW  16   /* uses of the longest examination; the best is judged by windows of half as many */
#define TUNE_GAP     16   /* uses between the first two examinations of a candidate */
#define TUNE_GAP_MAX 2048 /* uses between two examinations at most, if the budget allows one */
#define TUNE_SHARE   32   /* examinations may cost one part in TUNE_SHARE of the cost of all uses */
#define TUNE_MARGIN  16   /* a candidate replaces the best if it costs less by one part in TUNE_MARGIN */
#define TUNE_CHANGE  150  /* percent of the best's former cost that is a change; likewise the inverse */
#define TUNE_FAR     2    /* candidates at TUNE_FAR times the best's cost are examined later, in short runs */

struct tune_candidate {
    uint32_t cost; /* last measured cost; before the first measurement the prior; 0: unknown */
    uint32_t due;  /* number of the use at which the candidate is examined next */
    uint8_t exams; /* examinations so far; reduced to 2 when the cost of the best changes */
    bool measured;
};

/* The reason for which the best candidate is in use. */
enum tune_reason { TUNE_BY_RULE, TUNE_BY_PRIOR, TUNE_BY_COST };

struct tune {
    struct tune_candidate candidate[TUNE_CANDIDATES];
    uint32_t window[TUNE_WINDOW / 2]; /* costs of the present run that count; for the best, its last costs */
    int64_t budget;                   /* cost that may be spent on examinations; below 0: overspent */
    uint32_t uses;
    uint32_t turn;     /* counts changes of `current` */
    uint32_t level;    /* cost of the best when the others were examined; 0: not known */
    uint32_t least;    /* lowest cost of the present run */
    uint32_t changes;  /* times that another candidate became the best */
    uint32_t explored; /* uses that were part of an examination */
    uint8_t count;     /* candidates; 0: not open */
    uint8_t best, current;
    uint8_t skip;     /* next costs of the current candidate that do not count */
    uint8_t wanted;   /* number of costs in `window` that ends the run or completes the window of the best */
    uint8_t have;     /* costs in `window` */
    uint8_t seen;     /* costs of the run, including those that do not count */
    uint8_t picked;   /* uses since the run began; a run whose costs are not reported ends */
    uint8_t excluded; /* number of consecutive uses for which the best candidate was not permitted */
};

/* The result of tune_pick_candidate(), to be passed to tune_report() with the cost. */
struct tune_ticket {
    uint32_t turn;
    uint8_t candidate;
    bool open; /* the cost is not reported yet; a client that drops the ticket clears this */
};

/* Starts a tuner for `count` candidates, at most TUNE_CANDIDATES. Candidate 0, the choice of the built-in
 * rule, is in use until costs are known. `prior`: expected costs, 0: unknown; may be NULL. The candidate with
 * the lowest known prior is used first. */
void tune_open(struct tune *t, unsigned count, const uint32_t prior[]);

static inline bool tune_is_open(const struct tune *t)
{
    return t->count > 0;
}

/* The candidate to use now, one of the set `allowed` (bit i: candidate i; not empty). If the tuner's
 * candidate is not allowed, the use gets the best allowed candidate, and its cost does not count. */
struct tune_ticket tune_pick_candidate(struct tune *t, uint32_t allowed);

/* Reports the cost of the use. Tickets may be reported late and in any order: costs of an earlier run do not
 * count. */
void tune_report(struct tune *t, struct tune_ticket *ticket, uint64_t cost, bool valid);

/* The best candidate by the measurements so far; changes nothing. */
unsigned tune_best(const struct tune *t);
enum tune_reason tune_reason(const struct tune *t);

/* True if the next use is part of an examination, or if the cost of the best is unknown. Some clients measure
 * only such uses. */
bool tune_is_examining(const struct tune *t);

/* Writes "read 5.70 us by cost, split 6.02 us": the best first, costs times `unit_ns` in us. Returns the
 * length, at most `size` - 1. */
size_t tune_describe(const struct tune *t, const char *const names[], double unit_ns, char *out, size_t size);

#endif

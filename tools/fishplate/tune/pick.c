/* pick.c: selects the next candidate to measure, and the fastest one at the end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "pick.h"

#include <string.h>

/* Limits in percent of the lowest median. After two passes a candidate is dropped if its fastest sample
 * exceeds DROP_EARLY_PERCENT; after PICK_JUDGED passes if its median exceeds DROP_LATE_PERCENT. A single sample is
 * unreliable: another program may have run, or caches were cold. */
#define DROP_EARLY_PERCENT 300
#define DROP_LATE_PERCENT  120

/* Sorts by insertion: candidates with equal predictions keep their order. */
static void sort_by_prediction(struct pick *p, const double *predicted)
{
    for (int i = 1; i < p->count; i++) {
        int at = i;
        for (; at > 1 && predicted[p->order[at - 1]] > predicted[i]; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = i;
    }
}

void pick_init(struct pick *p, const double *predicted, int count, int most)
{
    memset(p, 0, sizeof(*p));
    p->count = count < PICK_CANDIDATES ? count : PICK_CANDIDATES;
    sort_by_prediction(p, predicted);
    double best = predicted[0];
    if (p->count > 1 && predicted[p->order[1]] < best)
        best = predicted[p->order[1]];
    p->tries = 1;
    while (p->tries < p->count && p->tries < most && predicted[p->order[p->tries]] <= PICK_HOPELESS * best)
        p->tries++;
    if (p->tries == 1)
        p->pass = PICK_PASSES; /* only one candidate: decided */
}

int pick_next(const struct pick *p)
{
    return p->pass >= PICK_PASSES ? -1 : p->order[p->at];
}

uint64_t pick_median(const struct pick *p, int candidate)
{
    uint64_t sorted[PICK_PASSES];
    const int n = p->samples[candidate];
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > p->sample[candidate][i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = p->sample[candidate][i];
    }
    return n == 0 ? 0 : n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static uint64_t least_sample(const struct pick *p, int candidate)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < p->samples[candidate]; i++)
        if (p->sample[candidate][i] < least)
            least = p->sample[candidate][i];
    return least;
}

static uint64_t least_median(const struct pick *p)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < p->tries; i++) {
        const int c = p->order[i];
        const uint64_t ns = pick_median(p, c);
        if (!p->out[c] && ns < least)
            least = ns;
    }
    return least;
}

/* Ends a pass: drops slow candidates. The choice of the rules stays, for comparison. */
static void finish_pass(struct pick *p)
{
    int left = 0;
    const uint64_t least = least_median(p);
    p->pass++;
    for (int i = 1; i < p->tries; i++) {
        const int c = p->order[i];
        if (p->pass >= PICK_JUDGED ? pick_median(p, c) * 100 > least * DROP_LATE_PERCENT
                                   : p->pass > 1 && least_sample(p, c) * 100 > least * DROP_EARLY_PERCENT)
            p->out[c] = true;
        left += !p->out[c];
    }
    if (left == 0)
        p->pass = PICK_PASSES;
}

void pick_record(struct pick *p, uint64_t ns)
{
    const int c = p->order[p->at];
    p->sample[c][p->samples[c]++] = ns > 0 ? ns : 1;
    do
        p->at++;
    while (p->at < p->tries && p->out[p->order[p->at]]);
    if (p->at < p->tries)
        return;
    finish_pass(p);
    p->at = 0;
}

/* True if the candidate was faster than the rules in three quarters of the passes. The samples of a pass
 * are taken at nearly the same time; luck alone hardly wins three turns of four. */
static bool wins_most_samples(const struct pick *p, int candidate)
{
    int won = 0;
    const int n = p->samples[candidate] < p->samples[0] ? p->samples[candidate] : p->samples[0];
    for (int i = 0; i < n; i++)
        won += p->sample[candidate][i] < p->sample[0][i];
    return 4 * won >= 3 * n;
}

int pick_best(const struct pick *p)
{
    int best = 0;
    uint64_t least = pick_median(p, 0) * PICK_MARGIN / 100;
    for (int i = 1; i < p->tries; i++) {
        const int c = p->order[i];
        const uint64_t ns = pick_median(p, c);
        if (p->out[c] || p->samples[c] < PICK_JUDGED || ns >= least || !wins_most_samples(p, c))
            continue;
        least = ns;
        best = c;
    }
    return best;
}

/* tune.c: selects among candidates by successive elimination with re-examination.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/tune.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define COST_MAX (UINT32_MAX / 4)

/* ---- the current candidate ---- */

static uint32_t run_length(const struct tune_candidate *c)
{
    const uint32_t doubled = c->exams < 2 ? TUNE_RUN : (uint32_t)TUNE_RUN << MIN(c->exams - 1, 8);
    return MIN(doubled, (uint32_t)TUNE_WINDOW);
}

static void set_current(struct tune *t, unsigned candidate, uint32_t skip, uint32_t wanted)
{
    t->turn++;
    t->current = (uint8_t)candidate;
    t->skip = (uint8_t)skip;
    t->wanted = (uint8_t)wanted;
    t->have = t->picked = t->seen = 0;
    t->least = UINT32_MAX;
}

static void switch_to_best(struct tune *t)
{
    set_current(t, t->best, TUNE_RUN / 2, TUNE_WINDOW / 2);
}

static void start_examination(struct tune *t, unsigned candidate)
{
    const uint32_t run = run_length(&t->candidate[candidate]);
    set_current(t, candidate, run / 2, run - run / 2);
}

/* Returns the median of the costs in the window; does not change their order in the window. */
static uint32_t window_median(const struct tune *t)
{
    uint32_t sorted[TUNE_WINDOW / 2] = {0};
    for (unsigned i = 0; i < t->have; i++) {
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] > t->window[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = t->window[i];
    }
    return sorted[(t->have - 1) / 2];
}

/* ---- what is due ---- */

static void schedule_examination(struct tune *t, struct tune_candidate *c)
{
    const uint64_t gap = (uint64_t)TUNE_GAP << MIN(c->exams, 20);
    c->due = t->uses + (uint32_t)MIN(gap, (uint64_t)TUNE_GAP_MAX);
}

/* Returns the expected extra cost of an examination, compared with uses of the best candidate. The first
 * measured cost may be far too high (cold memory), so the extra cost of a use is limited to TUNE_FAR times
 * the cost of the best. */
static int64_t expected_excess(const struct tune *t, const struct tune_candidate *c)
{
    const uint64_t best = MAX(t->candidate[t->best].cost, 1u);
    const uint64_t cost = MIN((uint64_t)c->cost, (TUNE_FAR + 1) * best);
    const uint32_t uses = cost / TUNE_FAR >= best ? TUNE_RUN : run_length(c);
    return cost > best ? (int64_t)((cost - best) * uses) : 0;
}

static bool is_affordable(const struct tune *t, const struct tune_candidate *c)
{
    return c->exams < 2 || expected_excess(t, c) <= t->budget;
}

/* The candidate to be examined now: of the candidates that are due and affordable the one that has waited
 * longest; -1: none. */
static int find_due_candidate(const struct tune *t, uint32_t allowed)
{
    int next = -1;
    for (unsigned i = 0; i < t->count; i++) {
        const struct tune_candidate *c = &t->candidate[i];
        if (i == t->best || !(allowed >> i & 1) || (int32_t)(t->uses - c->due) < 0 || !is_affordable(t, c))
            continue;
        if (next < 0 || (int32_t)(c->due - t->candidate[next].due) < 0)
            next = (int)i;
    }
    return next;
}

/* Schedules short examinations of the other candidates, whose costs are out of date. */
static void reset_other_candidates(struct tune *t)
{
    for (unsigned i = 0; i < t->count; i++)
        if (i != t->best) {
            t->candidate[i].exams = (uint8_t)MIN(t->candidate[i].exams, 2);
            t->candidate[i].due = t->uses;
        }
}

/* ---- results ---- */

static void replace_best(struct tune *t, unsigned candidate)
{
    struct tune_candidate *old = &t->candidate[t->best];
    old->exams = (uint8_t)MIN(
        old->exams, 2); /* the former best is examined soon again: the change may have been chance */
    schedule_examination(t, old);
    t->best = (uint8_t)candidate;
    t->changes++;
    t->level = 0;
}

static void finish_run(struct tune *t, uint32_t cost)
{
    struct tune_candidate *c = &t->candidate[t->current];
    const struct tune_candidate *best = &t->candidate[t->best];
    c->cost = cost;
    c->measured = true;
    c->exams = (uint8_t)MIN(c->exams + 1, 32);
    const bool wins = !best->measured || c->cost < best->cost - best->cost / TUNE_MARGIN;
    if (wins && t->current != t->best)
        replace_best(t, t->current);
    else
        schedule_examination(t, c);
    switch_to_best(t);
}

static void tune_finish_best_window(struct tune *t)
{
    struct tune_candidate *best = &t->candidate[t->best];
    const uint64_t now = best->cost = window_median(t), then = t->level;
    best->measured = true;
    t->have = 0;
    if (then == 0) {
        t->level = (uint32_t)now;
    } else if (now * 100 > then * TUNE_CHANGE || now * TUNE_CHANGE < then * 100) {
        t->level = (uint32_t)now;
        reset_other_candidates(t);
    }
}

static void add_cost(struct tune *t, uint32_t cost)
{
    const bool exam = t->current != t->best;
    const uint32_t usual = t->candidate[t->best].cost;
    if (exam && t->candidate[t->best].measured)
        t->budget -= (int64_t)cost - (int64_t)usual;
    t->least = MIN(t->least, cost);
    if (t->skip > 0)
        t->skip--;
    else
        t->window[t->have++] = cost;
    if (exam && ++t->seen == TUNE_RUN && t->have < t->wanted && t->least / TUNE_FAR >= usual)
        finish_run(t, t->least);
    else if (t->have == t->wanted && exam)
        finish_run(t, window_median(t));
    else if (t->have == t->wanted)
        tune_finish_best_window(t);
}

/* ---- interface ---- */

void tune_open(struct tune *t, unsigned count, const uint32_t prior[])
{
    uint32_t least = 0;
    *t = (struct tune){.count = (uint8_t)MIN(count, TUNE_CANDIDATES)};
    for (unsigned i = 0; i < t->count && prior; i++)
        if (prior[i] && (least == 0 || prior[i] < least)) {
            least = prior[i];
            t->best = (uint8_t)i;
        }
    for (unsigned i = 0; i < t->count; i++) {
        struct tune_candidate *c = &t->candidate[i];
        c->cost = prior ? MIN(prior[i], COST_MAX) : 0;
        /* no examination before: the first uses of the best candidate run on cold memory */
        c->due = TUNE_RUN;
        if (least && c->cost / TUNE_FAR >= least)
            c->due = TUNE_GAP;
    }
    set_current(t, t->best, TUNE_RUN / 2, TUNE_RUN / 2);
}

/* Returns the least expensive allowed candidate; measured candidates are preferred to unmeasured ones. */
static unsigned best_allowed(const struct tune *t, uint32_t allowed)
{
    int best = -1;
    for (unsigned i = 0; i < t->count; i++) {
        const struct tune_candidate *c = &t->candidate[i], *b = &t->candidate[MAX(best, 0)];
        const bool better = c->measured != b->measured ? c->measured : c->cost < b->cost;
        if (allowed >> i & 1 && (best < 0 || better))
            best = (int)i;
    }
    return (unsigned)MAX(best, 0);
}

/* Replaces the best candidate if it was not allowed in TUNE_GAP consecutive uses. */
static void tune_replace_excluded_best(struct tune *t, uint32_t allowed)
{
    if (allowed >> t->best & 1) {
        t->excluded = 0;
    } else if (++t->excluded == TUNE_GAP) {
        replace_best(t, best_allowed(t, allowed));
        switch_to_best(t);
    }
}

/* Ends an examination after 4 * TUNE_WINDOW uses without enough reported costs; the candidate is examined
 * again later. */
static void tune_end_unreported_run(struct tune *t)
{
    if (t->current == t->best || ++t->picked <= 4 * TUNE_WINDOW)
        return;
    struct tune_candidate *c = &t->candidate[t->current];
    c->exams = (uint8_t)MIN(c->exams + 1, 32);
    schedule_examination(t, c);
    switch_to_best(t);
}

struct tune_ticket tune_pick_candidate(struct tune *t, uint32_t allowed)
{
    t->uses++;
    tune_replace_excluded_best(t, allowed);
    tune_end_unreported_run(t);
    if (t->current == t->best && t->candidate[t->best].measured) {
        const int next = find_due_candidate(t, allowed);
        if (next >= 0)
            start_examination(t, (unsigned)next);
    }
    t->explored += t->current != t->best;
    if (allowed >> t->current & 1)
        return (struct tune_ticket){.turn = t->turn, .candidate = t->current, .open = true};
    return (struct tune_ticket){
        .turn = t->turn - 1, .candidate = (uint8_t)best_allowed(t, allowed), .open = true};
}

void tune_report(struct tune *t, struct tune_ticket *ticket, uint64_t cost, bool valid)
{
    if (!ticket->open)
        return;
    ticket->open = false;
    const uint32_t each = (uint32_t)MIN(MAX(cost, 1u), COST_MAX);
    const uint64_t spent = valid ? each : t->candidate[ticket->candidate].cost;
    t->budget = MIN(t->budget + (int64_t)(spent / TUNE_SHARE), (int64_t)TUNE_WINDOW * COST_MAX);
    if (valid && ticket->turn == t->turn && ticket->candidate == t->current)
        add_cost(t, each);
}

unsigned tune_best(const struct tune *t)
{
    return t->best;
}

bool tune_is_examining(const struct tune *t)
{
    return t->current != t->best || !t->candidate[t->best].measured;
}

enum tune_reason tune_reason(const struct tune *t)
{
    const struct tune_candidate *best = &t->candidate[t->best];
    return t->changes == 0 && !best->measured ? (best->cost ? TUNE_BY_PRIOR : TUNE_BY_RULE) : TUNE_BY_COST;
}

size_t tune_describe(const struct tune *t, const char *const names[], double unit_ns, char *out, size_t size)
{
    static const char *const reasons[] = {"by rule", "by prior cost", "by cost"};
    size_t at = 0;
    for (unsigned k = 0; k < t->count && at < size; k++) {
        const unsigned i = (t->best + k) % t->count; /* the best first */
        const struct tune_candidate *c = &t->candidate[i];
        if (k > 0 && !c->measured)
            continue;
        int n = snprintf(out + at, size - at, "%s%s", k ? ", " : "", names[i]);
        at += (size_t)MAX(n, 0);
        if (c->measured && at < size) {
            n = snprintf(out + at, size - at, " %.2f us", (double)c->cost * unit_ns * 1e-3);
            at += (size_t)MAX(n, 0);
        }
        if (k == 0 && at < size) {
            n = snprintf(out + at, size - at, " %s", reasons[tune_reason(t)]);
            at += (size_t)MAX(n, 0);
        }
    }
    return MIN(at, size ? size - 1 : 0);
}

/* test_tune.c: how far the tuner is behind the best candidate forced: on every recorded machine (cost_tables.h) and one drawn at
 * random, with noise, outliers, drift, caches that suit the candidate before, and a machine that becomes another one half-way.
 * Prints the table of docs/tuning.md. All costs are computed, none is measured: the figures are the same everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/tune.h"

#include <stdlib.h>

#include "cost_tables.h"
#include "test.h"

enum { FIRST = 100, STEADY = 20000, CANDIDATES = 3, KINDS = 2, ALL = 7 };

static uint32_t seed;

static uint32_t tune_random_choice(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

struct machine {
    uint64_t cost[TUNE_CANDIDATES];
    unsigned count, last, since; /* uses since the candidate changed */
    uint32_t drift;              /* percent of the cost */
    unsigned cold;               /* uses that find memory which nobody touched */
};

static uint64_t tune_use(struct machine *m, unsigned c)
{
    uint64_t ns = m->cost[c] * m->drift / 100;
    m->since = c == m->last ? m->since + 1 : 0;
    m->last = c;
    ns = ns * (100 + tune_random_choice(20)) / 100;
    if (m->since == 0)
        ns = ns * 3 / 2;
    if (m->cold > 0) {
        m->cold--;
        ns *= 4;
    }
    return tune_random_choice(100) == 0 ? ns * 20 : ns;
}

/* The regret of `n` uses in percent of the best candidate's cost. Both see the same noise. */
static int tune_regret(struct tune *t, struct machine *m, int n, uint32_t drift_to)
{
    uint64_t ours = 0, best = UINT64_MAX;
    const uint32_t begin = seed, from = m->drift;
    const struct machine start = *m;
    for (unsigned c = 0; c < m->count; c++) {
        uint64_t all = 0;
        *m = start;
        seed = begin;
        for (int i = 0; i < n; i++) {
            m->drift = from + (uint32_t)((int64_t)(drift_to - from) * i / n);
            all += tune_use(m, c);
        }
        best = all < best ? all : best;
    }
    *m = start;
    seed = begin;
    for (int i = 0; i < n; i++) {
        struct tune_ticket ticket = tune_pick_candidate(t, ALL);
        m->drift = from + (uint32_t)((int64_t)(drift_to - from) * i / n);
        const uint64_t ns = tune_use(m, ticket.candidate);
        ours += ns;
        tune_report(t, &ticket, ns, true);
    }
    return (int)(((int64_t)ours - (int64_t)best) * 100 / (int64_t)best);
}

struct summary {
    int worst[4], sum[4], rows; /* first, steady, after a change, steady after it */
};

static void tune_add(struct summary *s, struct machine *before, struct machine *after)
{
    struct tune t;
    int r[4];
    tune_open(&t, before->count, NULL);
    r[0] = tune_regret(&t, before, FIRST, 100);
    r[1] = tune_regret(&t, before, STEADY, 150);
    after->drift = 100;
    r[2] = tune_regret(&t, after, 10 * FIRST, 100);
    r[3] = tune_regret(&t, after, STEADY, 100);
    s->rows++;
    for (int i = 0; i < 4; i++) {
        s->sum[i] += r[i];
        s->worst[i] = r[i] > s->worst[i] ? r[i] : s->worst[i];
    }
}

static struct machine machine_of(const struct cost_row *row, int kind)
{
    struct machine m = {.count = CANDIDATES, .last = UINT32_MAX, .drift = 100, .cold = 3};
    const uint32_t cost[KINDS][CANDIDATES] = {{row->lone_pieces, row->lone_read, row->lone_split},
                                              {row->window_pieces, row->window_read, row->window_split}};
    for (unsigned c = 0; c < CANDIDATES; c++)
        m.cost[c] = cost[kind][c];
    return m;
}

static void tune_print(const char *name, const struct summary *s)
{
    printf("| %s |", name);
    for (int i = 0; i < 4; i++)
        printf(" %d (%d) |", s->sum[i] / s->rows, s->worst[i]);
    printf("\n");
}

static const struct {
    const char *name;
    const struct cost_row *rows;
} machines[] = {{"x86-64 (Sapphire Rapids)", cost_x86_64},
                {"the same, 64 buffers", cost_x86_64_cold},
                {"aarch64 (Neoverse-V1)", cost_aarch64},
                {"aarch64 (Neoverse-N1)", cost_aarch64_n1}};
enum { MACHINES = sizeof(machines) / sizeof(machines[0]) };

static void recorded_machines(void)
{
    printf("\n| machine | first 100 uses | next 20,000 | first 1,000 after a change | next 20,000 "
           "|\n|---|---|---|---|---|\n");
    for (int k = 0; k < MACHINES; k++) {
        struct summary s = {.rows = 0};
        for (int i = 0; i < COST_ROWS; i++)
            for (int kind = 0; kind < KINDS; kind++) {
                struct machine before = machine_of(&machines[k].rows[i], kind);
                struct machine after = machine_of(&machines[(k + 1) % MACHINES].rows[i], kind);
                seed = (uint32_t)(i * KINDS + kind + 1);
                tune_add(&s, &before, &after);
            }
        tune_print(machines[k].name, &s);
        EXPECT(s.sum[1] <= 5 * s.rows);
        EXPECT(s.worst[1] <= 10);
        EXPECT(s.worst[3] <= 10);
    }
}

static void random_machines(void)
{
    struct summary s = {.rows = 0};
    for (uint32_t k = 0; k < 200; k++) {
        struct machine m[2];
        seed = k * 7919 + 1;
        for (int i = 0; i < 2; i++) {
            m[i] = (struct machine){.count = CANDIDATES, .last = UINT32_MAX, .drift = 100, .cold = 3};
            for (unsigned c = 0; c < CANDIDATES; c++)
                m[i].cost[c] = 1000 + tune_random_choice(5000);
        }
        seed = k + 1;
        tune_add(&s, &m[0], &m[1]);
    }
    tune_print("200 drawn at random", &s);
    EXPECT(s.sum[1] <= 5 * s.rows);
    EXPECT(s.worst[1] <= 10);
    EXPECT(s.sum[3] <= 5 * s.rows);
}

/* ---- properties ---- */

static void report_costs(struct tune *t, const uint64_t cost[], int n, int used[])
{
    for (int i = 0; i < n; i++) {
        struct tune_ticket ticket = tune_pick_candidate(t, ALL);
        used[ticket.candidate]++;
        tune_report(t, &ticket, cost[ticket.candidate], true);
    }
}

/* The best is disturbed while it is examined first, by a factor of 50: it is in use in the end all the same. */
static void a_first_impression_is_corrected(void)
{
    struct tune t;
    const uint64_t disturbed[] = {50000, 2000, 3000}, usual[] = {1000, 2000, 3000};
    int used[CANDIDATES] = {0};
    tune_open(&t, CANDIDATES, NULL);
    report_costs(&t, disturbed, 12, used);
    EXPECT(tune_best(&t) != 0);
    report_costs(&t, usual, 5000, used);
    EXPECT_EQ(tune_best(&t), 0);
}

/* No candidate is abandoned, however expensive, and the expensive ones get no more than the budget. */
static void everything_is_examined_again(void)
{
    struct tune t;
    const uint64_t cost[] = {1000, 9000, 1100};
    int used[CANDIDATES] = {0}, before[CANDIDATES];
    tune_open(&t, CANDIDATES, NULL);
    report_costs(&t, cost, 100000, used);
    memcpy(before, used, sizeof(used));
    report_costs(&t, cost, 100000, used);
    EXPECT(used[1] > before[1]);
    EXPECT(used[2] > before[2]);
    const int excess = (used[1] - before[1]) * 8 + (used[2] - before[2]) / 10;
    EXPECT(excess < 100000 / TUNE_SHARE + 8 * TUNE_WINDOW);
}

/* Two ranks that report the same costs use the same candidates. */
static void equal_reports_give_equal_choices(void)
{
    struct tune a, b;
    tune_open(&a, CANDIDATES, NULL);
    tune_open(&b, CANDIDATES, NULL);
    seed = 5;
    for (int i = 0; i < 10000; i++) {
        struct tune_ticket x = tune_pick_candidate(&a, ALL), y = tune_pick_candidate(&b, ALL);
        const uint64_t ns = 1000 + tune_random_choice(1000) + 100u * x.candidate;
        EXPECT_EQ(x.candidate, y.candidate);
        tune_report(&a, &x, ns, i % 7 != 0);
        tune_report(&b, &y, ns, i % 7 != 0);
    }
}

/* Uses whose costs are never known neither stop nor disturb: the rule stays. */
static void without_costs_the_rule_stays(void)
{
    struct tune t;
    tune_open(&t, CANDIDATES, NULL);
    for (int i = 0; i < 1000; i++) {
        struct tune_ticket ticket = tune_pick_candidate(&t, ALL);
        EXPECT_EQ(ticket.candidate, 0);
        tune_report(&t, &ticket, 1000, false);
    }
    EXPECT_EQ(tune_reason(&t), TUNE_BY_RULE);
}

/* Many uses at a time, reported late and in any order; others that may not use the best. */
static void late_reports_and_excluded_candidates(void)
{
    struct tune t;
    const uint64_t cost[] = {3000, 1000, 2000};
    tune_open(&t, CANDIDATES, NULL);
    seed = 9;
    for (int i = 0; i < 3000; i++) {
        struct tune_ticket under_way[16];
        for (int k = 0; k < 16; k++) {
            const uint32_t allowed = k % 4 == 3 ? 5 : ALL;
            under_way[k] = tune_pick_candidate(&t, allowed);
            EXPECT(allowed >> under_way[k].candidate & 1);
        }
        for (int k = 15; k >= 0; k--)
            tune_report(&t, &under_way[k], cost[under_way[k].candidate], true);
    }
    EXPECT_EQ(tune_best(&t), 1);
    for (int i = 0; i < 1000; i++) {
        struct tune_ticket ticket = tune_pick_candidate(&t, 5);
        tune_report(&t, &ticket, cost[ticket.candidate], true);
    }
    EXPECT_EQ(tune_best(&t), 2);
}

static void priors_postpone_and_do_not_decide(void)
{
    struct tune t;
    const uint32_t prior[] = {5000, 1000, 1200};
    const uint64_t cost[] = {1000, 2000, 1500};
    int used[CANDIDATES] = {0};
    tune_open(&t, CANDIDATES, prior);
    EXPECT_EQ(tune_best(&t), 1);
    EXPECT_EQ(tune_reason(&t), TUNE_BY_PRIOR);
    report_costs(&t, cost, TUNE_GAP / 2, used);
    EXPECT_EQ(used[0], 0);
    report_costs(&t, cost, 1000, used);
    EXPECT_EQ(tune_best(&t), 0);
}

static void described_for_people(void)
{
    static const char *const names[] = {"read", "pieces", "split"};
    struct tune t;
    char text[200], shorter[8];
    const uint64_t cost[] = {3000, 1000, 2000};
    int used[CANDIDATES] = {0};
    tune_open(&t, CANDIDATES, NULL);
    report_costs(&t, cost, 200, used);
    tune_describe(&t, names, 1, text, sizeof(text));
    EXPECT_STR(text, "pieces 1.00 us by cost, split 2.00 us, read 3.00 us");
    EXPECT_EQ(tune_describe(&t, names, 1, shorter, sizeof(shorter)), 7);
}

int main(void)
{
    TEST_RUN(recorded_machines);
    TEST_RUN(random_machines);
    TEST_RUN(a_first_impression_is_corrected);
    TEST_RUN(everything_is_examined_again);
    TEST_RUN(equal_reports_give_equal_choices);
    TEST_RUN(without_costs_the_rule_stays);
    TEST_RUN(late_reports_and_excluded_candidates);
    TEST_RUN(priors_postpone_and_do_not_decide);
    TEST_RUN(described_for_people);
    return test_result();
}

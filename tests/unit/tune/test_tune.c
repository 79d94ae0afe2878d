/* test_tune.c: the regret of the tuner compared with the best candidate forced, on every recorded machine
 * (cost_tables.h) and on random machines, with noise, outliers, drift, caches that favour the previous
 * candidate, and a machine whose costs change half-way. Prints the table of docs/tuning.md. All costs are
 * computed, none is measured, so the figures are the same everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/tune.h"

#include <stdlib.h>

#include "cost_tables.h"
#include "random.h"
#include "test.h"

enum { FIRST = 100, STEADY = 20000, CANDIDATES = 3, KINDS = 2, ALL = 7 };

struct machine {
    uint64_t cost[TUNE_CANDIDATES];
    unsigned count, last_candidate,
        uses_since_change;  /* candidates; last candidate used; uses since the candidate changed */
    uint32_t drift_percent; /* percent of the cost */
    unsigned cold_uses;     /* first uses, which touch new memory */
};

static uint64_t use_candidate(struct machine *m, unsigned c)
{
    uint64_t ns = m->cost[c] * m->drift_percent / 100;
    m->uses_since_change = c == m->last_candidate ? m->uses_since_change + 1 : 0;
    m->last_candidate = c;
    ns = ns * (100 + random_below(20)) / 100;
    if (m->uses_since_change == 0)
        ns = ns * 3 / 2;
    if (m->cold_uses > 0) {
        m->cold_uses--;
        ns *= 4;
    }
    return random_below(100) == 0 ? ns * 20 : ns;
}

/* Returns the regret of `n` uses in percent of the best candidate's cost; both get the same noise. */
static int measure_regret(struct tune *t, struct machine *m, int n, uint32_t drift_to)
{
    uint64_t ours = 0, best = UINT64_MAX;
    const uint32_t begin = random_seed, from = m->drift_percent;
    const struct machine start = *m;
    for (unsigned c = 0; c < m->count; c++) {
        uint64_t all = 0;
        *m = start;
        random_seed = begin;
        for (int i = 0; i < n; i++) {
            m->drift_percent = from + (uint32_t)((int64_t)(drift_to - from) * i / n);
            all += use_candidate(m, c);
        }
        best = all < best ? all : best;
    }
    *m = start;
    random_seed = begin;
    for (int i = 0; i < n; i++) {
        struct tune_ticket ticket = tune_pick_candidate(t, ALL);
        m->drift_percent = from + (uint32_t)((int64_t)(drift_to - from) * i / n);
        const uint64_t ns = use_candidate(m, ticket.candidate);
        ours += ns;
        tune_report(t, &ticket, ns, true);
    }
    return (int)(((int64_t)ours - (int64_t)best) * 100 / (int64_t)best);
}

struct summary {
    int worst[4], sum[4],
        rows; /* index: first uses, steady state, first uses after a change, steady state after it */
};

static void add_to_summary(struct summary *s, struct machine *before, struct machine *after)
{
    struct tune t;
    int r[4];
    tune_open(&t, before->count, NULL);
    r[0] = measure_regret(&t, before, FIRST, 100);
    r[1] = measure_regret(&t, before, STEADY, 150);
    after->drift_percent = 100;
    r[2] = measure_regret(&t, after, 10 * FIRST, 100);
    r[3] = measure_regret(&t, after, STEADY, 100);
    s->rows++;
    for (int i = 0; i < 4; i++) {
        s->sum[i] += r[i];
        s->worst[i] = r[i] > s->worst[i] ? r[i] : s->worst[i];
    }
}

static struct machine make_machine(const struct cost_row *row, int kind)
{
    struct machine m = {
        .count = CANDIDATES, .last_candidate = UINT32_MAX, .drift_percent = 100, .cold_uses = 3};
    const uint32_t cost[KINDS][CANDIDATES] = {{row->lone_pieces, row->lone_read, row->lone_split},
                                              {row->window_pieces, row->window_read, row->window_split}};
    for (unsigned c = 0; c < CANDIDATES; c++)
        m.cost[c] = cost[kind][c];
    return m;
}

static void print_summary(const char *name, const struct summary *s)
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

static void test_recorded_machines(void)
{
    printf("\n| machine | first 100 uses | next 20,000 | first 1,000 after a change | next 20,000 "
           "|\n|---|---|---|---|---|\n");
    for (int k = 0; k < MACHINES; k++) {
        struct summary s = {.rows = 0};
        for (int i = 0; i < COST_ROWS; i++)
            for (int kind = 0; kind < KINDS; kind++) {
                struct machine before = make_machine(&machines[k].rows[i], kind);
                struct machine after = make_machine(&machines[(k + 1) % MACHINES].rows[i], kind);
                random_seed = (uint32_t)(i * KINDS + kind + 1);
                add_to_summary(&s, &before, &after);
            }
        print_summary(machines[k].name, &s);
        EXPECT(s.sum[1] <= 5 * s.rows);
        EXPECT(s.worst[1] <= 10);
        EXPECT(s.worst[3] <= 10);
    }
}

static void test_random_machines(void)
{
    struct summary s = {.rows = 0};
    for (uint32_t k = 0; k < 200; k++) {
        struct machine m[2];
        random_seed = k * 7919 + 1;
        for (int i = 0; i < 2; i++) {
            m[i] = (struct machine){
                .count = CANDIDATES, .last_candidate = UINT32_MAX, .drift_percent = 100, .cold_uses = 3};
            for (unsigned c = 0; c < CANDIDATES; c++)
                m[i].cost[c] = 1000 + random_below(5000);
        }
        random_seed = k + 1;
        add_to_summary(&s, &m[0], &m[1]);
    }
    print_summary("200 drawn at random", &s);
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

/* The first samples of the best candidate are disturbed by a factor of 50; the tuner still uses it in the
 * end. */
static void test_disturbed_first_sample(void)
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

/* Every candidate is retried, however expensive, and expensive candidates use no more than the budget. */
static void test_all_candidates_are_retried(void)
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
static void test_equal_reports_give_equal_choices(void)
{
    struct tune a, b;
    tune_open(&a, CANDIDATES, NULL);
    tune_open(&b, CANDIDATES, NULL);
    random_seed = 5;
    for (int i = 0; i < 10000; i++) {
        struct tune_ticket x = tune_pick_candidate(&a, ALL), y = tune_pick_candidate(&b, ALL);
        const uint64_t ns = 1000 + random_below(1000) + 100u * x.candidate;
        EXPECT_EQ(x.candidate, y.candidate);
        tune_report(&a, &x, ns, i % 7 != 0);
        tune_report(&b, &y, ns, i % 7 != 0);
    }
}

/* Uses whose costs are never reported change nothing: the choice of the rule remains. */
static void test_rule_stays_without_costs(void)
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

/* Many uses at once, reported late and in any order; and uses that may not use the best candidate. */
static void test_late_reports_and_excluded_candidates(void)
{
    struct tune t;
    const uint64_t cost[] = {3000, 1000, 2000};
    tune_open(&t, CANDIDATES, NULL);
    random_seed = 9;
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

static void test_priors_only_delay_trials(void)
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

static void test_description(void)
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
    TEST_RUN(test_recorded_machines);
    TEST_RUN(test_random_machines);
    TEST_RUN(test_disturbed_first_sample);
    TEST_RUN(test_all_candidates_are_retried);
    TEST_RUN(test_equal_reports_give_equal_choices);
    TEST_RUN(test_rule_stays_without_costs);
    TEST_RUN(test_late_reports_and_excluded_candidates);
    TEST_RUN(test_priors_only_delay_trials);
    TEST_RUN(test_description);
    return test_result();
}

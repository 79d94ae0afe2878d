/* test_rails_least.c: how finely messages are divided, found by trial: against times that were measured with softib, over rails
 * as a model of them, with completions that are found late, in mixed traffic, and when rails come, go and change.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "net/rails/adapt.h"
#include "net/rails/least.h"
#include "test.h"

enum { ALIGN = 4096 };

static uint32_t seed = 1;

static uint32_t dice(uint32_t sides)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % sides;
}

static unsigned cut_by(uint64_t smallest, const double *weight, uint32_t up, uint64_t bytes, struct stripe *s)
{
    struct stripe_rules rules = {.smallest = smallest, .align = ALIGN};
    return stripe_cut(&rules, weight, up, 0, bytes, s);
}

/* ---- tables ---- */

/* ns for a byte of one message at a time over 2 and 4 rails of 1 GB/s, x86-64, 2 virtual cores, softib: whole, and in 2 and 4
 * parts. What a class must choose is the smallest of its row. */
struct row {
    uint64_t bytes;
    double time[5]; /* by the number of parts */
};
static const struct row two[] = {
    {8192, {0, 1.93, 1.25}},  {16384, {0, 1.52, 1.59}},  {32768, {0, 1.37, 1.15}},
    {65536, {0, 1.23, 0.76}}, {131072, {0, 1.17, 0.65}}, {262144, {0, 1.10, 0.67}},
};
static const struct row four[] = {
    {8192, {0, 2.16, 2.25}},           {16384, {0, 1.61, 1.65, 0, 2.00}},  {32768, {0, 1.36, 1.15, 0, 1.15}},
    {65536, {0, 1.26, 0.77, 0, 0.70}}, {131072, {0, 1.17, 0.71, 0, 0.48}}, {262144, {0, 1.16, 0.70, 0, 0.44}},
};

static unsigned fewest_time(const struct row *r)
{
    unsigned best = 1;
    for (unsigned n = 2; n < 5; n++)
        if (r->time[n] > 0 && r->time[n] < r->time[best])
            best = n;
    return best;
}

/* One message at a time; one in 64 is found late, by up to 4 ms. */
static void run_table(const struct row *rows, unsigned n, unsigned rails)
{
    const double weight[RAILS_MAX] = {1, 1, 1, 1};
    struct stripe s[RAILS_MAX];
    struct least l;
    uint64_t now = 1000;
    least_open(&l);
    for (unsigned i = 0; i < n; i++) {
        unsigned parts = 0;
        for (int m = 0; m < 400; m++) {
            struct least_ticket t = least_next(&l, ALIGN, weight, rails_all(rails), false, rows[i].bytes);
            parts = cut_by(t.smallest, weight, rails_all(rails), rows[i].bytes, s);
            uint64_t began = now;
            EXPECT(parts < 5);
            now += (uint64_t)(rows[i].time[parts & 7] * (double)rows[i].bytes);
            now += dice(64) == 0 ? dice(4000000) : 0;
            least_done(&l, &t, rows[i].bytes, began, now);
        }
        EXPECT_EQ(parts, fewest_time(&rows[i]));
        EXPECT(parts > 1 || least_found(&l, rows[i].bytes) == UINT64_MAX);
        EXPECT(parts == 1 || least_found(&l, rows[i].bytes) < rows[i].bytes);
    }
    EXPECT_EQ(l.trials, n);
}

static void the_fastest_of_recorded_times_is_chosen(void)
{
    run_table(two, sizeof(two) / sizeof(two[0]), 2);
    run_table(four, sizeof(four) / sizeof(four[0]), 4);
}

/* ---- a model of rails ---- */

/* Rails that take one stripe after the other; each stripe costs the processor `cost` and the rail its bytes. */
struct model {
    struct least l;
    struct adapt a;
    double speed[RAILS_MAX]; /* bytes a ns */
    uint64_t cost, now, free_at[RAILS_MAX];
    uint32_t up;
};

static void model_open(struct model *m, unsigned rails, uint64_t cost)
{
    *m = (struct model){.cost = cost, .now = 1000, .up = rails_all(rails)};
    least_open(&m->l);
    adapt_open(&m->a, rails, 0.5);
    for (unsigned r = 0; r < rails; r++)
        m->speed[r] = 1;
}

struct under_way {
    struct least_ticket t;
    struct stripe s[RAILS_MAX];
    uint64_t bytes, began, at, ends[RAILS_MAX];
    unsigned parts;
};

static void model_begin(struct model *m, uint64_t bytes, struct under_way *w)
{
    uint32_t probe = adapt_probe(&m->a) & m->up;
    *w = (struct under_way){.bytes = bytes, .began = m->now};
    w->t = least_next(&m->l, ALIGN, m->a.weight, m->up, probe != 0, bytes);
    struct stripe_rules rules = {.smallest = w->t.smallest, .align = ALIGN};
    w->parts = stripe_cut(&rules, m->a.weight, m->up, probe, bytes, w->s);
    for (unsigned i = 0; i < w->parts; i++) {
        unsigned r = w->s[i].rail;
        m->now += m->cost;
        w->ends[i] = MAX(m->now, m->free_at[r]) + (uint64_t)((double)w->s[i].bytes / m->speed[r]);
        m->free_at[r] = w->ends[i];
        w->at = MAX(w->at, w->ends[i]);
    }
}

static void model_end(struct model *m, struct under_way *w)
{
    uint32_t set = 0;
    for (unsigned i = 0; i < w->parts; i++) {
        adapt_stripe(&m->a, w->s[i].rail, w->s[i].bytes, w->began, w->ends[i]);
        set |= rail_bit(w->s[i].rail);
    }
    adapt_message(&m->a, set);
    m->now = MAX(m->now, w->at);
    least_done(&m->l, &w->t, w->bytes, w->began, m->now);
}

/* `window` messages at a time, one begun when one ends. Stripes of the last one. */
static unsigned model_run(struct model *m, uint64_t bytes, unsigned window, unsigned messages)
{
    static struct under_way w[64];
    unsigned parts = 0;
    for (unsigned i = 0; i < window; i++)
        model_begin(m, bytes, &w[i]);
    for (unsigned n = 0; n < messages; n++) {
        struct under_way *next = &w[n % window];
        model_end(m, next);
        model_begin(m, bytes, next);
        parts = next->parts;
    }
    for (unsigned i = 0; i < window; i++)
        model_end(m, &w[(messages + i) % window]);
    return parts;
}

/* Cheap stripes are worth it early, dear ones from where their cost is less than what they save. */
static void what_a_stripe_costs_decides(void)
{
    static const unsigned windows[] = {1, 16, 64};
    for (unsigned i = 0; i < 3; i++) {
        struct model m;
        model_open(&m, 2, 100);
        EXPECT_EQ(model_run(&m, 32768, windows[i], 3000), 2);
        EXPECT_EQ(model_run(&m, 65536, windows[i], 3000), 2);
        model_open(&m, 2, 40000);
        model_run(&m, 16384, windows[i], 3000); /* the last one may be a probe */
        EXPECT_EQ(least_found(&m.l, 16384), UINT64_MAX);
        EXPECT_EQ(least_found(&m.l, 8192), 0); /* nobody has asked */
        EXPECT_EQ(model_run(&m, 1 << 20, windows[i], 100), 2);
    }
}

/* 1 GB/s and 250 MB/s: a fifth of the message goes over the slow one once the weights are known. */
static void slow_rails_get_their_part(void)
{
    struct model m;
    model_open(&m, 2, 100);
    m.speed[1] = 0.25;
    EXPECT_EQ(model_run(&m, 131072, 1, 1000), 2);
    EXPECT(m.a.weight[0] > 0.75 && m.a.weight[0] < 0.85);
}

/* It is measured again when a rail goes or comes back, and after a while. */
static void trials_are_repeated(void)
{
    struct model m;
    model_open(&m, 3, 100);
    EXPECT_EQ(model_run(&m, 262144, 4, 1000), 3);
    EXPECT_EQ(m.l.trials, 1);
    m.up = 3;
    EXPECT_EQ(model_run(&m, 262144, 4, 1000), 2);
    EXPECT_EQ(m.l.trials, 2);
    m.up = 7;
    EXPECT_EQ(model_run(&m, 262144, 4, 1000), 3);
    EXPECT_EQ(m.l.trials, 3);
    m.cost = 200000;
    model_run(&m, 262144, 4, 2 * LEAST_LASTS);
    EXPECT(m.l.trials >= 4);
    EXPECT_EQ(least_found(&m.l, 262144), UINT64_MAX);
}

/* Messages of other sizes are beside each: nothing is counted, and nothing is found. */
static void mixed_traffic_tells_nothing(void)
{
    struct model m;
    struct under_way a, b;
    model_open(&m, 2, 100);
    model_begin(&m, 65536, &a);
    for (int i = 0; i < 5000; i++) {
        model_begin(&m, 16384, &b);
        model_end(&m, &a);
        model_begin(&m, 65536, &a);
        model_end(&m, &b);
    }
    model_end(&m, &a);
    EXPECT_EQ(m.l.trials, 0);
    EXPECT_EQ(least_found(&m.l, 65536), 0);
    EXPECT_EQ(m.l.under_way + m.l.others, 0);
    EXPECT(!m.l.classes[3].trial); /* it rests */
}

/* A window that was under way while the process was away is found at once: its messages seem to have taken no time, and the
 * way they went must not win for that. */
static void completions_found_at_once_do_not_win(void)
{
    const double weight[RAILS_MAX] = {1, 1};
    struct stripe s[RAILS_MAX];
    struct least l;
    struct least_ticket t[64];
    uint64_t now = 1000, began[64];
    unsigned parts = 0;
    least_open(&l);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 64; i++) {
            t[i] = least_next(&l, ALIGN, weight, 3, false, 65536);
            parts = cut_by(t[i].smallest, weight, 3, 65536, s);
            began[i] = now;
        }
        bool away = dice(3) == 0; /* else each is found when it is there */
        uint64_t each = parts == 1 ? 65536 : 32768;
        now += away ? 64 * each : 0;
        for (int i = 0; i < 64; i++) {
            now += away ? 0 : each;
            least_done(&l, &t[i], 65536, began[i], now);
        }
    }
    EXPECT_EQ(parts, 2);
    EXPECT(l.trials > 0);
}

/* Whatever comes: no ticket is lost, and what it says can be cut. */
static void tickets_add_up(void)
{
    for (int round = 0; round < 50; round++) {
        struct least l;
        struct least_ticket open[32];
        uint64_t bytes[32], now = 1;
        unsigned n = 0;
        double weight[RAILS_MAX];
        least_open(&l);
        for (int i = 0; i < 4000; i++) {
            for (int r = 0; r < RAILS_MAX; r++)
                weight[r] = 1 + dice(dice(50) ? 2 : 100);
            if (n == 32 || (n > 0 && dice(2))) {
                unsigned k = dice(n);
                if (dice(20))
                    least_done(&l, &open[k], bytes[k], now - dice(100), now + dice(3));
                else
                    least_never(&l, &open[k]);
                open[k] = open[--n];
                bytes[k] = bytes[n];
                now += 150;
            } else {
                bytes[n] = dice(1u << (1 + dice(23)));
                open[n] =
                    least_next(&l, ALIGN, weight, 1 + dice(dice(500) ? 1 : 255), dice(9) == 0, bytes[n]);
                EXPECT(open[n].smallest > 0);
                n++;
            }
            EXPECT_EQ(l.under_way + l.others, n);
        }
    }
}

int main(void)
{
    TEST_RUN(the_fastest_of_recorded_times_is_chosen);
    TEST_RUN(what_a_stripe_costs_decides);
    TEST_RUN(slow_rails_get_their_part);
    TEST_RUN(trials_are_repeated);
    TEST_RUN(mixed_traffic_tells_nothing);
    TEST_RUN(completions_found_at_once_do_not_win);
    TEST_RUN(tickets_add_up);
    return test_result();
}

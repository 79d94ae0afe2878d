/* test_rails_stripe.c: division of messages into stripes, adaptive weights of rails, and the completion
 * filter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "net/rails/filter.h"
#include "random.h"
#include "test.h"

static const struct stripe_rules rules = {.smallest = 8192, .align = 4096};

static void test_even_stripes(void)
{
    struct stripe s[RAILS_MAX];
    double weight[RAILS_MAX] = {1, 1, 1};
    EXPECT_EQ(stripe_cut(&rules, weight, 7, 0, 3 << 20, s), 3);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(s[i].bytes, 1 << 20);
        EXPECT_EQ(s[i].rail, i);
    }
    EXPECT_EQ(stripe_cut(&rules, weight, 7, 0, 2 * 8192 - 1, s), 1);
    EXPECT_EQ(stripe_cut(&rules, weight, 7, 0, 2 * 8192, s), 2);
    EXPECT_EQ(stripe_cut(&rules, weight, 5, 0, 1 << 20, s), 2);
    EXPECT_EQ(s[1].rail, 2);
    EXPECT_EQ(stripe_cut(&rules, weight, 7, 0, 0, s), 1);
    EXPECT_EQ(s[0].bytes, 0);
    EXPECT_EQ(stripe_cut(&rules, weight, 0, 0, 1000, s), 0);
}

static void test_short_message_uses_heaviest_rail(void)
{
    struct stripe s[RAILS_MAX];
    double weight[RAILS_MAX] = {1, 4};
    EXPECT_EQ(stripe_cut(&rules, weight, 3, 0, 10000, s), 1);
    EXPECT_EQ(s[0].rail, 1);
    EXPECT_EQ(stripe_cut(&rules, weight, 3, 0, 5 << 20, s), 2);
    EXPECT_EQ(s[0].bytes, 1 << 20);
    EXPECT_EQ(s[1].bytes, 4 << 20);
    /* 30000 * 1/5 is less than the smallest stripe; the rail gets a probe nevertheless. */
    EXPECT_EQ(stripe_cut(&rules, weight, 3, 0, 30000, s), 1);
    EXPECT_EQ(stripe_cut(&rules, weight, 3, 1, 30000, s), 2);
    EXPECT_EQ(s[0].rail, 0);
    EXPECT_EQ(s[0].bytes, 8192);
}

/* 4/5 of 24 KiB is 19.2 KiB: rounded down, the slow rail would take twice its share. */
static void test_stripes_round_to_nearest(void)
{
    struct stripe s[RAILS_MAX];
    const struct stripe_rules fine = {.smallest = 3072, .align = 4096};
    const double weight[RAILS_MAX] = {4, 1};
    EXPECT_EQ(stripe_cut(&fine, weight, 3, 0, 24576, s), 2);
    EXPECT_EQ(s[0].bytes, 20480);
    EXPECT_EQ(s[1].bytes, 4096);
}

/* For random weights: stripes cover every byte once and in order, use no rail twice, and are not smaller
 * than the smallest stripe minus rounding. */
static void test_stripes_cover_message(void)
{
    for (int round = 0; round < 20000; round++) {
        struct stripe s[RAILS_MAX];
        struct stripe_rules some = {.smallest = 1 + random_below(20000), .align = 1u << random_below(13)};
        double weight[RAILS_MAX];
        for (int r = 0; r < RAILS_MAX; r++)
            weight[r] = random_below(4) ? random_below(1000) / 1000.0 : 0;
        uint32_t up = 1 + random_below(65535), probe = random_below(2) ? random_below(65536) : 0, used = 0;
        uint64_t bytes = random_below(1u << (1 + random_below(22))), at = 0;
        unsigned count = stripe_cut(&some, weight, up, probe, bytes, s);
        EXPECT(count >= 1);
        for (unsigned i = 0; i < count; i++) {
            EXPECT_EQ(s[i].offset, at);
            EXPECT(s[i].bytes <= bytes);
            EXPECT(rail_set_contains(up, s[i].rail) && !rail_set_contains(used, s[i].rail));
            EXPECT(i + 1 == count || s[i].bytes > 0);
            EXPECT(count == 1 || s[i].bytes + 2 * some.align >= some.smallest);
            EXPECT(i == 0 || s[i].offset % some.align == 0);
            used |= rail_bit(s[i].rail);
            at += s[i].bytes;
        }
        EXPECT_EQ(at, bytes);
        if (test_failures > 20)
            return;
    }
}

/* Rails that transfer one stripe after the other, as a reliable connection does. */
struct serial_rails {
    uint64_t now, free_at[RAILS_MAX];
};

/* Simulates a message over rails of these speeds (bytes per ns). Completions are found when they occur,
 * or, if `late` > 0, all `late` ns after the start. Returns the duration in ns. */
static uint64_t simulate_message(struct adapt *a, struct serial_rails *serial_rails, const double *speed,
                                 uint64_t bytes, uint64_t latency, uint64_t late)
{
    struct stripe s[RAILS_MAX];
    struct filter f;
    uint32_t ticket[RAILS_MAX];
    uint64_t at[RAILS_MAX], started = serial_rails->now, longest = 0;
    unsigned count = stripe_cut(&rules, a->weight, rails_all(a->rails), adapt_rails_to_probe(a), bytes, s);
    filter_open(&f, s, count, rails_all(a->rails));
    for (unsigned i = 0; i < count; i++) {
        filter_next(&f, started, &ticket[i]);
        at[i] = started + latency + (uint64_t)((double)s[i].bytes / speed[s[i].rail]);
        longest = MAX(longest, at[i]);
    }
    for (unsigned done = 0; done < count; done++) {
        unsigned next = 0;
        for (unsigned i = 1; i < count; i++)
            if (at[i] < at[next])
                next = i;
        filter_completed(&f, ticket[next], late ? started + late : at[next], a);
        at[next] = UINT64_MAX;
    }
    serial_rails->now = late ? started + late : longest;
    return longest - started;
}

static double sum_weights(const struct adapt *a)
{
    double sum = 0;
    for (unsigned r = 0; r < a->rails; r++)
        sum += a->weight[r];
    return sum;
}

/* Rails of 1 GB/s and 250 MB/s: the weights come within 5 % of the optimum soon, and again after a
 * disturbance. */
static void test_weights_adapt_and_recover(void)
{
    struct adapt a;
    struct serial_rails serial_rails = {.now = 1000};
    double speed[RAILS_MAX] = {1, 0.25};
    adapt_open(&a, 2, 0.5);
    EXPECT(a.weight[0] == a.weight[1]);
    uint64_t first = simulate_message(&a, &serial_rails, speed, 1 << 20, 0, 0), time = 0;
    for (int i = 0; i < 10; i++)
        time = simulate_message(&a, &serial_rails, speed, 1 << 20, 0, 0);
    double best = (1 << 20) / 1.25;
    EXPECT((double)time < 1.05 * best && (double)first > 2.4 * best);
    speed[0] = 0.05; /* other traffic uses most of rail 0 */
    for (int i = 0; i < 12; i++)
        time = simulate_message(&a, &serial_rails, speed, 1 << 20, 0, 0);
    EXPECT((double)time < 1.05 * (1 << 20) / 0.30);
    speed[0] = 1;
    for (int i = 0; i < 12; i++)
        time = simulate_message(&a, &serial_rails, speed, 1 << 20, 0, 0);
    EXPECT((double)time < 1.05 * best);
    EXPECT(fabs(sum_weights(&a) - 1) < 1e-9);
}

/* A rail so slow that its share is below the smallest stripe: only a probe can detect that it becomes fast
 * again. */
static void test_probe_finds_recovered_rail(void)
{
    struct adapt a;
    struct serial_rails serial_rails = {.now = 1000};
    double speed[RAILS_MAX] = {1, 0.01};
    adapt_open(&a, 2, 0.5);
    for (int i = 0; i < 40; i++)
        simulate_message(&a, &serial_rails, speed, 1 << 20, 0, 0);
    EXPECT(a.weight[1] < 0.011);
    speed[1] = 1;
    uint64_t time = 0;
    for (int i = 0; i < 80; i++)
        time = simulate_message(&a, &serial_rails, speed, 1 << 20, 0, 0);
    EXPECT((double)time < 1.05 * (1 << 19));
}

/* A busy process that finds all completions at once measures nothing about the rails. */
static void test_late_completions_are_ignored(void)
{
    struct adapt a;
    struct serial_rails serial_rails = {.now = 1000};
    double speed[RAILS_MAX] = {1, 0.25, 0.5};
    adapt_open(&a, 3, 0.5);
    for (int i = 0; i < 30; i++)
        simulate_message(&a, &serial_rails, speed, 1 << 20, 0, 0);
    struct adapt before = a;
    for (int i = 0; i < 1000; i++)
        simulate_message(&a, &serial_rails, speed, 1 << 20, 0, 50000000);
    for (int r = 0; r < 3; r++)
        EXPECT(a.weight[r] == before.weight[r]);
    EXPECT_EQ(a.kept, before.kept + 1000);
}

/* With noise of 20 % and a constant latency the weights are near the optimum on average. */
static void test_noise_is_averaged(void)
{
    struct adapt a;
    struct serial_rails serial_rails = {.now = 1000};
    uint64_t sum = 0;
    adapt_open(&a, 4, 0.3);
    for (int i = 0; i < 400; i++) {
        double speed[RAILS_MAX];
        for (int r = 0; r < 4; r++)
            speed[r] = (r + 1) * 0.25 * (0.9 + random_below(201) / 1000.0);
        uint64_t t = simulate_message(&a, &serial_rails, speed, 1 << 20, 3000, 0);
        sum += i >= 20 ? t : 0;
        for (int r = 0; r < 4; r++)
            EXPECT(a.weight[r] > 1.0 / 300 && a.weight[r] < 1);
    }
    EXPECT((double)sum / 380 < 1.12 * (3000 + (1 << 20) / 2.5));
}

/* Eight concurrent messages on rails that transfer one stripe after the other. Times measured from posting
 * would reflect the weights of eight messages ago, and the weights would oscillate. */
static void test_concurrent_messages(void)
{
    enum { WINDOW = 8, MESSAGES = 400 };
    struct adapt a;
    struct filter f[WINDOW];
    uint32_t ticket[WINDOW][RAILS_MAX];
    uint64_t at[WINDOW][RAILS_MAX], free_at[RAILS_MAX] = {0}, now = 1, bytes = 0, since = 0;
    const double speed[2] = {1, 0.25};
    unsigned sent = 0;
    adapt_open(&a, 2, 0.5);
    memset(at, 0xff, sizeof(at));
    for (unsigned i = 0; i < WINDOW; i++)
        f[i].missing = 0;
    while (sent < MESSAGES) {
        unsigned m = 0, s = 0;
        for (unsigned i = 0; i < WINDOW; i++) {
            if (f[i].missing)
                continue;
            struct stripe stripes[RAILS_MAX];
            unsigned count = stripe_cut(&rules, a.weight, 3, adapt_rails_to_probe(&a), 1 << 20, stripes);
            filter_open(&f[i], stripes, count, 3);
            for (unsigned k = 0; k < count; k++) {
                filter_next(&f[i], now, &ticket[i][k]);
                unsigned rail = stripes[k].rail;
                free_at[rail] = MAX(free_at[rail], now) + (uint64_t)((double)stripes[k].bytes / speed[rail]);
                at[i][k] = free_at[rail];
            }
            sent++;
        }
        for (unsigned i = 0; i < WINDOW * RAILS_MAX; i++)
            if (at[i / RAILS_MAX][i % RAILS_MAX] < at[m][s])
                m = i / RAILS_MAX, s = i % RAILS_MAX;
        now = at[m][s];
        at[m][s] = UINT64_MAX;
        if (filter_completed(&f[m], ticket[m][s], now, &a) == FILTER_DONE && sent > 100) {
            since = since ? since : now;
            bytes += 1 << 20;
        }
    }
    EXPECT((double)bytes / (double)(now - since) > 0.95 * 1.25);
    EXPECT(fabs(a.weight[0] - 0.8) < 0.01);
}

/* ---- the completion filter ---- */

static void open_filter_with_stripes(struct filter *f, unsigned rails, uint64_t bytes)
{
    struct stripe s[RAILS_MAX];
    double weight[RAILS_MAX] = {1, 1, 1, 1};
    unsigned count = stripe_cut(&rules, weight, rails_all(rails), 0, bytes, s);
    filter_open(f, s, count, rails_all(rails));
}

static void test_completion_is_reported_once(void)
{
    struct filter f;
    uint32_t ticket[3], none;
    open_filter_with_stripes(&f, 3, 3 << 20);
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(filter_next(&f, 100, &ticket[i]), i);
    EXPECT_EQ(filter_next(&f, 100, &none), -1);
    EXPECT_EQ(filter_completed(&f, ticket[1], 150, NULL), FILTER_NOTHING);
    EXPECT_EQ(filter_completed(&f, ticket[1], 150, NULL), FILTER_NOTHING); /* duplicate */
    EXPECT_EQ(filter_completed(&f, ticket[0], 160, NULL), FILTER_NOTHING);
    EXPECT_EQ(filter_completed(&f, ticket[2], 170, NULL), FILTER_DONE);
    EXPECT_EQ(filter_completed(&f, ticket[2], 170, NULL), FILTER_NOTHING);
}

static void test_failed_stripe_is_repeated(void)
{
    struct filter f;
    uint32_t ticket[2], again;
    open_filter_with_stripes(&f, 2, 2 << 20);
    filter_next(&f, 0, &ticket[0]);
    filter_next(&f, 0, &ticket[1]);
    EXPECT_EQ(filter_set_rail_up(&f, 1, false), FILTER_NOTHING); /* stripes in flight may still arrive */
    EXPECT_EQ(filter_failed(&f, ticket[1]), FILTER_AGAIN);
    EXPECT_EQ(filter_next(&f, 5, &again), 1);
    EXPECT_EQ(f.stripes[1].stripe.rail, 0);
    EXPECT_EQ(f.stripes[1].stripe.offset, 1 << 20);
    /* A completion of the abandoned attempt is ignored. */
    EXPECT_EQ(filter_completed(&f, ticket[1], 9, NULL), FILTER_NOTHING);
    EXPECT_EQ(filter_set_rail_up(&f, 0, false), FILTER_NOTHING);
    EXPECT_EQ(filter_failed(&f, again), FILTER_STUCK);
    EXPECT_EQ(filter_next(&f, 9, &again), -1);
    EXPECT_EQ(filter_set_rail_up(&f, 1, true), FILTER_AGAIN);
    EXPECT_EQ(filter_next(&f, 9, &again), 1);
    EXPECT_EQ(f.stripes[1].stripe.rail, 1);
    EXPECT_EQ(filter_completed(&f, ticket[0], 10, NULL), FILTER_NOTHING);
    EXPECT_EQ(filter_completed(&f, again, 10, NULL), FILTER_DONE);
}

/* Rails fail and return at random. The completion is reported once, after every byte was confirmed and no
 * stripe is in flight. */
static void test_random_failures(void)
{
    for (int round = 0; round < 3000; round++) {
        struct filter f;
        uint32_t open[64], ticket;
        unsigned opened = 0, done = 0, steps = 0;
        open_filter_with_stripes(&f, 4, (uint64_t)1 << (13 + random_below(9)));
        while (!done && steps++ < 10000) {
            enum filter_verdict v = FILTER_NOTHING;
            unsigned what = random_below(8), pick = opened ? random_below(opened) : 0;
            if (what == 0)
                filter_set_rail_up(&f, random_below(4), random_below(3) != 0);
            else if (what < 4 && opened < 64 && filter_next(&f, steps, &ticket) >= 0)
                open[opened++] = ticket;
            else if (opened && what < 7) {
                v = what == 6 ? filter_failed(&f, open[pick]) : filter_completed(&f, open[pick], steps, NULL);
                open[pick] = open[--opened];
            }
            if (v != FILTER_DONE)
                continue;
            done++;
            EXPECT_EQ(opened, 0);
            for (unsigned i = 0; i < f.count; i++)
                EXPECT_EQ(f.stripes[i].state, FILTER_ARRIVED);
        }
        EXPECT_EQ(done, 1);
    }
}

int main(void)
{
    TEST_RUN(test_even_stripes);
    TEST_RUN(test_short_message_uses_heaviest_rail);
    TEST_RUN(test_stripes_round_to_nearest);
    TEST_RUN(test_stripes_cover_message);
    TEST_RUN(test_weights_adapt_and_recover);
    TEST_RUN(test_probe_finds_recovered_rail);
    TEST_RUN(test_late_completions_are_ignored);
    TEST_RUN(test_noise_is_averaged);
    TEST_RUN(test_concurrent_messages);
    TEST_RUN(test_completion_is_reported_once);
    TEST_RUN(test_failed_stripe_is_repeated);
    TEST_RUN(test_random_failures);
    return test_result();
}

/* test_pick.c: the choice among candidates from noisy samples of costs that `fishplate bench barrier`
 * recorded.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "test.h"
#include "tune/pick.h"

/* Costs of one shape of a job in us, measured and predicted by the model; candidate 0 is the choice of the
 * rules. */
struct shape_costs {
    const char *shape;
    int count;
    double us[8], predicted[8];
};
static const struct shape_costs recorded[] = {
    {"2x2", 3, {0.40, 0.57, 0.64}, {1.05, 1.90, 1.50}},
    {"4x4", 6, {6.66, 5.44, 6.69, 8.33, 8.16, 8.76}, {44, 27.1, 28, 44, 21, 40}},
    {"8x2", 6, {15.6, 15.19, 16.34, 15.86, 15.65, 34.4}, {27, 25.7, 28, 27, 27, 38}},
    {"8x8", 6, {64.18, 62.72, 37.27, 91.36, 91.09, 87.88}, {61, 42.8, 28, 38, 42, 61}},
    {"8x8, the model is wrong about the rule", 4, {10, 30, 40, 50}, {50, 10, 12, 14}},
};
enum { TRIES = 8, TABLES = sizeof(recorded) / sizeof(recorded[0]), ROUNDS = 200 };

static unsigned noise_seed = 12345;
static double random_noise_factor(double most)
{
    noise_seed = noise_seed * 1103515245u + 12345u;
    return 1 + most * ((double)(noise_seed >> 16 & 0x7fff) / 0x7fff);
}

/* Chooses from samples that exceed the cost by up to the factor 1 + `most`, the first sample of each
 * candidate by up to 2. Stops after `samples` samples. */
static int choose_candidate(const struct shape_costs *t, double most, int samples, struct pick *p)
{
    int next;
    pick_init(p, t->predicted, t->count, TRIES);
    while (samples-- > 0 && (next = pick_next(p)) >= 0)
        pick_record(p, (uint64_t)(t->us[next] * random_noise_factor(p->samples[next] == 0 ? 1 : most) * 1e3));
    return pick_best(p);
}

static double get_best_cost(const struct shape_costs *t)
{
    double best = t->us[0];
    for (int i = 1; i < t->count; i++)
        best = fmin(best, t->us[i]);
    return best;
}

/* The choice is at most 5 % slower than the best, in the geometric mean, with noise of 25 %. */
static void test_regret(void)
{
    double logs = 0, worst = 0;
    for (int k = 0; k < TABLES; k++)
        for (int i = 0; i < ROUNDS; i++) {
            struct pick p;
            const int chosen = choose_candidate(&recorded[k], 0.25, 1000, &p);
            const double ratio = recorded[k].us[chosen] / get_best_cost(&recorded[k]);
            logs += log(ratio) / (TABLES * ROUNDS);
            worst = fmax(worst, ratio);
        }
    EXPECT(exp(logs) <= 1.05);
    EXPECT(worst < 1.3);
}

/* Never measurably worse than the rules: two of the recorded candidates differ by less than 2 %. */
static void test_choice_is_no_worse_than_rule(void)
{
    for (int k = 0; k < TABLES; k++)
        for (int i = 0; i < ROUNDS; i++) {
            struct pick p;
            EXPECT(recorded[k].us[choose_candidate(&recorded[k], 0.1, 1000, &p)] <= recorded[k].us[0] * 1.02);
        }
}

static void test_rule_is_tried(void)
{
    struct pick p;
    pick_init(&p, (const double[]){9, 1, 2, 100}, 4, 8);
    EXPECT_EQ(p.tries,
              3); /* the candidate with cost 100 is dropped; the rule's candidate is tried at any cost */
    for (int i = 0; i < PICK_PASSES; i++) {
        EXPECT_EQ(pick_next(&p), 0);
        pick_record(&p, 50);
        EXPECT_EQ(pick_next(&p), 1);
        pick_record(&p, 48);
        EXPECT_EQ(pick_next(&p), 2);
        pick_record(&p, 49);
    }
    EXPECT_EQ(pick_next(&p), -1);
    EXPECT_EQ(pick_best(&p), 0); /* the rule's candidate (50) stays: 48 is not 5 % lower */
}

/* Another program disturbs the first sample of the fastest candidate. */
static void test_one_bad_sample(void)
{
    struct pick p;
    int next;
    pick_init(&p, (const double[]){1, 1, 1}, 3, 8);
    while ((next = pick_next(&p)) >= 0)
        pick_record(&p, next == 2 ? (p.samples[2] == 0 ? 20000 : 600) : 1000);
    EXPECT_EQ(pick_best(&p), 2);
    EXPECT_EQ(p.samples[2], PICK_PASSES);
}

/* Clearly slower candidates are dropped early; the rule stays for comparison; the search ends when nothing
 * else is left. */
static void test_slow_candidates_are_dropped(void)
{
    struct pick p;
    pick_init(&p, (const double[]){1, 1, 1, 1}, 4, 8);
    const uint64_t ns[] = {1300, 1000, 3500, 1250};
    int tried[4] = {0}, next;
    while ((next = pick_next(&p)) >= 0) {
        tried[next]++;
        pick_record(&p, ns[next]);
    }
    EXPECT(tried[0] == PICK_PASSES && tried[1] == PICK_PASSES && tried[2] == 2 && tried[3] == PICK_JUDGED);
    EXPECT_EQ(pick_best(&p), 1);
    EXPECT_EQ(pick_median(&p, 3), 1250);
    pick_init(&p, (const double[]){1, 1}, 2, 8);
    for (int i = 0; i < 2; i++) {
        pick_record(&p, 10);
        pick_record(&p, 1000);
    }
    EXPECT_EQ(pick_next(&p), -1);
    EXPECT_EQ(pick_best(&p), 0);
    pick_init(&p, (const double[]){1}, 1, 8);
    EXPECT_EQ(pick_next(&p), -1);
}

/* A single sample that is much too low or too high does not change the choice. */
static void test_median_of_samples_decides(void)
{
    struct pick p;
    pick_init(&p, (const double[]){1, 1}, 2, 8);
    for (int i = 0; i < PICK_PASSES; i++) {
        pick_record(&p, i == 4 ? 900000 : 1000);
        pick_record(&p, i == 5 ? 10 : 1100);
    }
    EXPECT_EQ(pick_best(&p), 0);
    EXPECT_EQ(pick_median(&p, 0), 1000);
}

/* If the measurement stops early, the choice of the rules stays unless enough candidates have been judged. */
static void test_measurement_stopped_early(void)
{
    struct pick p;
    const struct shape_costs *t = &recorded[3];
    EXPECT_EQ(choose_candidate(t, 0, 0, &p), 0);
    EXPECT_EQ(choose_candidate(t, 0, (PICK_JUDGED - 1) * t->count, &p), 0);
    EXPECT_EQ(choose_candidate(t, 0, PICK_JUDGED * t->count, &p), 2);
}

int main(void)
{
    TEST_RUN(test_regret);
    TEST_RUN(test_choice_is_no_worse_than_rule);
    TEST_RUN(test_rule_is_tried);
    TEST_RUN(test_one_bad_sample);
    TEST_RUN(test_slow_candidates_are_dropped);
    TEST_RUN(test_median_of_samples_decides);
    TEST_RUN(test_measurement_stopped_early);
    return test_result();
}

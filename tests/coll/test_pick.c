/* test_pick.c: the choice among candidates, driven by tables of costs that `fishplate bench barrier` recorded, with noise; and
 * the candidates that there are for a shape.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "../unit/test.h"
#include "coll/trial.h"

/* One shape: us of candidates as measured, predicted by the model; the first is the rules' choice. */
struct table {
    const char *shape;
    int count;
    double us[8], predicted[8];
};
static const struct table recorded[] = {
    {"2x2", 3, {0.40, 0.57, 0.64}, {1.05, 1.90, 1.50}},
    {"4x4", 6, {6.66, 5.44, 6.69, 8.33, 8.16, 8.76}, {44, 27.1, 28, 44, 21, 40}},
    {"8x2", 6, {15.6, 15.19, 16.34, 15.86, 15.65, 34.4}, {27, 25.7, 28, 27, 27, 38}},
    {"8x8", 6, {64.18, 62.72, 37.27, 91.36, 91.09, 87.88}, {61, 42.8, 28, 38, 42, 61}},
    {"8x8, the model is wrong about the rule", 4, {10, 30, 40, 50}, {50, 10, 12, 14}},
};
enum { TABLES = sizeof(recorded) / sizeof(recorded[0]), ROUNDS = 200 };

static unsigned dice = 12345;
static double noise(double most)
{
    dice = dice * 1103515245u + 12345u;
    return 1 + most * ((double)(dice >> 16 & 0x7fff) / 0x7fff);
}

static int pick_of(const struct table *t, double most, uint64_t budget, struct pick *p)
{
    int next;
    pick_begin(p, t->predicted, t->count, TRIAL_MOST, budget);
    while ((next = pick_next(p)) >= 0) {
        const uint64_t ns = (uint64_t)(t->us[next] * noise(most) * 1e3);
        pick_record(p, ns, ns * 30);
    }
    return pick_best(p);
}

static double best_of(const struct table *t)
{
    double best = t->us[0];
    for (int i = 1; i < t->count; i++)
        best = fmin(best, t->us[i]);
    return best;
}

/* What is chosen is at most 5 % slower than the best of all, in the geometric mean, with noise of 10 %. */
static void regret(void)
{
    double logs = 0, worst = 0;
    for (int k = 0; k < TABLES; k++)
        for (int i = 0; i < ROUNDS; i++) {
            struct pick p;
            const int chosen = pick_of(&recorded[k], 0.1, UINT64_MAX, &p);
            const double ratio = recorded[k].us[chosen] / best_of(&recorded[k]);
            logs += log(ratio) / (TABLES * ROUNDS);
            worst = fmax(worst, ratio);
        }
    EXPECT(exp(logs) <= 1.05);
    EXPECT(worst < 1.3);
}

/* Never worse than the rules by more than the noise. */
static void never_worse(void)
{
    for (int k = 0; k < TABLES; k++)
        for (int i = 0; i < ROUNDS; i++) {
            struct pick p;
            EXPECT(recorded[k].us[pick_of(&recorded[k], 0.05, UINT64_MAX, &p)] <= recorded[k].us[0] * 1.0001);
        }
}

static void first_is_the_rule(void)
{
    struct pick p;
    pick_begin(&p, (const double[]){9, 1, 2, 100}, 4, 8, UINT64_MAX);
    EXPECT_EQ(p.tries, 3); /* 100 is hopeless, and the rule is tried however bad it looks */
    EXPECT_EQ(pick_next(&p), 0);
    pick_record(&p, 50, 50);
    EXPECT_EQ(pick_next(&p), 1);
    pick_record(&p, 48, 50);
    EXPECT_EQ(pick_next(&p), 2);
    pick_record(&p, 49, 50);
    EXPECT_EQ(pick_next(&p), -1);
    EXPECT_EQ(pick_best(&p), 0); /* 48 is no less than 95 % of 50 */
}

static void time_is_bounded(void)
{
    struct pick p;
    const struct table *t = &recorded[3];
    pick_of(t, 0, 0, &p);
    EXPECT_EQ(p.next, 1); /* the rule's own time is not known before */
    EXPECT_EQ(pick_best(&p), 0);
    const uint64_t budget = 5000000;
    pick_of(t, 0, budget, &p);
    EXPECT(p.next > 1 && p.next < t->count);
    EXPECT(p.spent_ns < budget + 92000 * 30); /* one more than fits at most */
}

static void candidates(void)
{
    struct trial_candidate list[PICK_CANDIDATES];
    for (int nodes = 2; nodes <= 64; nodes++)
        for (int each = 1; each <= 8; each++)
            for (int k = 0; k < 4; k++) {
                const struct trial_shape s = {
                    .ranks = nodes * each, .nodes = nodes, .most = each, .turns = k & 1, .can_switch = k & 2};
                const int n = trial_candidates(&s, list);
                EXPECT(n >= 2 && n <= PICK_CANDIDATES);
                EXPECT(!list[0].choice.named);
                for (int i = 0; i < n; i++) {
                    EXPECT(list[i].predicted > 0 && isfinite(list[i].predicted));
                    EXPECT((k & 2) || strcmp(list[i].choice.algorithm->name, "switch") != 0);
                }
            }
    char name[32];
    trial_name(&(struct coll_choice){.algorithm = algorithm_find(COLL_BARRIER, "nway"),
                                     .parameter = {3},
                                     .by_node = true},
               name, sizeof(name));
    EXPECT_STR(name, "node+nway:n=3");
}

int main(void)
{
    TEST_RUN(regret);
    TEST_RUN(never_worse);
    TEST_RUN(first_is_the_rule);
    TEST_RUN(time_is_bounded);
    TEST_RUN(candidates);
    return test_result();
}

/* test_barrier_model.c: predicted times of barriers, compared with times computed by hand, with the paper's
 * formula, and with each other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/logp/barrier_model.h"

#include <math.h>

#include "test.h"

#define EXPECT_NEAR(actual, wanted, within)                                                                \
    do {                                                                                                   \
        double test_x = (actual), test_y = (wanted);                                                       \
        if (!(fabs(test_x - test_y) <= (within))) {                                                        \
            printf("%s:%d: in %s: %s is %g, expected %g\n", __FILE__, __LINE__, __func__, #actual, test_x, \
                   test_y);                                                                                \
            test_failures++;                                                                               \
        }                                                                                                  \
    } while (0)

static const struct model_logp machine = {.send = 1, .receive = 2, .gap = 0.5, .latency = 10};

static double barrier_model_logp(const char *name, int a, int b, int size)
{
    const int parameter[COLL_PARAMETERS] = {a, b};
    return model_barrier_logp(&machine, algorithm_find(COLL_BARRIER, name), parameter, size);
}

/* Expected times are the equations with o_s = 1, o_r = 2, g = 0.5, L = 10: one message takes 13. */
static void test_logp_times(void)
{
    EXPECT_NEAR(barrier_model_logp("central", 0, 0, 6), 2 * 13 + 4 * (2 + 1), 1e-9);
    EXPECT_NEAR(barrier_model_logp("dissemination", 0, 0, 8), 3 * 13, 1e-9);
    EXPECT_NEAR(barrier_model_logp("dissemination", 0, 0, 9), 4 * 13, 1e-9);
    EXPECT_NEAR(barrier_model_logp("tournament", 0, 0, 8), 6 * 13, 1e-9);
    EXPECT_NEAR(barrier_model_logp("pairwise", 0, 0, 9), 3 * 13 + 2 * 13, 1e-9);
    EXPECT_NEAR(barrier_model_logp("pairwise", 0, 0, 8), 3 * 13, 1e-9);
    EXPECT_NEAR(barrier_model_logp("butterfly", 0, 0, 9), 4 * (13 + 1 + 2), 1e-9);
    EXPECT_NEAR(barrier_model_logp("combining", 4, 0, 16), 2 * (13 + 2 * 2) + 2 * (13 + 2 * 1), 1e-9);
    EXPECT_NEAR(barrier_model_logp("fway", 4, 0, 16), 2 * (13 + 2 * 2) + 4 * 13, 1e-9);
    EXPECT_NEAR(barrier_model_logp("mcs", 4, 2, 21), 2 * (13 + 3 * 2) + 4 * (13 + 1), 1e-9);
    EXPECT_NEAR(barrier_model_logp("bst", 0, 0, 16), 8 * 13, 1e-9);
    EXPECT_NEAR(barrier_model_logp("nway", 2, 0, 27), 3 * (13 + 1 + 2), 1e-9);
    EXPECT_NEAR(barrier_model_logp("nwise", 2, 0, 27), 3 * (13 + 1 + 2), 1e-9);
    EXPECT_NEAR(barrier_model_logp("nwise", 2, 0, 28), 3 * (13 + 1 + 2) + 2 * 13, 1e-9);
}

/* A number of partners above the number of ranks counts as the number of ranks. */
static void test_few_ranks(void)
{
    for (int size = 2; size <= 5; size++)
        EXPECT_NEAR(barrier_model_logp("nway", 8, 0, size), 13 + (size - 2) * 3, 1e-9);
    EXPECT_NEAR(barrier_model_logp("nway", 2, 0, 1), 0, 1e-9);
    EXPECT_NEAR(barrier_model_logp("central", 0, 0, 1), 0, 1e-9);
    EXPECT(barrier_model_logp("inter", 0, 0, 4) < 0); /* the model has no equation for this algorithm */
}

/* L_min of an inline RDMA write as printed in [Hoefler05 2.3.7]: -0.56 + (6.98 p - 3.69) / (p^2 - 0.45 p -
 * 0.02) + 3.09 (1 - e^...). */
static void test_lop_formula_of_paper(void)
{
    for (int p = 10; p <= 60; p += 10) {
        const double printed = -0.56 + (6.98 * p - 3.69) / (p * (double)p - 0.45 * p - 0.02) +
                               3.09 * (1 - exp(-0.053 * (p - 8.27)));
        EXPECT_NEAR(model_latency_at(&model_paper_inline, p), printed, 0.06);
    }
}

static void test_lop_times(void)
{
    const struct model_lop m = {.send = {.a = 1}, .trip = {.l3 = 10}, .max_in_flight = 1e9};
    const struct coll_algorithm *nway = algorithm_find(COLL_BARRIER, "nway"),
                                *central = algorithm_find(COLL_BARRIER, "central");
    /* o = 1, L = 10 / 2 - 2 = 3 for every p. */
    EXPECT_NEAR(model_barrier_lop(&m, nway, (int[COLL_PARAMETERS]){2}, 9, 5), 2 * (2 * 1 + 2 * 3), 1e-9);
    EXPECT_NEAR(model_barrier_lop(&m, central, NULL, 5, 5), 2 * (1 + 4 * 3), 1e-9);
}

/* Each algorithm that has a schedule has an equation, and its time does not fall as the number of ranks
 * grows. */
static void test_every_algorithm_has_equation(void)
{
    for (size_t i = 0; i < algorithms_count(); i++) {
        const struct coll_algorithm *a = algorithms_get(i);
        if (a->kind != COLL_BARRIER || !a->generate || (a->needs & NEED_INTER))
            continue;
        double before = 0;
        for (int size = 2; size <= 4096; size *= 8) {
            const double us = model_barrier_logp(&machine, a, NULL, size);
            EXPECT(us >= before && us > 0);
            before = us;
        }
    }
}

int main(void)
{
    TEST_RUN(test_logp_times);
    TEST_RUN(test_few_ranks);
    TEST_RUN(test_lop_formula_of_paper);
    TEST_RUN(test_lop_times);
    TEST_RUN(test_every_algorithm_has_equation);
    return test_result();
}

/* test_fit.c: fits recover the parameters of known curves, noise appears in the residual, and too few points
 * give defined results.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/logp/fit.h"

#include <math.h>

#include "test.h"

enum { POINTS = 12 };

static bool fit_is_near(double a, double b, double within)
{
    return fabs(a - b) <= within;
}

static void test_overhead_is_recovered(void)
{
    double p[POINTS], y[POINTS];
    const struct model_overhead truth = {.a = 0.5417, .b = 0.5003, .c = -0.4951};
    for (int i = 0; i < POINTS; i++) {
        p[i] = i + 1;
        y[i] = model_overhead_at(&truth, p[i]);
    }
    const struct fit_overhead f = fit_overhead(p, y, POINTS);
    EXPECT(fit_is_near(f.curve.a, truth.a, 1e-3) && fit_is_near(f.curve.b, truth.b, 1e-2) &&
           fit_is_near(f.curve.c, truth.c, 1e-2));
    EXPECT(f.residual < 1e-4);
}

/* Fits the paper's curve: the fitted parameters may differ from the paper's, but the values of the curve
 * must agree. */
static void test_trip_is_recovered(void)
{
    double p[POINTS * 4], y[POINTS * 4];
    for (int i = 0; i < POINTS * 4; i++) {
        p[i] = i + 1;
        y[i] = model_trip_at(&model_paper_inline.trip, p[i]);
    }
    const struct fit_trip f = fit_trip(p, y, POINTS * 4);
    EXPECT(f.residual < 0.01);
    for (int i = 0; i < POINTS * 4; i++)
        EXPECT(fit_is_near(model_trip_at(&f.curve, p[i]), y[i], 0.05));
}

static void test_noise_is_residual(void)
{
    double p[POINTS], y[POINTS];
    for (int i = 0; i < POINTS; i++) {
        p[i] = i + 1;
        y[i] = 2 + 3 / p[i] + (i % 2 ? 0.1 : -0.1);
    }
    const struct fit_overhead f = fit_overhead(p, y, POINTS);
    EXPECT(f.residual > 0.05 && f.residual < 0.12);
}

static void test_few_points(void)
{
    const double p[] = {1, 2}, y[] = {4, 6};
    EXPECT(fit_is_near(fit_overhead(p, y, 2).curve.a, 5, 1e-9) && fit_overhead(p, y, 2).residual < 0);
    const struct fit_trip constant = fit_trip(p, y, 1);
    EXPECT(fit_is_near(model_trip_at(&constant.curve, 7), 4, 1e-9));
    EXPECT(fit_is_near(fit_overhead(p, y, 0).curve.a, 0, 1e-9));
    const double same[] = {3, 3, 3, 3}, one[] = {1, 2, 3, 4};
    const struct fit_overhead flat = fit_overhead(one, same, 4);
    EXPECT(fit_is_near(model_overhead_at(&flat.curve, 2), 3, 1e-6));
}

/* Values computed by hand: x = 1..5, y = 2 4 5 4 5; the line is 2.2 + 0.6 x. */
static void test_standard_errors_of_line(void)
{
    const double x[] = {1, 2, 3, 4, 5}, y[] = {2, 4, 5, 4, 5}, twice[] = {2, 4, 6, 8, 10};
    const struct fit_line f = fit_line(x, y, 5, true);
    EXPECT(fit_is_near(f.slope, 0.6, 1e-9) && fit_is_near(f.constant, 2.2, 1e-9));
    /* The sum of squared residuals is 2.4, with 3 degrees of freedom. */
    EXPECT(fit_is_near(f.slope_error, sqrt(0.8 / 10), 1e-9));
    EXPECT(fit_is_near(f.constant_error, sqrt(0.8 * (0.2 + 0.9)), 1e-9));
    const struct fit_line g = fit_line(x, twice, 5, false);
    EXPECT(fit_is_near(g.slope, 2, 1e-9) && fit_is_near(g.slope_error, 0, 1e-9) &&
           fit_is_near(g.constant, 0, 1e-9));
    EXPECT(fit_line(x, y, 2, true).slope_error < 0 && isnan(fit_line(x, y, 1, true).slope));
    EXPECT(isnan(fit_line(twice, y, 0, false).slope));
}

int main(void)
{
    TEST_RUN(test_overhead_is_recovered);
    TEST_RUN(test_trip_is_recovered);
    TEST_RUN(test_noise_is_residual);
    TEST_RUN(test_few_points);
    TEST_RUN(test_standard_errors_of_line);
    return test_result();
}

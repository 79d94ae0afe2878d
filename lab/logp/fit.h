/* fit.h: least squares for the curves of [Hoefler05 2.3.6.1]. Pure arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_FIT_H
#define FP_LAB_FIT_H

#include <stdbool.h>

#include "lab/logp/barrier_model.h"

struct fit_overhead {
    struct model_overhead curve;
    double residual; /* root mean square in the unit of y; negative: too few points */
};
struct fit_trip {
    struct model_trip curve;
    double residual;
};

/* Fits a + b / (c + p), with c > -1 so that there is no pole for p >= 1. Needs 3 points; with fewer the
 * curve is constant. */
struct fit_overhead fit_overhead(const double *p, const double *y, int n);

/* Fits l1 / (l2 + p) + l3 + l4 (1 - exp(l5 (p - l6))); with fewer than 6 points without the last term. */
struct fit_trip fit_trip(const double *p, const double *y, int n);

/* Line constant + slope * x by least squares, with the standard errors of both parameters; negative
 * errors: too few points. Without a constant the line passes through the origin. */
struct fit_line {
    double constant, slope, constant_error, slope_error;
    int n;
};
struct fit_line fit_line(const double *x, const double *y, int n, bool has_constant);

#endif

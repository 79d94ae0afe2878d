/* fit.c: both curves are linear except for one or two parameters, called bends here. For given bends the
 * other parameters are a linear least-squares problem with one solution, so only the bends are searched for:
 * on a grid, then on finer grids around the best. The paper searches all six numbers with the simplex method,
 * which ends in a nearby local minimum and must do so: data determine only two of l3, l4 and l6 (l4 (1 -
 * exp(l5 (p - l6))) is a constant and a multiple of exp(l5 p)), so l6 is 0 here.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fit.h"

#include <math.h>

enum { TERMS = 3, GRID = 24, REFINE = 8 };

/* Solves the normal equations by elimination with pivoting; false: there is no unique solution. */
static bool fit_solve(double a[TERMS][TERMS + 1], int n, double *x)
{
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int r = i + 1; r < n; r++)
            if (fabs(a[r][i]) > fabs(a[pivot][i]))
                pivot = r;
        if (fabs(a[pivot][i]) < 1e-12)
            return false;
        for (int c = 0; c <= n; c++) {
            const double t = a[i][c];
            a[i][c] = a[pivot][c];
            a[pivot][c] = t;
        }
        for (int r = 0; r < n; r++) {
            const double f = r == i ? 0 : a[r][i] / a[i][i];
            for (int c = i; c <= n && f != 0; c++)
                a[r][c] -= f * a[i][c];
        }
    }
    for (int i = 0; i < n; i++)
        x[i] = a[i][n] / a[i][i];
    return true;
}

/* The two terms other than the constant: 1 / (bend[0] + p) and exp(bend[1] p). */
static double fit_term(int i, const double *bend, double p)
{
    return i == 0 ? 1 : i == 1 ? 1 / (bend[0] + p) : exp(bend[1] * p);
}

/* Sum of squares for these bends; x receives the factors of the terms. */
static double fit_sum_of_squares(const double *p, const double *y, int n, int terms, const double *bend,
                                 double *x)
{
    double a[TERMS][TERMS + 1] = {{0}}, sum = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < terms; i++) {
            for (int j = 0; j < terms; j++)
                a[i][j] += fit_term(i, bend, p[k]) * fit_term(j, bend, p[k]);
            a[i][terms] += fit_term(i, bend, p[k]) * y[k];
        }
    if (!fit_solve(a, terms, x))
        return INFINITY;
    for (int k = 0; k < n; k++) {
        double d = y[k];
        for (int i = 0; i < terms; i++)
            d -= x[i] * fit_term(i, bend, p[k]);
        sum += d * d;
    }
    return sum;
}

struct fit_search {
    double bend[2], x[TERMS], sum;
};

/* Bounds of log(1 + l2) and log(-l5). */
static const double lowest[2] = {-3.0, -7.0}, highest[2] = {3.0, 0.7};

static struct fit_search fit_at_bends(const double *p, const double *y, int n, int terms, double u, double v)
{
    struct fit_search s = {.bend = {exp(u) - 1, -exp(v)}};
    s.sum = fit_sum_of_squares(p, y, n, terms, s.bend, s.x);
    return s;
}

static struct fit_search fit_search(const double *p, const double *y, int n, int terms)
{
    struct fit_search best = {.bend = {0, -0.05}, .sum = INFINITY};
    double low[2] = {lowest[0], lowest[1]}, high[2] = {highest[0], highest[1]};
    for (int round = 0; round < REFINE; round++) {
        double place[2] = {(low[0] + high[0]) / 2, (low[1] + high[1]) / 2};
        for (int i = 0; i <= GRID; i++)
            for (int j = 0; j <= (terms > 2 ? GRID : 0); j++) {
                const double u = low[0] + (high[0] - low[0]) * i / GRID,
                             v = low[1] + (high[1] - low[1]) * j / GRID;
                const struct fit_search s = fit_at_bends(p, y, n, terms, u, v);
                if (s.sum >= best.sum)
                    continue;
                best = s;
                place[0] = u;
                place[1] = v;
            }
        place[0] = isinf(best.sum) ? place[0] : log(1 + best.bend[0]);
        place[1] = isinf(best.sum) ? place[1] : log(-best.bend[1]);
        for (int k = 0; k < 2; k++) {
            const double width = (high[k] - low[k]) * 3 / GRID;
            low[k] = fmax(lowest[k], place[k] - width);
            high[k] = fmin(highest[k], place[k] + width);
        }
    }
    return best;
}

static double fit_mean(const double *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += y[i];
    return n ? sum / n : 0;
}

struct fit_overhead fit_overhead(const double *p, const double *y, int n)
{
    if (n < 3)
        return (struct fit_overhead){.curve = {.a = fit_mean(y, n)}, .residual = -1};
    const struct fit_search s = fit_search(p, y, n, 2);
    return (struct fit_overhead){.curve = {.a = s.x[0], .b = s.x[1], .c = s.bend[0]},
                                 .residual = sqrt(s.sum / n)};
}

struct fit_trip fit_trip(const double *p, const double *y, int n)
{
    if (n < 3)
        return (struct fit_trip){.curve = {.l3 = fit_mean(y, n)}, .residual = -1};
    const struct fit_search s = fit_search(p, y, n, n < 6 ? 2 : 3);
    const double l4 = n < 6 ? 0 : -s.x[2];
    return (struct fit_trip){
        .curve = {.l1 = s.x[1], .l2 = s.bend[0], .l3 = s.x[0] - l4, .l4 = l4, .l5 = s.bend[1]},
        .residual = sqrt(s.sum / n)};
}

static struct fit_line fit_line_unknown(int n)
{
    return (struct fit_line){.slope = NAN, .constant = NAN, .constant_error = -1, .slope_error = -1, .n = n};
}

struct fit_line fit_line(const double *x, const double *y, int n, bool has_constant)
{
    const double mx = has_constant ? fit_mean(x, n) : 0, my = has_constant ? fit_mean(y, n) : 0;
    const int parameters = has_constant ? 2 : 1;
    double sxx = 0, sxy = 0, rest = 0;
    for (int i = 0; i < n; i++) {
        sxx += (x[i] - mx) * (x[i] - mx);
        sxy += (x[i] - mx) * (y[i] - my);
    }
    if (n < parameters || !(sxx > 0))
        return fit_line_unknown(n);
    struct fit_line f = {.slope = sxy / sxx, .constant_error = -1, .slope_error = -1, .n = n};
    f.constant = my - f.slope * mx;
    for (int i = 0; i < n; i++) {
        const double d = y[i] - f.constant - f.slope * x[i];
        rest += d * d;
    }
    if (n > parameters) {
        f.slope_error = sqrt(rest / (n - parameters) / sxx);
        f.constant_error = has_constant ? sqrt(rest / (n - parameters) * (1.0 / n + mx * mx / sxx)) : 0;
    }
    return f;
}

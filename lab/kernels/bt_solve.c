/* bt_solve.c: BT's equation systems along a line: block tridiagonal, with blocks of five by five values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "adi.h"

enum { BT_BLOCK = GAS_M * GAS_M };

/* c = b^-1 c and r = b^-1 r; b is overwritten. The diagonal of b dominates, so no pivoting is needed. */
static void bt_apply_inverse_block(double b[BT_BLOCK], double c[BT_BLOCK], double r[GAS_M])
{
    for (int p = 0; p < GAS_M; p++) {
        double *bp = b + p * GAS_M, *cp = c + p * GAS_M, pivot = 1 / bp[p];
        for (int j = 0; j < GAS_M; j++) {
            bp[j] *= pivot;
            cp[j] *= pivot;
        }
        r[p] *= pivot;
        for (int i = 0; i < GAS_M; i++) {
            double *bi = b + i * GAS_M, *ci = c + i * GAS_M, factor = bi[p];
            if (i == p)
                continue;
            for (int j = 0; j < GAS_M; j++) {
                bi[j] -= factor * bp[j];
                ci[j] -= factor * cp[j];
            }
            r[i] -= factor * r[p];
        }
    }
}

/* b -= a * c; r -= a * v. */
static void bt_solve_subtract(const double a[BT_BLOCK], const double c[BT_BLOCK], const double v[GAS_M],
                              double b[BT_BLOCK], double r[GAS_M])
{
    for (int i = 0; i < GAS_M; i++)
        for (int k = 0; k < GAS_M; k++) {
            double factor = a[i * GAS_M + k];
            for (int j = 0; j < GAS_M; j++)
                b[i * GAS_M + j] -= factor * c[k * GAS_M + j];
            r[i] -= factor * v[k];
        }
}

/* Derivative blocks at a point. A row of the system needs the blocks of three consecutive points. */
struct blocks {
    double flux[GAS_M][GAS_M], twice[GAS_M][GAS_M];
};

/* Makes one row of the system: blocks a of the preceding point, b of the point itself, c of the next
 * point. */
static void bt_make_row(const struct adi_grid *g, const struct blocks *before, const struct blocks *at,
                        const struct blocks *after, double a[BT_BLOCK], double b[BT_BLOCK],
                        double c[BT_BLOCK])
{
    const double t1 = g->dt / (g->mesh.step * g->mesh.step), t2 = g->dt / (2 * g->mesh.step);
    for (int i = 0; i < GAS_M; i++)
        for (int j = 0; j < GAS_M; j++) {
            a[i * GAS_M + j] = -t2 * before->flux[i][j] - t1 * before->twice[i][j];
            b[i * GAS_M + j] = 2 * t1 * at->twice[i][j] + (i == j);
            c[i * GAS_M + j] = t2 * after->flux[i][j] - t1 * after->twice[i][j];
        }
}

/* `carry`: block and vector of the last point of the preceding cell; replaced by block and vector of the
 * last point of this cell. Zeros before the boundary point, whose value is fixed. */
static void bt_solve_eliminate(const struct adi_grid *g, const struct adi_line *l, double *carry)
{
    const struct adi_cell *cell = l->cell;
    const double *c = carry, *v = carry + BT_BLOCK, *u = cell->u + l->first * GAS_M;
    const ptrdiff_t stride = (ptrdiff_t)(l->stride * GAS_M);
    struct blocks three[3];
    for (int i = l->from - 1; i <= l->from; i++)
        gas_derivative_blocks(u + i * stride, l->direction, three[(i + 3) % 3].flux,
                              three[(i + 3) % 3].twice);
    for (int i = l->from; i < l->to; i++) {
        size_t at = l->first + (size_t)i * l->stride;
        struct blocks *after = &three[(i + 1) % 3];
        double a[BT_BLOCK], b[BT_BLOCK], *next = cell->saved + at * BT_BLOCK, *r = cell->rhs + at * GAS_M;
        gas_derivative_blocks(u + (i + 1) * stride, l->direction, after->flux, after->twice);
        bt_make_row(g, &three[(i + 2) % 3], &three[i % 3], after, a, b, next);
        bt_solve_subtract(a, c, v, b, r);
        bt_apply_inverse_block(b, next, r);
        c = next;
        v = r;
    }
    if (c != carry) {
        memcpy(carry, c, BT_BLOCK * sizeof(double));
        memcpy(carry + BT_BLOCK, v, GAS_M * sizeof(double));
    }
}

/* `carry`: vector of the first point of the next cell; replaced by the vector of the first point of this
 * cell. */
static void bt_solve_substitute(const struct adi_grid *g, const struct adi_line *l, double *carry)
{
    (void)g;
    const struct adi_cell *cell = l->cell;
    const double *v = carry;
    for (int i = l->to - 1; i >= l->from; i--) {
        size_t at = l->first + (size_t)i * l->stride;
        const double *c = cell->saved + at * BT_BLOCK;
        double *r = cell->rhs + at * GAS_M;
        for (int m = 0; m < GAS_M; m++)
            for (int k = 0; k < GAS_M; k++)
                r[m] -= c[m * GAS_M + k] * v[k];
        v = r;
    }
    if (v != carry)
        memcpy(carry, v, GAS_M * sizeof(double));
}

const struct adi_method bt_method = {
    .saved = BT_BLOCK, /* the block that couples a point to the next point */
    .up = BT_BLOCK + GAS_M,
    .down = GAS_M,
    .eliminate = bt_solve_eliminate,
    .substitute = bt_solve_substitute,
};

/* bt_solve.c: BT's systems along one direction: block tridiagonal, eliminated from slab to slab of cells and substituted back.
 * In every slab each rank has one cell, so that nobody waits for a pipeline to fill; between two slabs each rank sends one
 * message to the rank of its next cell, which is the same for all its cells.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bt.h"

enum {
    CARRY = BT_BLOCK + GAS_M
}; /* what the next cell needs of a line's last point: its block and its vector */

struct line {
    const struct bt_cell *cell;
    size_t first, stride; /* in points */
    int from, to, global, direction;
};

/* c and r divided by b, which is lost. Its diagonal dominates: no pivots are sought. */
static void divide(double b[BT_BLOCK], double c[BT_BLOCK], double r[GAS_M])
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
static void subtract(const double a[BT_BLOCK], const double c[BT_BLOCK], const double v[GAS_M],
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

/* The derivatives at a point. A line needs those of three points at a time. */
struct blocks {
    double flux[GAS_M][GAS_M], twice[GAS_M][GAS_M];
};

/* One row of the system: the blocks of the point before, of the point itself and of the one after. */
static void make_row(const struct bt_grid *g, const struct blocks *before, const struct blocks *at,
                     const struct blocks *after, double a[BT_BLOCK], double b[BT_BLOCK], double c[BT_BLOCK])
{
    const double t1 = g->dt / (g->mesh.step * g->mesh.step), t2 = g->dt / (2 * g->mesh.step);
    for (int i = 0; i < GAS_M; i++)
        for (int j = 0; j < GAS_M; j++) {
            a[i * GAS_M + j] = -t2 * before->flux[i][j] - t1 * before->twice[i][j];
            b[i * GAS_M + j] = 2 * t1 * at->twice[i][j] + (i == j);
            c[i * GAS_M + j] = t2 * after->flux[i][j] - t1 * after->twice[i][j];
        }
}

/* `carry`: from the cell before, where the line does not begin in this one; then for the cell after. */
static void eliminate(const struct bt_grid *g, const struct line *l, double *carry)
{
    const struct bt_cell *cell = l->cell;
    const double *c = carry, *v = carry + BT_BLOCK, *u = cell->u + l->first * GAS_M;
    const ptrdiff_t stride = (ptrdiff_t)(l->stride * GAS_M);
    struct blocks three[3];
    for (int i = l->from - 1; i <= l->from; i++)
        gas_blocks(u + i * stride, l->direction, three[(i + 3) % 3].flux, three[(i + 3) % 3].twice);
    for (int i = l->from; i < l->to; i++) {
        size_t at = l->first + (size_t)i * l->stride;
        struct blocks *after = &three[(i + 1) % 3];
        double a[BT_BLOCK], b[BT_BLOCK], *next = cell->above + at * BT_BLOCK, *r = cell->rhs + at * GAS_M;
        gas_blocks(u + (i + 1) * stride, l->direction, after->flux, after->twice);
        make_row(g, &three[(i + 2) % 3], &three[i % 3], after, a, b, next);
        if (l->global + i > 1) /* the given point before the first does not change */
            subtract(a, c, v, b, r);
        divide(b, next, r);
        c = next;
        v = r;
    }
    if (c != carry) {
        memcpy(carry, c, BT_BLOCK * sizeof(double));
        memcpy(carry + BT_BLOCK, v, GAS_M * sizeof(double));
    }
}

/* `carry`: the vector of the first point of the cell after, then of this one. */
static void substitute(const struct bt_grid *g, const struct line *l, double *carry)
{
    const struct bt_cell *cell = l->cell;
    const double *v = carry;
    for (int i = l->to - 1; i >= l->from; i--) {
        size_t at = l->first + (size_t)i * l->stride;
        const double *c = cell->above + at * BT_BLOCK;
        double *r = cell->rhs + at * GAS_M;
        for (int m = 0; m < GAS_M && l->global + i < g->mesh.n - 2; m++)
            for (int k = 0; k < GAS_M; k++)
                r[m] -= c[m * GAS_M + k] * v[k];
        v = r;
    }
    if (v != carry)
        memcpy(carry, v, GAS_M * sizeof(double));
}

typedef void (*line_step)(const struct bt_grid *g, const struct line *l, double *carry);

/* All lines of a cell; what they carry is `width` doubles each. Returns how many doubles. */
static int each_line(const struct bt_grid *g, const struct bt_cell *c, int d, line_step step, int width,
                     double *carry)
{
    const int a = (d + 1) % 3, b = (d + 2) % 3;
    int from[3], to[3], p[3], done = 0;
    bt_inner(g, c, from, to);
    for (p[b] = from[b]; p[b] < to[b]; p[b]++)
        for (p[a] = from[a]; p[a] < to[a]; p[a]++, done += width) {
            p[d] = 0;
            struct line l = {c, bt_point(c, p), bt_stride(c, d), from[d], to[d], c->first[d], d};
            step(g, &l, carry + done);
        }
    return done;
}

/* One sweep over the slabs, up or down. The message for the next cell is still under way while that cell is solved. */
static void sweep(const struct bt_grid *g, struct kernel_run *run, int d, bool up)
{
    const int width = up ? CARRY : GAS_M, n = g->mesh.n / g->side + 1, most = n * n * width, tag = 8 + up;
    const int to = up ? g->after[d] : g->before[d], from = up ? g->before[d] : g->after[d];
    MPI_Request sent = MPI_REQUEST_NULL, came = MPI_REQUEST_NULL;
    for (int s = 0; s < g->side; s++) {
        const struct bt_cell *c = &g->cells[g->by[d][up ? s : g->side - 1 - s]];
        double *carry = g->receive[s % 2];
        MPI_Wait(&came, MPI_STATUS_IGNORE);
        if (s + 1 < g->side)
            MPI_Irecv(g->receive[(s + 1) % 2], most, MPI_DOUBLE, from, tag, run->comm, &came);
        int count = each_line(g, c, d, up ? eliminate : substitute, width, carry);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
        if (s + 1 < g->side) {
            memcpy(g->send[0], carry, (size_t)count * sizeof(double));
            MPI_Isend(g->send[0], count, MPI_DOUBLE, to, tag, run->comm, &sent);
        }
    }
}

void bt_solve(const struct bt_grid *g, struct kernel_run *run, int d)
{
    sweep(g, run, d, true);
    sweep(g, run, d, false);
}

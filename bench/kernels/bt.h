/* bt.h: the parts of BT: the multi-partition of a cube, and the solver along one direction.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_BT_H
#define FP_BENCH_BT_H

#include "gas.h"
#include "kernels.h"

enum { BT_BLOCK = GAS_M * GAS_M, BT_LEAST = 3 }; /* points of a cell in a direction */

/* One cell: a box of points with two layers of the neighbours' points around. */
struct bt_cell {
    int at[3]; /* among the cells of the cube */
    int first[3], count[3];
    double *u, *force, *rhs;
    double *above; /* by point: the block that couples it to the next point, while a direction is solved */
};

/* One rank's part. The cube is cut into side^3 cells; a rank has `side` of them, one in every slab of every direction. So all
 * ranks have a cell to solve in each slab that a sweep crosses, and all cells that follow a rank's in a direction are of
 * one rank. */
struct bt_grid {
    struct gas_mesh mesh;
    double dt;
    int side;
    int before[3], after[3]; /* the ranks of the neighbours' cells */
    struct bt_cell *cells;
    int *by[3];      /* by[d][s]: which of the cells is in slab s of direction d */
    double *send[2]; /* one to each side, since both are under way at once */
    double *receive[2];
};

/* bt_grid.c */
int bt_side(int ranks); /* the square root, or 0 */
void bt_grid_open(struct bt_grid *g, struct kernel_run *run, int n, double dt);
void bt_grid_close(struct bt_grid *g);
static inline size_t bt_stride(const struct bt_cell *c, int d) /* in points */
{
    size_t x = (size_t)(c->count[0] + 2 * GAS_GHOST), y = (size_t)(c->count[1] + 2 * GAS_GHOST);
    return d == 0 ? 1 : d == 1 ? x : x * y;
}
/* Number of the point p, which counts from the first of the cell's own; -2 is a neighbour's. */
static inline size_t bt_point(const struct bt_cell *c, const int p[3])
{
    return (size_t)(p[0] + GAS_GHOST) + (size_t)(p[1] + GAS_GHOST) * bt_stride(c, 1) +
           (size_t)(p[2] + GAS_GHOST) * bt_stride(c, 2);
}
/* The points that are computed, not given, as the cell counts. */
void bt_inner(const struct bt_grid *g, const struct bt_cell *c, int from[3], int to[3]);
void bt_exchange(const struct bt_grid *g, struct kernel_run *run); /* neighbours' points of u */
void bt_residual(const struct bt_grid *g);                         /* rhs = R(u) - force */
void bt_norm(const struct bt_grid *g, struct kernel_run *run, bool error, double out[GAS_M]);

/* bt_solve.c: rhs is divided by the matrix of direction d. */
void bt_solve(const struct bt_grid *g, struct kernel_run *run, int d);

#endif

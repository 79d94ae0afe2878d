/* adi.h: what BT and SP share: the multi-partition of a cube, the time step that treats one direction after the other, and
 * the sweep over a direction's slabs. They differ in the systems along a line.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_ADI_H
#define FP_LAB_ADI_H

#include "gas.h"
#include "kernels.h"

enum { ADI_LEAST = 3 }; /* points of a cell in a direction */

/* One cell: a box of points with two layers of the neighbours' points around. */
struct adi_cell {
    int at[3]; /* among the cells of the cube */
    int first[3], count[3];
    double *u, *force, *rhs;
    double *kept; /* by point: what elimination keeps for substitution, while a direction is solved */
};

struct adi_grid;
/* One line of a cell's points. `first` and `stride` are in points; point i of the line is the (global + i)-th of the mesh. */
struct adi_line {
    const struct adi_cell *cell;
    size_t first, stride;
    int from, to, global, direction;
};

/* How the systems along a line are solved. Both steps work on the piece of a line within one cell. `carry` is what the cell
 * before has left for them, zeros at the line's beginning, and then what they leave for the next cell. */
struct adi_method {
    int kept;     /* doubles a point */
    int up, down; /* doubles that a line carries from cell to cell */
    void (*eliminate)(const struct adi_grid *g, const struct adi_line *l, double *carry);
    void (*substitute)(const struct adi_grid *g, const struct adi_line *l, double *carry);
};

extern const struct adi_method bt_method, sp_method; /* bt_solve.c, sp_solve.c */

/* One rank's part. The cube is cut into side^3 cells; a rank has `side` of them, one in every slab of every direction. So all
 * ranks have a cell to solve in each slab that a sweep crosses, and all cells that follow a rank's in a direction are of
 * one rank. */
struct adi_grid {
    struct gas_mesh mesh;
    const struct adi_method *method;
    double dt;
    int side;
    int before[3], after[3]; /* the ranks of the neighbours' cells */
    struct adi_cell *cells;
    int *by[3];      /* by[d][s]: which of the cells is in slab s of direction d */
    double *send[2]; /* one to each side, since both are under way at once */
    double *receive[2];
};

/* adi_grid.c */
int adi_side(int ranks); /* the square root, or 0 */
void adi_grid_open(struct adi_grid *g, struct kernel_run *run, const struct adi_method *method, int n,
                   double dt);
void adi_grid_close(struct adi_grid *g);
static inline size_t adi_stride(const struct adi_cell *c, int d) /* in points */
{
    size_t x = (size_t)(c->count[0] + 2 * GAS_GHOST), y = (size_t)(c->count[1] + 2 * GAS_GHOST);
    return d == 0 ? 1 : d == 1 ? x : x * y;
}
/* Number of the point p, which counts from the first of the cell's own; -2 is a neighbour's. */
static inline size_t adi_point(const struct adi_cell *c, const int p[3])
{
    return (size_t)(p[0] + GAS_GHOST) + (size_t)(p[1] + GAS_GHOST) * adi_stride(c, 1) +
           (size_t)(p[2] + GAS_GHOST) * adi_stride(c, 2);
}
/* The points that are computed, not given, as the cell counts. */
void adi_inner(const struct adi_grid *g, const struct adi_cell *c, int from[3], int to[3]);
/* The same points row by row along x: p is a row's first point, the others lie behind it.
 *   for (struct adi_rows r = adi_rows(g, c); adi_rows_left(&r); adi_rows_next(&r)) */
struct adi_rows {
    int from[3], to[3], p[3];
};
static inline struct adi_rows adi_rows(const struct adi_grid *g, const struct adi_cell *c)
{
    struct adi_rows r = {{0}, {0}, {0}};
    adi_inner(g, c, r.from, r.to);
    for (int d = 0; d < 3; d++)
        r.p[d] = r.from[d];
    return r;
}
static inline bool adi_rows_left(const struct adi_rows *r)
{
    return r->p[1] < r->to[1] && r->p[2] < r->to[2];
}
static inline void adi_rows_next(struct adi_rows *r)
{
    if (++r->p[1] == r->to[1]) {
        r->p[1] = r->from[1];
        r->p[2]++;
    }
}
static inline size_t adi_rows_length(const struct adi_rows *r) /* in points */
{
    return (size_t)(r->to[0] - r->from[0]);
}
void adi_exchange(const struct adi_grid *g, struct kernel_run *run); /* neighbours' points of u */
void adi_residual(const struct adi_grid *g);                         /* rhs = R(u) - force */
void adi_norm(const struct adi_grid *g, struct kernel_run *run, bool error, double out[GAS_M]);

/* adi_sweep.c: rhs is divided by the matrix of direction d. */
void adi_solve(const struct adi_grid *g, struct kernel_run *run, int d);

/* adi.c */
struct adi_problem {
    int n, iterations;
    double dt;
    double residual[GAS_M], error[GAS_M]; /* published norms, of the last state */
};
bool adi_takes(const struct adi_problem *p, int ranks);
/* Runs and verifies the problem. The caller knows the amount of work. */
void adi_run(struct kernel_run *run, const struct adi_method *method, const struct adi_problem *p,
             struct kernel_result *out);

#endif

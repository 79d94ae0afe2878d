/* adi.h: code that BT and SP share: the multi-partition of a cube, the time step that treats one direction
 * after the other, and the sweep over the slabs of a direction. BT and SP differ in the equation systems
 * along a line.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_ADI_H
#define FP_LAB_ADI_H

#include "gas.h"
#include "kernels.h"

enum { ADI_POINTS_MIN = 3 }; /* fewest points of a cell in a direction */

/* One cell: a box of points surrounded by two ghost layers, copies of points of the neighbouring cells. */
struct adi_cell {
    int at[3]; /* position of the cell in the cube of cells */
    int first[3], count[3];
    double *u, *force, *rhs;
    double *saved; /* doubles saved by elimination for substitution, by point, while a direction is solved */
};

struct adi_grid;
/* One line of points of a cell. `first` and `stride` are in points; point i of the line is point global +
 * i of the mesh. */
struct adi_line {
    const struct adi_cell *cell;
    size_t first, stride;
    int from, to, global, direction;
};

/* Method to solve the equation systems along a line; each call handles the part of the line in one cell.
 * `carry` holds the values of the preceding cell (zeros at the beginning of the line) and receives the
 * values for the next cell. */
struct adi_method {
    int saved;    /* doubles saved for each point */
    int up, down; /* doubles that a line carries from cell to cell, forward and backward */
    void (*eliminate)(const struct adi_grid *g, const struct adi_line *l, double *carry);
    void (*substitute)(const struct adi_grid *g, const struct adi_line *l, double *carry);
};

extern const struct adi_method bt_method, sp_method; /* defined in bt_solve.c and sp_solve.c */

/* One rank's part. The cube is cut into side^3 cells; a rank has `side` of them, one in every slab of every
 * direction. All ranks therefore have a cell to solve in each slab that a sweep crosses, and the cells that
 * follow a rank's cells in one direction all belong to the same rank. */
struct adi_grid {
    struct gas_mesh mesh;
    const struct adi_method *method;
    double dt;
    int side;
    int before[3], after[3]; /* ranks of the neighbouring cells */
    struct adi_cell *cells;
    int *cell_in_slab[3]; /* cell_in_slab[d][s]: index of the rank's cell in slab s of direction d */
    double *send[2];      /* one buffer for each side, since both messages are under way at the same time */
    double *receive[2];
};

/* Functions of adi_grid.c. */
int adi_ranks_per_side(int ranks); /* square root of the number of ranks; 0: it is no square */
void adi_grid_open(struct adi_grid *g, struct kernel_run *run, const struct adi_method *method, int n,
                   double dt);
void adi_grid_close(struct adi_grid *g);
static inline size_t adi_stride(const struct adi_cell *c, int d) /* in points */
{
    size_t x = (size_t)(c->count[0] + 2 * GAS_GHOST), y = (size_t)(c->count[1] + 2 * GAS_GHOST);
    return d == 0 ? 1 : d == 1 ? x : x * y;
}
/* Index of point p, counted from the first point of the cell; a coordinate of -2 is in the ghost layer. */
static inline size_t adi_point_index(const struct adi_cell *c, const int p[3])
{
    return (size_t)(p[0] + GAS_GHOST) + (size_t)(p[1] + GAS_GHOST) * adi_stride(c, 1) +
           (size_t)(p[2] + GAS_GHOST) * adi_stride(c, 2);
}
/* Range of the inner points of a cell, in coordinates of the cell; boundary points of the cube have fixed
 * values and are excluded. */
void adi_inner_range(const struct adi_grid *g, const struct adi_cell *c, int from[3], int to[3]);
/* Iterates over the rows of inner points along x; p is the first point of a row. Usage: for (struct
 * adi_rows r = adi_rows(g, c); adi_rows_remain(&r); adi_rows_next(&r)) */
struct adi_rows {
    int from[3], to[3], p[3];
};
static inline struct adi_rows adi_rows(const struct adi_grid *g, const struct adi_cell *c)
{
    struct adi_rows r = {{0}, {0}, {0}};
    adi_inner_range(g, c, r.from, r.to);
    for (int d = 0; d < 3; d++)
        r.p[d] = r.from[d];
    return r;
}
static inline bool adi_rows_remain(const struct adi_rows *r)
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
void adi_exchange(const struct adi_grid *g, struct kernel_run *run); /* updates the ghost layers of u */
void adi_compute_residual(const struct adi_grid *g);                 /* rhs = R(u) - force */
void adi_compute_norm(const struct adi_grid *g, struct kernel_run *run, bool error, double out[GAS_M]);

/* adi_sweep.c: multiplies rhs by the inverse of direction d's matrix. */
void adi_solve_direction(const struct adi_grid *g, struct kernel_run *run, int d);

/* Functions of adi.c. */
struct adi_problem {
    int n, iterations;
    double dt;
    double residual[GAS_M], error[GAS_M]; /* published norms of the final state */
};
bool adi_accepts_ranks(const struct adi_problem *p, int ranks);
/* Runs and verifies the problem; the caller sets the number of operations. */
void adi_run(struct kernel_run *run, const struct adi_method *method, const struct adi_problem *p,
             struct kernel_result *out);

#endif

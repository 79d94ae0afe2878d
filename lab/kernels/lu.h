/* lu.h: the grid of one rank of LU.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_LU_H
#define FP_LAB_LU_H

#include "gas.h"
#include "kernels.h"

enum { LU_POINTS_MIN = 3 }; /* fewest points of a rank in a direction; a neighbour needs two of them */

/* Part of the cube on one rank: all of z, a block of x and y, surrounded by two ghost layers in x and y. */
struct lu_grid {
    struct gas_mesh mesh;
    struct kernel_plane plane; /* x and y */
    double dt;
    double *u, *force, *rsd;
    double *faces; /* buffer of sent and received faces */
};

/* Functions of lu_grid.c. */
void lu_grid_open(struct lu_grid *g, struct kernel_run *run, int n, double dt);
void lu_grid_close(struct lu_grid *g);
/* Index of point (i, j, k): i and j are relative to this rank's first point, and -2 is in the ghost layer;
 * k counts from the beginning of the whole grid. */
static inline size_t lu_index(const struct lu_grid *g, int i, int j, int k)
{
    return (((size_t)k * (size_t)(g->plane.count[1] + 2 * GAS_GHOST) + (size_t)(j + GAS_GHOST)) *
                (size_t)(g->plane.count[0] + 2 * GAS_GHOST) +
            (size_t)(i + GAS_GHOST)) *
           GAS_M;
}
void lu_exchange(const struct lu_grid *g, struct kernel_run *run, double *field);
/* Range of the inner points, 1 to n - 2 of the whole grid, in coordinates of this rank; boundary points
 * have fixed values and are excluded. */
struct lu_box {
    int from[3], to[3];
};
struct lu_box lu_inner_range(const struct lu_grid *g);
/* out = R(field) - force: the residual of the steady equations, whose differences are of second order. */
void lu_compute_residual(const struct lu_grid *g, const double *field, const double *force, double *out);
/* Root mean square of a field over the inner points of all ranks. */
void lu_compute_norm(const struct lu_grid *g, struct kernel_run *run, const double *field, double out[GAS_M]);

#endif

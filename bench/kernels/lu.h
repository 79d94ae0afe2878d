/* lu.h: the parts of LU: the equations at a point, and the grid of one rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_LU_H
#define FP_BENCH_LU_H

#include "kernels.h"

enum { LU_M = 5, LU_GHOST = 2 };

/* lu_point.c: the equations of [NPB94 3.2] at one point. Directions are 0, 1, 2. */
void lu_exact(const double at[3], double u[LU_M]); /* the prescribed solution; coordinates from 0 to 1 */
double lu_pressure(const double u[LU_M]);
void lu_flux(const double u[LU_M], int direction, double out[LU_M]);    /* convective */
void lu_viscous(const double u[LU_M], int direction, double out[LU_M]); /* what is differentiated twice */
extern const double lu_damping[3]; /* of second differences, by direction */
/* sum += what a change v of a neighbour with state u does to a point: t2 times the flux's derivative, less t1 times that of
 * what is differentiated twice. */
void lu_couple(const double u[LU_M], const double v[LU_M], int direction, double t1, double t2,
               double sum[LU_M]);
/* Solves with the block of the point itself, in place of b. The block is lower triangular: density feels nothing else,
 * momenta feel density, energy feels all. */
void lu_solve(const double u[LU_M], double t1, double b[LU_M]);

/* One rank's part: all of z, a block of x and y, with two layers of the neighbours' points around. */
struct lu_grid {
    int n;               /* points in each direction of the whole grid */
    int ranks[2], at[2]; /* of the grid of ranks, x and y */
    int first[2], count[2];
    int before[2], after[2]; /* neighbours, or MPI_PROC_NULL */
    double step;             /* between points */
    double dt;
    double *u, *force, *rsd;
    double *faces; /* what is sent and received */
};

/* lu_grid.c */
bool lu_cut(int ranks, int n, int out[2]); /* a grid of ranks; false: they are too many */
void lu_grid_open(struct lu_grid *g, struct kernel_run *run, int n, double dt);
void lu_grid_close(struct lu_grid *g);
/* Point (i, j, k): i and j count from the first of this rank's, -2 is a neighbour's; k is that of the whole grid. */
static inline size_t lu_at(const struct lu_grid *g, int i, int j, int k)
{
    return (((size_t)k * (size_t)(g->count[1] + 2 * LU_GHOST) + (size_t)(j + LU_GHOST)) *
                (size_t)(g->count[0] + 2 * LU_GHOST) +
            (size_t)(i + LU_GHOST)) *
           LU_M;
}
void lu_exchange(const struct lu_grid *g, struct kernel_run *run, double *field);
/* The points that are computed, not given: from 1 to n - 2 of the whole grid, as this rank counts. */
struct lu_box {
    int from[3], to[3];
};
struct lu_box lu_inner(const struct lu_grid *g);
/* out = R(field) - force: the steady equations' residual, of differences of second order. */
void lu_residual(const struct lu_grid *g, const double *field, const double *force, double *out);
/* Sum of squares over the inner points of all ranks, divided by their number; the root of it. */
void lu_norm(const struct lu_grid *g, struct kernel_run *run, const double *field, double out[LU_M]);

#endif

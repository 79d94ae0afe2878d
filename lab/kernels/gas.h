/* gas.h: the equations that LU, BT and SP solve, at a point and along a line of points [NPB94 3.2]. Directions are 0, 1, 2.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_GAS_H
#define FP_LAB_GAS_H

#include <stddef.h>

enum {
    GAS_M = 5,
    GAS_GHOST = 2
}; /* values at a point; layers of neighbours' points that a line needs at each end */

#define GAS_SMOOTH 0.25 /* of fourth differences */

/* gas.c */
void gas_exact(const double at[3], double u[GAS_M]); /* the prescribed solution; coordinates from 0 to 1 */
double gas_pressure(const double u[GAS_M]);
void gas_flux(const double u[GAS_M], int direction, double out[GAS_M]);    /* convective */
void gas_viscous(const double u[GAS_M], int direction, double out[GAS_M]); /* what is differentiated twice */
extern const double gas_damping[3]; /* of second differences, by direction */
/* sum += what a change v of a neighbour with state u does to a point: t2 times the flux's derivative, less t1 times that of
 * what is differentiated twice. */
void gas_couple(const double u[GAS_M], const double v[GAS_M], int direction, double t1, double t2,
                double sum[GAS_M]);
/* The same derivatives as blocks: of the flux and of the viscous terms, which are differentiated twice. */
void gas_blocks(const double u[GAS_M], int direction, double flux[GAS_M][GAS_M], double twice[GAS_M][GAS_M]);
/* Solves with the block of the point itself, in place of b. The block is lower triangular: density feels nothing else,
 * momenta feel density, energy feels all. */
void gas_solve_point(const double u[GAS_M], double t1, double b[GAS_M]);

/* The five waves along a direction: three travel with the gas, one faster and one slower than it by the speed of sound. */
struct gas_speeds {
    double gas, sound, spread; /* spread: the largest coefficient of what is differentiated twice */
};
void gas_speeds(const double u[GAS_M], int direction, struct gas_speeds *out);
/* A change of u as waves, and back: the eigenvectors of the flux's derivative [NPB94 3.4]. */
void gas_to_waves(const double u[GAS_M], int direction, const double change[GAS_M], double waves[GAS_M]);
void gas_from_waves(const double u[GAS_M], int direction, const double waves[GAS_M], double change[GAS_M]);

/* gas_line.c. `n` points in each direction of the whole grid, `step` apart. */
struct gas_mesh {
    int n;
    double step;
};
/* The value with which point p of the mesh begins: exact on the faces of the cube, within blended from the six faces. */
void gas_begin(const struct gas_mesh *mesh, const int p[3], double u[GAS_M]);
void gas_exact_at(const struct gas_mesh *mesh, const int p[3], double u[GAS_M]);
/* out += what the differences along one line give, for its points from `from` to before `to`. Point i of the line is at
 * i * stride and is the (global + i)-th of the mesh. */
void gas_along_line(const struct gas_mesh *mesh, const double *field, double *out, size_t stride, int from,
                    int to, int global, int direction);

#endif

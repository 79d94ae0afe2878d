/* gas.h: the equations that LU, BT and SP solve, at a point and along a line of points [NPB94 3.2].
 * Directions are 0, 1, 2.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_GAS_H
#define FP_LAB_GAS_H

#include <stddef.h>

enum {
    GAS_M = 5,    /* values at a point */
    GAS_GHOST = 2 /* layers of neighbours' points that a line needs at each end */
};

#define GAS_SMOOTH 0.25 /* coefficient of the fourth differences */

/* Functions of gas.c. */
/* The prescribed solution at a point with coordinates from 0 to 1. */
void gas_exact_solution(const double at[3], double u[GAS_M]);
double gas_pressure(const double u[GAS_M]);
void gas_flux(const double u[GAS_M], int direction, double out[GAS_M]); /* convective terms */
/* Values whose second differences are the viscous terms. */
void gas_viscous_terms(const double u[GAS_M], int direction, double out[GAS_M]);
extern const double gas_damping[3]; /* coefficients of the second differences, by direction */
/* sum += effect of a change v of a neighbour with state u on a point: t2 times the derivative of the flux,
 * minus t1 times that of the viscous terms. */
void gas_add_coupling(const double u[GAS_M], const double v[GAS_M], int direction, double t1, double t2,
                      double sum[GAS_M]);
/* Derivatives of the flux and of the viscous terms at a point as 5 x 5 blocks. */
void gas_derivative_blocks(const double u[GAS_M], int direction, double flux[GAS_M][GAS_M],
                           double twice[GAS_M][GAS_M]);
/* Solves D x = b and stores x in b; D is the block that the implicit scheme has for the point itself. D is
 * lower triangular: density depends on density, momenta on density, energy on all values. */
void gas_solve_point(const double u[GAS_M], double t1, double b[GAS_M]);

/* Speeds of the five waves along a direction: three move with the gas, two move relative to it at plus and
 * minus the speed of sound. */
struct gas_speeds {
    double gas, sound, spread; /* spread: the largest coefficient of the viscous terms */
};
void gas_speeds(const double u[GAS_M], int direction, struct gas_speeds *out);
/* Converts a change of u to waves and back by the eigenvectors of the derivative of the flux [NPB94 3.4]. */
void gas_to_waves(const double u[GAS_M], int direction, const double change[GAS_M], double waves[GAS_M]);
void gas_from_waves(const double u[GAS_M], int direction, const double waves[GAS_M], double change[GAS_M]);

/* gas_line.c: a grid with `n` points in each direction at distance `step`. */
struct gas_mesh {
    int n;
    double step;
};
/* Initial value at point p: exact on the faces of the cube, inside interpolated from the six faces. */
void gas_initial_value(const struct gas_mesh *mesh, const int p[3], double u[GAS_M]);
void gas_exact_at_point(const struct gas_mesh *mesh, const int p[3], double u[GAS_M]);
/* out += differences along one line, at points `from` to `to` - 1. Point i of the line lies at i * stride and
 * is point global + i of the mesh. */
void gas_add_line_differences(const struct gas_mesh *mesh, const double *field, double *out, size_t stride,
                              int from, int to, int global, int direction);

#endif

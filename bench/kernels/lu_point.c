/* lu_point.c: the equations that LU solves, at one point [NPB94 3.2]: a compressible gas with viscosity in three dimensions,
 * and their derivatives, which the implicit solver needs. One formula serves all three directions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lu.h"

static const double k1 = 1.4, k2 = 0.4, k3 = 0.1, k4 = 1.0, k5 = 1.4;
const double lu_damping[3] = {0.75, 0.75, 1.0};

void lu_exact(const double at[3], double u[LU_M])
{
    /* Constant term, then the coefficients of each coordinate's first to fourth power. */
    static const double c[LU_M][13] = {
        {2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
        {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
        {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
        {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
        {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
    };
    for (int m = 0; m < LU_M; m++) {
        u[m] = c[m][0];
        for (int d = 0; d < 3; d++)
            u[m] +=
                at[d] * (c[m][1 + d] + at[d] * (c[m][4 + d] + at[d] * (c[m][7 + d] + at[d] * c[m][10 + d])));
    }
}

/* Half of the momentum squared over the density. */
static double kinetic(const double u[LU_M])
{
    return 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
}

double lu_pressure(const double u[LU_M])
{
    return k2 * (u[4] - kinetic(u));
}

void lu_flux(const double u[LU_M], int direction, double out[LU_M])
{
    double velocity = u[1 + direction] / u[0];
    out[0] = u[1 + direction];
    for (int m = 1; m < 4; m++)
        out[m] = u[m] * velocity;
    out[1 + direction] += lu_pressure(u);
    out[4] = (k1 * u[4] - k2 * kinetic(u)) * velocity;
}

void lu_viscous(const double u[LU_M], int direction, double out[LU_M])
{
    double squares = 2 * kinetic(u) / u[0], along = u[1 + direction] / u[0];
    out[0] = 0;
    for (int m = 1; m < 4; m++)
        out[m] = k3 * k4 * u[m] / u[0];
    out[1 + direction] *= 4.0 / 3;
    out[4] = k3 * k4 * (0.5 * (1 - k1 * k5) * squares + along * along / 6 + k1 * k5 * u[4] / u[0]);
}

void lu_couple(const double u[LU_M], const double v[LU_M], int direction, double t1, double t2,
               double sum[LU_M])
{
    const double c34 = k3 * k4, heat = k1 * k5;
    int d = 1 + direction;
    double r = 1 / u[0], velocity = u[d] * r, energy = kinetic(u), dw[LU_M], w_dw = 0;
    double change = -energy * v[0]; /* of the kinetic energy, times the density */
    for (int m = 1; m < 4; m++)
        change += u[m] * v[m];
    change *= r;
    for (int m = 1; m < LU_M; m++)
        dw[m] = (v[m] - u[m] * r * v[0]) * r; /* of velocities and of the energy of a unit of mass */
    for (int m = 1; m < 4; m++)
        w_dw += u[m] * r * dw[m];
    sum[0] += t2 * v[d] - t1 * lu_damping[direction] * v[0];
    for (int m = 1; m < 4; m++) {
        double pressure = m == d ? k2 * (v[4] - change) : 0, weight = m == d ? 4.0 / 3 : 1;
        sum[m] += t2 * (v[m] * velocity + u[m] * dw[d] + pressure) -
                  t1 * (c34 * weight * dw[m] + lu_damping[direction] * v[m]);
    }
    sum[4] +=
        t2 * ((k1 * v[4] - k2 * change) * velocity + (k1 * u[4] - k2 * energy) * dw[d]) -
        t1 * (c34 * ((1 - heat) * w_dw + velocity * dw[d] / 3 + heat * dw[4]) + lu_damping[direction] * v[4]);
}

void lu_solve(const double u[LU_M], double t1, double b[LU_M])
{
    /* Sums over the three directions: of the damping, of the momentum's and of the heat's diffusion. */
    const double damping = lu_damping[0] + lu_damping[1] + lu_damping[2], momentum = 4.0 / 3 + 2,
                 heat = 3 * k1 * k5;
    const double diffusion = 2 * t1 * k3 * k4, base = 1 + 2 * t1 * damping;
    double r = 1 / u[0], squares = 2 * kinetic(u) * r;
    b[0] /= base;
    b[4] += diffusion * (heat * u[4] * r + (momentum - heat) * squares) * r * b[0];
    for (int m = 1; m < 4; m++) {
        b[m] = (b[m] + diffusion * momentum * u[m] * r * r * b[0]) / (base + diffusion * momentum * r);
        b[4] -= diffusion * (momentum - heat) * u[m] * r * r * b[m];
    }
    b[4] /= base + diffusion * heat * r;
}

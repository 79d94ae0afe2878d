/* gas.c: the equations that LU, BT and SP solve, at one point [NPB94 3.2]: a compressible gas with viscosity
 * in three dimensions, and the derivatives that the implicit solvers need. One formula serves all three
 * directions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gas.h"

#include <math.h>
#include <string.h>

static const double k1 = 1.4, k2 = 0.4, k3 = 0.1, k4 = 1.0, k5 = 1.4;
const double gas_damping[3] = {0.75, 0.75, 1.0};

void gas_exact_solution(const double at[3], double u[GAS_M])
{
    /* Constant term, then the coefficients of the first to fourth powers of each coordinate. */
    static const double c[GAS_M][13] = {
        {2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
        {1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
        {2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
        {2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
        {5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
    };
    for (int m = 0; m < GAS_M; m++) {
        u[m] = c[m][0];
        for (int d = 0; d < 3; d++)
            u[m] +=
                at[d] * (c[m][1 + d] + at[d] * (c[m][4 + d] + at[d] * (c[m][7 + d] + at[d] * c[m][10 + d])));
    }
}

/* Half of the squared momentum divided by the density. */
static double gas_kinetic_energy(const double u[GAS_M])
{
    return 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
}

double gas_pressure(const double u[GAS_M])
{
    return k2 * (u[4] - gas_kinetic_energy(u));
}

void gas_flux(const double u[GAS_M], int direction, double out[GAS_M])
{
    double velocity = u[1 + direction] / u[0];
    out[0] = u[1 + direction];
    for (int m = 1; m < 4; m++)
        out[m] = u[m] * velocity;
    out[1 + direction] += gas_pressure(u);
    out[4] = (k1 * u[4] - k2 * gas_kinetic_energy(u)) * velocity;
}

void gas_viscous_terms(const double u[GAS_M], int direction, double out[GAS_M])
{
    double squares = 2 * gas_kinetic_energy(u) / u[0], along = u[1 + direction] / u[0];
    out[0] = 0;
    for (int m = 1; m < 4; m++)
        out[m] = k3 * k4 * u[m] / u[0];
    out[1 + direction] *= 4.0 / 3;
    out[4] = k3 * k4 * (0.5 * (1 - k1 * k5) * squares + along * along / 6 + k1 * k5 * u[4] / u[0]);
}

void gas_add_coupling(const double u[GAS_M], const double v[GAS_M], int direction, double t1, double t2,
                      double sum[GAS_M])
{
    const double c34 = k3 * k4, heat = k1 * k5;
    int d = 1 + direction;
    double r = 1 / u[0], velocity = u[d] * r, energy = gas_kinetic_energy(u), dw[GAS_M], w_dw = 0;
    double change = -energy * v[0]; /* change of the kinetic energy times the density */
    for (int m = 1; m < 4; m++)
        change += u[m] * v[m];
    change *= r;
    for (int m = 1; m < GAS_M; m++)
        /* changes of the velocities and of the energy per unit of mass */
        dw[m] = (v[m] - u[m] * r * v[0]) * r;
    for (int m = 1; m < 4; m++)
        w_dw += u[m] * r * dw[m];
    sum[0] += t2 * v[d] - t1 * gas_damping[direction] * v[0];
    for (int m = 1; m < 4; m++) {
        double pressure = m == d ? k2 * (v[4] - change) : 0, weight = m == d ? 4.0 / 3 : 1;
        sum[m] += t2 * (v[m] * velocity + u[m] * dw[d] + pressure) -
                  t1 * (c34 * weight * dw[m] + gas_damping[direction] * v[m]);
    }
    sum[4] += t2 * ((k1 * v[4] - k2 * change) * velocity + (k1 * u[4] - k2 * energy) * dw[d]) -
              t1 * (c34 * ((1 - heat) * w_dw + velocity * dw[d] / 3 + heat * dw[4]) +
                    gas_damping[direction] * v[4]);
}

/* w[1] to w[3]: velocities. */
static void gas_flux_block(const double u[GAS_M], const double w[GAS_M], int d, double out[GAS_M][GAS_M])
{
    const double energy = gas_kinetic_energy(u), still = k2 * energy / u[0],
                 enthalpy = (k1 * u[4] - k2 * energy) / u[0];
    out[0][d] = 1;
    for (int m = 1; m < 4; m++) {
        out[m][m] += w[d];
        out[m][d] += w[m];
        out[m][0] -= w[m] * w[d];
        out[d][m] -= k2 * w[m];
        out[4][m] = -k2 * w[m] * w[d];
    }
    out[d][0] += still;
    out[d][4] = k2;
    out[4][0] = (still - enthalpy) * w[d];
    out[4][d] += enthalpy;
    out[4][4] = k1 * w[d];
}

void gas_derivative_blocks(const double u[GAS_M], int direction, double flux[GAS_M][GAS_M],
                           double twice[GAS_M][GAS_M])
{
    const double r = 1 / u[0], diffusion = k3 * k4 * r, heat = k1 * k5;
    const double w[GAS_M] = {0, u[1] * r, u[2] * r, u[3] * r, 0};
    const int d = 1 + direction;
    memset(flux, 0, sizeof(double[GAS_M][GAS_M]));
    memset(twice, 0, sizeof(double[GAS_M][GAS_M]));
    gas_flux_block(u, w, d, flux);
    for (int m = 1; m < 4; m++) {
        double weight = diffusion * (m == d ? 4.0 / 3 : 1), share = 1 - heat + (m == d ? 1.0 / 3 : 0);
        twice[m][m] = weight;
        twice[m][0] = -weight * w[m];
        twice[4][m] = diffusion * share * w[m];
        twice[4][0] -= diffusion * share * w[m] * w[m];
    }
    twice[4][0] -= diffusion * heat * u[4] * r;
    twice[4][4] = diffusion * heat;
    for (int m = 0; m < GAS_M; m++)
        twice[m][m] += gas_damping[direction];
}

void gas_solve_point(const double u[GAS_M], double t1, double b[GAS_M])
{
    /* Sums over the three directions of the diffusion coefficients: of the damping, of momentum, of heat. */
    const double damping = gas_damping[0] + gas_damping[1] + gas_damping[2], momentum = 4.0 / 3 + 2,
                 heat = 3 * k1 * k5;
    const double diffusion = 2 * t1 * k3 * k4, base = 1 + 2 * t1 * damping;
    double r = 1 / u[0], squares = 2 * gas_kinetic_energy(u) * r;
    b[0] /= base;
    b[4] += diffusion * (heat * u[4] * r + (momentum - heat) * squares) * r * b[0];
    for (int m = 1; m < 4; m++) {
        b[m] = (b[m] + diffusion * momentum * u[m] * r * r * b[0]) / (base + diffusion * momentum * r);
        b[4] -= diffusion * (momentum - heat) * u[m] * r * r * b[m];
    }
    b[4] /= base + diffusion * heat * r;
}

static double gas_sound_speed(const double u[GAS_M])
{
    return sqrt(k1 * gas_pressure(u) / u[0]);
}

void gas_speeds(const double u[GAS_M], int direction, struct gas_speeds *out)
{
    out->gas = u[1 + direction] / u[0];
    out->sound = gas_sound_speed(u);
    /* diffusion of heat has the largest coefficient of the viscous terms */
    out->spread = gas_damping[direction] + k1 * k5 * k3 * k4 / u[0];
}

/* Wave 0 changes the density, waves 1 and 2 shear the gas across the direction, waves 3 and 4 are sound. */
void gas_to_waves(const double u[GAS_M], int direction, const double change[GAS_M], double waves[GAS_M])
{
    const int d = direction, e = (d + 1) % 3, f = (d + 2) % 3;
    const double r = 1 / u[0], c = gas_sound_speed(u), w[3] = {u[1] * r, u[2] * r, u[3] * r},
                 half = sqrt(0.5) * r;
    double pressure = gas_kinetic_energy(u) * r * change[0] + change[4];
    for (int m = 0; m < 3; m++)
        pressure -= w[m] * change[1 + m];
    pressure *= k2 / (c * c);
    const double along = half * (change[1 + d] - w[d] * change[0]);
    waves[d] = change[0] - pressure;
    waves[e] = r * (change[1 + f] - w[f] * change[0]);
    waves[f] = r * (w[e] * change[0] - change[1 + e]);
    waves[3] = half * c * pressure + along;
    waves[4] = half * c * pressure - along;
}

void gas_from_waves(const double u[GAS_M], int direction, const double waves[GAS_M], double change[GAS_M])
{
    const int d = direction, e = (d + 1) % 3, f = (d + 2) % 3;
    const double r = 1 / u[0], c = gas_sound_speed(u), w[3] = {u[1] * r, u[2] * r, u[3] * r};
    const double scale = sqrt(0.5) * u[0] / c, sum = scale * (waves[3] + waves[4]),
                 along = scale * (waves[3] - waves[4]) * c;
    const double shear[2] = {u[0] * waves[e], -u[0] * waves[f]};
    change[0] = waves[d] + sum;
    change[1 + d] = w[d] * change[0] + along;
    change[1 + e] = w[e] * change[0] + shear[1];
    change[1 + f] = w[f] * change[0] + shear[0];
    change[4] = gas_kinetic_energy(u) * r * change[0] + w[f] * shear[0] + w[e] * shear[1] + sum * c * c / k2 +
                w[d] * along;
}

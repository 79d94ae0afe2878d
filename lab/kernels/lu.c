/* lu.c: LU: the equations of a gas by symmetric successive over-relaxation. Its sweeps are a pipeline: for
 * every plane a rank needs the last lines of two neighbours, so it sends many small messages, first all in
 * one direction and then all in the other. [Liu04 5.5] finds this traffic the hardest for flow control.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "lu.h"

static const struct problem {
    int n, iterations;
    double dt;
    double residual[GAS_M], error[GAS_M], surface;
} problems[CLASS_COUNT] = {
    [CLASS_S] = {12,
                 50,
                 0.5,
                 {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03,
                  1.5029584435994323e-03, 3.4264073155896461e-02},
                 {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
                  5.8474222595157350e-05, 1.3103347914111294e-03},
                 7.8418928865937083e+00},
    [CLASS_W] = {33,
                 300,
                 0.0015,
                 {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01,
                  0.2826799444189e+02},
                 {0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01,
                  0.1084277417792e+01},
                 0.1161399311023e+02},
    [CLASS_A] = {64,
                 250,
                 2.0,
                 {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02,
                  1.7845301160418537e+02, 1.8384760349464247e+03},
                 {2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00,
                  6.7139225687777051e+00, 7.0715315688392578e+01},
                 2.6030925604886277e+01},
    [CLASS_B] = {102,
                 250,
                 2.0,
                 {3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02,
                  7.7812774739425265e+02, 7.3087969592545314e+03},
                 {1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01,
                  2.5905394567832939e+01, 2.6054907504857413e+02},
                 4.7887162703308227e+01},
};

static const double omega = 1.2;

/* ---- Initial values ---- */

/* Sets the exact solution everywhere or only on the faces, including the ghost layers, so that no message
 * is needed. */
static void lu_fill(const struct lu_grid *g, double *field, bool exact)
{
    for (int k = 0; k < g->mesh.n; k++)
        for (int j = -GAS_GHOST; j < g->plane.count[1] + GAS_GHOST; j++)
            for (int i = -GAS_GHOST; i < g->plane.count[0] + GAS_GHOST; i++) {
                int p[3] = {g->plane.first[0] + i, g->plane.first[1] + j, k};
                if (p[0] < 0 || p[1] < 0 || p[0] >= g->mesh.n || p[1] >= g->mesh.n)
                    continue;
                (exact ? gas_exact_at_point : gas_initial_value)(&g->mesh, p, field + lu_index(g, i, j, k));
            }
}

/* ---- The sweeps ---- */

/* Relaxes one point with its preceding (side = -1) or following (side = 1) neighbours. */
static void lu_relax_point(const struct lu_grid *g, int i, int j, int k, int side)
{
    const double t1 = g->dt / (g->mesh.step * g->mesh.step), t2 = g->dt / (2 * g->mesh.step);
    const size_t neighbours[3] = {lu_index(g, i + side, j, k), lu_index(g, i, j + side, k),
                                  lu_index(g, i, j, k + side)};
    const double *u = g->u + lu_index(g, i, j, k);
    double *v = g->rsd + lu_index(g, i, j, k), sum[GAS_M] = {0};
    for (int d = 0; d < 3; d++)
        gas_add_coupling(g->u + neighbours[d], g->rsd + neighbours[d], d, t1, side * t2, sum);
    for (int m = 0; m < GAS_M; m++)
        sum[m] = side < 0 ? v[m] - omega * sum[m] : omega * sum[m];
    gas_solve_point(u, t1, sum);
    for (int m = 0; m < GAS_M; m++)
        v[m] = side < 0 ? sum[m] : v[m] - sum[m];
}

/* Copies the line of points of plane k with coordinate `at` in direction d to or from a buffer. */
static void lu_copy_line(const struct lu_grid *g, double *buffer, int d, int at, int k, bool out)
{
    for (int a = 0; a < g->plane.count[1 - d]; a++, buffer += GAS_M) {
        double *point = g->rsd + (d == 0 ? lu_index(g, at, a, k) : lu_index(g, a, at, k));
        memcpy(out ? buffer : point, out ? point : buffer, GAS_M * sizeof(double));
    }
}

static void lu_sweep(const struct lu_grid *g, struct kernel_run *run, int side)
{
    const struct lu_box inner = lu_inner_range(g);
    const int *from = inner.from, *to = inner.to;
    for (int step = 0; step < to[2] - from[2]; step++) {
        int k = side < 0 ? from[2] + step : to[2] - 1 - step;
        for (int d = 0; d < 2; d++) {
            int peer = side < 0 ? g->plane.before[d] : g->plane.after[d],
                count = g->plane.count[1 - d] * GAS_M;
            MPI_Recv(g->faces, count, MPI_DOUBLE, peer, d, run->comm, MPI_STATUS_IGNORE);
            if (peer != MPI_PROC_NULL)
                lu_copy_line(g, g->faces, d, side < 0 ? -1 : g->plane.count[d], k, false);
        }
        for (int b = 0; b < to[1] - from[1]; b++)
            for (int a = 0; a < to[0] - from[0]; a++)
                lu_relax_point(g, side < 0 ? from[0] + a : to[0] - 1 - a,
                               side < 0 ? from[1] + b : to[1] - 1 - b, k, side);
        for (int d = 0; d < 2; d++) {
            int peer = side < 0 ? g->plane.after[d] : g->plane.before[d],
                count = g->plane.count[1 - d] * GAS_M;
            lu_copy_line(g, g->faces, d, side < 0 ? g->plane.count[d] - 1 : 0, k, true);
            MPI_Send(g->faces, count, MPI_DOUBLE, peer, d, run->comm);
        }
    }
}

/* field = factor * field on the inner points, or u += factor * rsd. */
static void lu_scale(const struct lu_grid *g, double factor, bool into_u)
{
    const struct lu_box b = lu_inner_range(g);
    for (int k = b.from[2]; k < b.to[2]; k++)
        for (int j = b.from[1]; j < b.to[1]; j++)
            for (int i = b.from[0]; i < b.to[0]; i++)
                for (size_t m = lu_index(g, i, j, k), end = m + GAS_M; m < end; m++) {
                    if (into_u)
                        g->u[m] += factor * g->rsd[m];
                    else
                        g->rsd[m] *= factor;
                }
}

static void lu_relax(const struct lu_grid *g, struct kernel_run *run, int iterations)
{
    for (int it = 0; it < iterations; it++) {
        lu_scale(g, g->dt, false);
        lu_sweep(g, run, -1);
        lu_sweep(g, run, 1);
        lu_scale(g, 1 / (omega * (2 - omega)), true);
        lu_exchange(g, run, g->u);
        lu_compute_residual(g, g->u, g->force, g->rsd);
        kernel_progress(run, it + 1, iterations);
    }
}

/* ---- Verification ---- */

/* Pressure of point p if this rank owns it, else 0; every point of the surface is owned by one rank. */
static double lu_pressure_at_point(const struct lu_grid *g, const int p[3])
{
    int i = p[0] - g->plane.first[0], j = p[1] - g->plane.first[1];
    if (i < 0 || j < 0 || i >= g->plane.count[0] || j >= g->plane.count[1])
        return 0;
    return gas_pressure(g->u + lu_index(g, i, j, p[2]));
}

/* Integral of the pressure over the six faces of a box by the trapezoidal rule: inner points count four
 * times. */
static double lu_surface_integral(const struct lu_grid *g, struct kernel_run *run)
{
    const int low[3] = {1, 1, 2}, high[3] = {g->mesh.n - 2, g->mesh.n - 3, g->mesh.n - 2};
    double sum = 0, all;
    for (int d = 0; d < 3; d++) {
        int a = (d + 1) % 3, b = (d + 2) % 3, p[3];
        for (int s = 0; s < 2; s++)
            for (p[a] = low[a]; p[a] <= high[a]; p[a]++)
                for (p[b] = low[b]; p[b] <= high[b]; p[b]++) {
                    p[d] = s ? high[d] : low[d];
                    int weight =
                        (p[a] > low[a] && p[a] < high[a] ? 2 : 1) * (p[b] > low[b] && p[b] < high[b] ? 2 : 1);
                    sum += weight * lu_pressure_at_point(g, p);
                }
    }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, run->comm);
    return 0.25 * g->mesh.step * g->mesh.step * all;
}

static void lu_verify(const struct lu_grid *g, struct kernel_run *run, const struct problem *p,
                      struct kernel_result *out)
{
    const double bound = 1e-8;
    double residual[GAS_M], error[GAS_M];
    lu_compute_norm(g, run, g->rsd, residual);
    lu_fill(g, g->force, true); /* `force` is no longer used and serves as scratch memory */
    for (size_t i = 0, end = lu_index(g, -GAS_GHOST, -GAS_GHOST, g->mesh.n); i < end; i++)
        g->force[i] -= g->u[i];
    lu_compute_norm(g, run, g->force, error);
    for (int m = 0; m < GAS_M; m++) {
        kernel_verify_value(out, residual[m], p->residual[m], bound);
        kernel_verify_value(out, error[m], p->error[m], bound);
    }
    kernel_verify_value(out, lu_surface_integral(g, run), p->surface, bound);
}

static bool lu_accepts_ranks(int ranks, enum kernel_class class)
{
    int cut[2];
    return kernel_divide_plane(ranks, problems[class].n, LU_POINTS_MIN, cut);
}

static void lu_run(struct kernel_run *run, struct kernel_result *out)
{
    const struct problem *p = &problems[run->class];
    struct lu_grid g;
    double n = p->n;
    lu_grid_open(&g, run, p->n, p->dt);
    lu_fill(&g, g.u, true);
    lu_compute_residual(&g, g.u, NULL, g.force);
    lu_fill(&g, g.u, false);
    lu_compute_residual(&g, g.u, g.force, g.rsd);
    double started = kernel_start(run);
    lu_relax(&g, run, p->iterations);
    kernel_stop(run, started, out);
    /* Number of operations as given in the specification. */
    out->amount = p->iterations * (1984.77 * n * n * n - 10923.3 * n * n + 27770.9 * n - 144010.0) * 1e-6;
    lu_verify(&g, run, p, out);
    lu_grid_close(&g);
}

const struct kernel kernel_lu = {
    .name = "lu",
    .doc = "gas flow equations solved by over-relaxation; a pipeline of small messages",
    .unit = "Mflop/s",
    .ranks = "any number that gives each rank at least 3 grid points in x and y",
    .accepts_ranks = lu_accepts_ranks,
    .run = lu_run,
};

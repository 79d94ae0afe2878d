/* adi.c: the problem of BT and SP: initial state, one time step, verification. The equations of a gas are
 * solved implicitly, direction by direction, until a steady state whose norms are published.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "adi.h"

/* Sets u at all points including the ghost layers, so that no message is needed. */
static void adi_fill(const struct adi_grid *g, bool exact)
{
    for (int i = 0; i < g->side; i++) {
        const struct adi_cell *c = &g->cells[i];
        int p[3];
        for (p[2] = -GAS_GHOST; p[2] < c->count[2] + GAS_GHOST; p[2]++)
            for (p[1] = -GAS_GHOST; p[1] < c->count[1] + GAS_GHOST; p[1]++)
                for (p[0] = -GAS_GHOST; p[0] < c->count[0] + GAS_GHOST; p[0]++) {
                    const int at[3] = {c->first[0] + p[0], c->first[1] + p[1], c->first[2] + p[2]};
                    bool inside = true;
                    for (int d = 0; d < 3; d++)
                        inside = inside && at[d] >= 0 && at[d] < g->mesh.n;
                    if (inside)
                        (exact ? gas_exact_at_point
                               : gas_initial_value)(&g->mesh, at, c->u + adi_point_index(c, p) * GAS_M);
                }
    }
}

/* Sets the force that makes the exact solution steady. */
static void adi_set_force(const struct adi_grid *g)
{
    adi_fill(g, true);
    adi_compute_residual(g); /* the force is still 0 */
    for (int i = 0; i < g->side; i++) {
        struct adi_cell *c = &g->cells[i];
        double *force = c->force;
        c->force = c->rhs;
        c->rhs = force;
    }
}

/* rhs *= factor, or u += rhs, at the inner points. */
static void adi_update_points(const struct adi_grid *g, double factor, bool into_u)
{
    for (int i = 0; i < g->side; i++) {
        const struct adi_cell *c = &g->cells[i];
        for (struct adi_rows r = adi_rows(g, c); adi_rows_remain(&r); adi_rows_next(&r)) {
            const size_t first = adi_point_index(c, r.p) * GAS_M, end = first + adi_rows_length(&r) * GAS_M;
            for (size_t m = first; m < end; m++) {
                if (into_u)
                    c->u[m] += c->rhs[m];
                else
                    c->rhs[m] *= factor;
            }
        }
    }
}

static void adi_step(const struct adi_grid *g, struct kernel_run *run)
{
    adi_exchange(g, run);
    adi_compute_residual(g);
    adi_update_points(g, g->dt, false);
    for (int d = 0; d < 3; d++)
        adi_solve_direction(g, run, d);
    adi_update_points(g, 1, true);
}

static void adi_verify(const struct adi_grid *g, struct kernel_run *run, const struct adi_problem *p,
                       struct kernel_result *out)
{
    const double bound = 1e-8;
    double residual[GAS_M], error[GAS_M];
    adi_exchange(g, run);
    adi_compute_residual(g);
    adi_compute_norm(g, run, false, residual);
    adi_compute_norm(g, run, true, error);
    for (int m = 0; m < GAS_M; m++) {
        kernel_verify_value(out, residual[m], p->residual[m], bound);
        kernel_verify_value(out, error[m], p->error[m], bound);
    }
}

bool adi_accepts_ranks(const struct adi_problem *p, int ranks)
{
    int side = adi_ranks_per_side(ranks);
    return side > 0 && p->n / side >= ADI_POINTS_MIN;
}

void adi_run(struct kernel_run *run, const struct adi_method *method, const struct adi_problem *p,
             struct kernel_result *out)
{
    struct adi_grid g;
    adi_grid_open(&g, run, method, p->n, p->dt);
    adi_set_force(&g);
    adi_fill(&g, false);
    double started = kernel_start(run);
    for (int it = 0; it < p->iterations; it++) {
        adi_step(&g, run);
        kernel_progress(run, it + 1, p->iterations);
    }
    kernel_stop(run, started, out);
    adi_verify(&g, run, p, out);
    adi_grid_close(&g);
}

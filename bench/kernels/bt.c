/* bt.c: BT: the equations of a gas, solved implicitly direction by direction. Its multi-partition gives each rank one cell in
 * every slab: messages are few and large, and all ranks send at once, where LU's pipeline sends many small ones. SP
 * exchanges in the same way. [Liu04 9.2] measures both.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bt.h"

static const struct problem {
    int n, iterations;
    double dt;
    double residual[GAS_M], error[GAS_M];
} problems[CLASS_COUNT] = {
    [CLASS_S] = {12,
                 60,
                 0.010,
                 {1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
                  2.6436421275166801e-02, 1.9211784131744430e-01},
                 {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
                  7.3821238632439731e-05, 8.9269630987491446e-04}},
    [CLASS_W] = {24,
                 200,
                 0.0008,
                 {0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02, 0.2469174937669e+02,
                  0.2638427874317e+03},
                 {0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01, 0.9235878729944e+00,
                  0.1018045837718e+02}},
    [CLASS_A] = {64,
                 200,
                 0.0008,
                 {1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01,
                  2.3665622544678910e+01, 2.5278963211748344e+02},
                 {4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01,
                  8.8302063039765474e-01, 9.7379901770829278e+00}},
    [CLASS_B] = {102,
                 200,
                 0.0003,
                 {1.4233597229287254e+03, 9.9330522590150238e+01, 3.5646025644535285e+02,
                  3.2485447959084092e+02, 3.2707541254659363e+03},
                 {5.2969847140936856e+01, 4.4632896115670668e+00, 1.3122573342210174e+01,
                  1.2006925323559144e+01, 1.2459576151035986e+02}},
};

/* Neighbours' points too, so that nothing must be sent. */
static void fill(const struct bt_grid *g, bool exact)
{
    for (int i = 0; i < g->side; i++) {
        const struct bt_cell *c = &g->cells[i];
        int p[3];
        for (p[2] = -GAS_GHOST; p[2] < c->count[2] + GAS_GHOST; p[2]++)
            for (p[1] = -GAS_GHOST; p[1] < c->count[1] + GAS_GHOST; p[1]++)
                for (p[0] = -GAS_GHOST; p[0] < c->count[0] + GAS_GHOST; p[0]++) {
                    const int at[3] = {c->first[0] + p[0], c->first[1] + p[1], c->first[2] + p[2]};
                    bool inside = true;
                    for (int d = 0; d < 3; d++)
                        inside = inside && at[d] >= 0 && at[d] < g->mesh.n;
                    if (inside)
                        (exact ? gas_exact_at : gas_begin)(&g->mesh, at, c->u + bt_point(c, p) * GAS_M);
                }
    }
}

/* The force that makes the exact solution steady. */
static void set_force(const struct bt_grid *g)
{
    fill(g, true);
    bt_residual(g); /* the force is still 0 */
    for (int i = 0; i < g->side; i++) {
        struct bt_cell *c = &g->cells[i];
        double *force = c->force;
        c->force = c->rhs;
        c->rhs = force;
    }
}

/* rhs *= factor, or u += rhs, on the inner points. */
static void each_point(const struct bt_grid *g, double factor, bool into_u)
{
    for (int i = 0; i < g->side; i++) {
        const struct bt_cell *c = &g->cells[i];
        int from[3], to[3], p[3];
        bt_inner(g, c, from, to);
        for (p[2] = from[2]; p[2] < to[2]; p[2]++)
            for (p[1] = from[1]; p[1] < to[1]; p[1]++)
                for (p[0] = from[0]; p[0] < to[0]; p[0]++)
                    for (size_t m = bt_point(c, p) * GAS_M, end = m + GAS_M; m < end; m++) {
                        if (into_u)
                            c->u[m] += c->rhs[m];
                        else
                            c->rhs[m] *= factor;
                    }
    }
}

static void step(const struct bt_grid *g, struct kernel_run *run)
{
    bt_exchange(g, run);
    bt_residual(g);
    each_point(g, g->dt, false);
    for (int d = 0; d < 3; d++)
        bt_solve(g, run, d);
    each_point(g, 1, true);
}

static void verify(const struct bt_grid *g, struct kernel_run *run, const struct problem *p,
                   struct kernel_result *out)
{
    const double bound = 1e-8;
    double residual[GAS_M], error[GAS_M];
    bt_exchange(g, run);
    bt_residual(g);
    bt_norm(g, run, false, residual);
    bt_norm(g, run, true, error);
    for (int m = 0; m < GAS_M; m++) {
        kernel_compare(out, residual[m], p->residual[m], bound);
        kernel_compare(out, error[m], p->error[m], bound);
    }
}

static bool takes(int ranks, enum kernel_class class)
{
    int side = bt_side(ranks);
    return side > 0 && problems[class].n / side >= BT_LEAST;
}

static void run_bt(struct kernel_run *run, struct kernel_result *out)
{
    const struct problem *p = &problems[run->class];
    struct bt_grid g;
    double n = p->n;
    bt_grid_open(&g, run, p->n, p->dt);
    set_force(&g);
    fill(&g, false);
    double started = kernel_start(run);
    for (int it = 0; it < p->iterations; it++) {
        step(&g, run);
        kernel_progress(run, it + 1, p->iterations);
    }
    kernel_stop(run, started, out);
    /* The specification's count of operations. */
    out->amount = p->iterations * (3478.8 * n * n * n - 17655.7 * n * n + 28023.7 * n) * 1e-6;
    verify(&g, run, p, out);
    bt_grid_close(&g);
}

const struct kernel kernel_bt = {
    .name = "bt",
    .doc =
        "gas flow equations solved direction by direction; large messages between cells of a multi-partition",
    .unit = "Mflop/s",
    .ranks = "square numbers that give each rank's cells at least 3 grid points in each direction",
    .takes = takes,
    .run = run_bt,
};

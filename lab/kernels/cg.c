/* cg.c: conjugate gradient: the smallest eigenvalue of a sparse matrix by inverse iteration, 25 steps of CG
 * for each solution [NPB94]. The matrix lies on a grid of ranks. Each product is summed along a row of the
 * grid and then exchanged with the partner at the transposed place, so the kernel sends many medium-sized
 * messages to a few peers and waits for each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cg_matrix.h"
#include "kernels.h"

enum { INNER_STEPS = 25, TAG_SUM = 1, TAG_CROSS = 2 };
static const double RESIDUAL_MAX = 1e-9;

static const struct {
    int n, nonzero, iterations;
    double shift, zeta;
} classes[CLASS_COUNT] = {
    [CLASS_S] = {1400, 7, 15, 10, 8.5971775078648},
    [CLASS_W] = {7000, 8, 15, 12, 10.362595087124},
    [CLASS_A] = {14000, 11, 15, 20, 17.130235054029},
    [CLASS_B] = {75000, 13, 75, 60, 22.712745482631},
};

/* A rank's place in a grid of `high` rows of `wide` ranks each; wide is high or 2 high. A vector is cut into
 * `wide` parts; all ranks of a grid column have the same part. */
struct grid {
    struct kernel_run *run;
    int high, wide, row, column;
    int partner; /* has the part of the product that this rank needs, and needs this rank's part */
    struct cg_shape shape;
    struct cg_matrix matrix;
    int part;        /* number of vector entries on this rank */
    int cut;         /* first row of this rank's product that the partner needs */
    double *product; /* rows of this rank's block */
    double *other;   /* rows received from another rank of the same grid row */
};

static int cg_part_begin(int n, int i, int of)
{
    return (int)((long)n * i / of);
}

static void cg_grid_make(struct grid *g, struct kernel_run *run)
{
    int n = classes[run->class].n;
    *g = (struct grid){.run = run, .high = 1, .wide = 1};
    while (g->high * g->wide < run->size) {
        if (g->wide == g->high)
            g->wide *= 2;
        else
            g->high *= 2;
    }
    g->row = run->rank / g->wide;
    g->column = run->rank % g->wide;
    int twice = g->wide / g->high;
    int column_there = twice * g->row + g->column % twice;
    g->partner = g->column / twice * g->wide + column_there;
    g->shape = (struct cg_shape){
        .n = n,
        .nonzero = classes[run->class].nonzero,
        .shift = classes[run->class].shift,
        .row0 = cg_part_begin(n, g->row, g->high),
        .row1 = cg_part_begin(n, g->row + 1, g->high),
        .col0 = cg_part_begin(n, g->column, g->wide),
        .col1 = cg_part_begin(n, g->column + 1, g->wide),
    };
    g->part = g->shape.col1 - g->shape.col0;
    g->cut = cg_part_begin(n, column_there, g->wide) - g->shape.row0;
    cg_matrix_make(run, &g->shape, &g->matrix);
    g->product = kernel_alloc(run, (size_t)g->matrix.rows * sizeof(double));
    /* One entry more than rows: cg_sum_along_row also sums vectors of 2 values, even if the rank has one
     * row. */
    g->other = kernel_alloc(run, ((size_t)g->matrix.rows + 1) * sizeof(double));
}

static void cg_grid_free(struct grid *g)
{
    cg_matrix_free(&g->matrix);
    free(g->product);
    free(g->other);
}

/* Uses the same MPI calls as the original: MPI_Irecv, MPI_Send, MPI_Wait. */
static void cg_exchange(struct grid *g, int peer, int tag, const double *out, int out_count, double *in,
                        int in_count)
{
    MPI_Request request;
    MPI_Irecv(in, in_count, MPI_DOUBLE, peer, tag, g->run->comm, &request);
    MPI_Send(out, out_count, MPI_DOUBLE, peer, tag, g->run->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Sums along the grid row by recursive doubling, beginning with distance `first`. Both partners of a step add
 * the same two numbers, so every rank of the row has bitwise identical results. */
static void cg_sum_along_row(struct grid *g, int first, double *v, int n)
{
    for (int step = first; step < g->wide; step *= 2) {
        int peer = g->row * g->wide + (g->column ^ step);
        cg_exchange(g, peer, TAG_SUM, v, n, g->other, n);
        for (int i = 0; i < n; i++)
            v[i] += g->other[i];
    }
}

static double cg_local_dot(const struct grid *g, const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < g->part; i++)
        sum += a[i] * b[i];
    return sum;
}

static double cg_dot(struct grid *g, const double *a, const double *b)
{
    double sum = cg_local_dot(g, a, b);
    cg_sum_along_row(g, 1, &sum, 1);
    return sum;
}

/* Sums `count` rows of the product, beginning with row `cut`, along the grid row: the rows that this rank's
 * partner needs. In a grid that is twice as wide as high these are half of the rows; the first step therefore
 * sends each partner only its half. */
static void cg_sum_product(struct grid *g, int count)
{
    int first = 1;
    if (g->wide > g->high) {
        const int peer = g->row * g->wide + (g->column ^ 1), rest = g->cut == 0 ? count : 0;
        cg_exchange(g, peer, TAG_SUM, g->product + rest, g->matrix.rows - count, g->other, count);
        for (int i = 0; i < count; i++)
            g->product[g->cut + i] += g->other[i];
        first = 2;
    }
    cg_sum_along_row(g, first, g->product + g->cut, count);
}

/* out = A x; both vectors are distributed over the columns of the grid. */
static void cg_multiply(struct grid *g, const double *x, double *out)
{
    const struct cg_matrix *m = &g->matrix;
    for (int r = 0; r < m->rows; r++) {
        double sum = 0;
        for (int64_t i = m->begin[r]; i < m->begin[r + 1]; i++)
            sum += m->value[i] * x[m->column[i]];
        g->product[r] = sum;
    }
    const int there = cg_part_begin(g->shape.n, g->partner % g->wide + 1, g->wide) - g->shape.row0 - g->cut;
    cg_sum_product(g, there);
    cg_exchange(g, g->partner, TAG_CROSS, g->product + g->cut, there, out, g->part);
}

struct vectors {
    double *x, *z, *r, *p, *q;
};

/* Solves A z = x approximately; returns the norm of x - A z. */
static double cg_solve(struct grid *g, struct vectors *v)
{
    memset(v->z, 0, (size_t)g->part * sizeof(*v->z));
    memcpy(v->r, v->x, (size_t)g->part * sizeof(*v->r));
    memcpy(v->p, v->x, (size_t)g->part * sizeof(*v->p));
    double rho = cg_dot(g, v->r, v->r);
    for (int step = 0; step < INNER_STEPS; step++) {
        cg_multiply(g, v->p, v->q);
        double alpha = rho / cg_dot(g, v->p, v->q);
        for (int i = 0; i < g->part; i++) {
            v->z[i] += alpha * v->p[i];
            v->r[i] -= alpha * v->q[i];
        }
        double before = rho;
        rho = cg_dot(g, v->r, v->r);
        for (int i = 0; i < g->part; i++)
            v->p[i] = v->r[i] + rho / before * v->p[i];
    }
    cg_multiply(g, v->z, v->q);
    for (int i = 0; i < g->part; i++)
        v->q[i] = v->x[i] - v->q[i];
    return sqrt(cg_dot(g, v->q, v->q));
}

/* One step of the inverse iteration; returns the estimate of the eigenvalue. */
static double cg_step(struct grid *g, struct vectors *v, double *residual)
{
    *residual = cg_solve(g, v);
    double sums[2] = {cg_local_dot(g, v->x, v->z), cg_local_dot(g, v->z, v->z)};
    cg_sum_along_row(g, 1, sums, 2);
    const double zeta = g->shape.shift + 1 / sums[0], scale = 1 / sqrt(sums[1]);
    for (int i = 0; i < g->part; i++)
        v->x[i] = scale * v->z[i];
    return zeta;
}

static void cg_fill_with_ones(double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = 1;
}

static void cg_run(struct kernel_run *run, struct kernel_result *out)
{
    struct grid g;
    double zeta = 0, residual, entries, all_entries = 0;
    cg_grid_make(&g, run);
    size_t bytes = (size_t)g.part * sizeof(double);
    struct vectors v = {kernel_alloc(run, bytes), kernel_alloc(run, bytes), kernel_alloc(run, bytes),
                        kernel_alloc(run, bytes), kernel_alloc(run, bytes)};
    cg_fill_with_ones(v.x, g.part);
    cg_step(&g, &v, &residual); /* one untimed iteration, as the specification requires */
    cg_fill_with_ones(v.x, g.part);
    double started = kernel_start(run);
    for (int i = 1; i <= classes[run->class].iterations; i++) {
        zeta = cg_step(&g, &v, &residual);
        kernel_progress(run, i, classes[run->class].iterations);
    }
    kernel_stop(run, started, out);
    kernel_verify_value(out, zeta, classes[run->class].zeta, 1e-10);
    out->verified = out->verified && residual < RESIDUAL_MAX;
    entries = (double)g.matrix.begin[g.matrix.rows];
    MPI_Allreduce(&entries, &all_entries, 1, MPI_DOUBLE, MPI_SUM, run->comm);
    /* A product takes 2 operations for each matrix entry; two dot products and three vector updates take 10
     * for each row. */
    out->amount = classes[run->class].iterations * INNER_STEPS * (2 * all_entries + 10.0 * g.shape.n) * 1e-6;
    free(v.x);
    free(v.z);
    free(v.r);
    free(v.p);
    free(v.q);
    cg_grid_free(&g);
}

static bool cg_accepts_ranks(int ranks, enum kernel_class class)
{
    return kernel_is_power_of_two(ranks) && ranks <= classes[class].n;
}

const struct kernel kernel_cg = {
    .name = "cg",
    .doc = "conjugate gradient; many small sums along the rows of a grid of ranks",
    .unit = "Mflop/s",
    .ranks = "powers of two",
    .accepts_ranks = cg_accepts_ranks,
    .run = cg_run,
};

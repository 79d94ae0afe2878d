/* mg.c: multigrid: four or twenty V-cycles for the Poisson equation on a periodic cube, with twenty point
 * charges [NPB94]. Ranks exchange faces of all sizes, from 512 KiB to a few bytes, with six neighbours;
 * latency determines the time of the coarse levels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "mg_grid.h"
#include "random.h"

enum { CHARGES = 10 };

static const struct {
    int points, iterations;
    double norm;
    double smoother[3]; /* weights of the point itself, of faces and of edges */
} classes[CLASS_COUNT] = {
    [CLASS_S] = {32, 4, 0.5307707005734e-04, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    [CLASS_W] = {128, 4, 0.6467329375339e-05, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    [CLASS_A] = {256, 4, 0.2433365309069e-05, {-3.0 / 8, 1.0 / 32, -1.0 / 64}},
    [CLASS_B] = {256, 20, 0.1800564401355e-05, {-3.0 / 17, 1.0 / 33, -1.0 / 61}},
};

struct multigrid {
    struct kernel_run *run;
    struct mg_ranks ranks;
    int top; /* finest level; level k has 2^k points in each dimension, level 1 is the coarsest */
    struct mg_grid grid[MG_LEVELS_MAX];
    double *u[MG_LEVELS_MAX], *r[MG_LEVELS_MAX]; /* solution and residual */
    double *v;                                   /* the charges */
    double *edge, *corner; /* for one line: sums of the four nearest lines, and of the four diagonal lines */
};

/* Sums the four lines next to line (y, z), and the four diagonal lines. A 27-point stencil uses each sum
 * three times instead of computing it three times. */
static void mg_sum_lines(struct multigrid *m, const struct mg_grid *g, const double *v, int y, int z)
{
    const double *c = &v[mg_index(g, -1, y, z)];
    const ptrdiff_t row = (ptrdiff_t)g->row, plane = (ptrdiff_t)g->plane;
    for (int x = 0; x < g->n[0] + 2; x++, c++) {
        m->edge[x] = c[-row] + c[row] + c[-plane] + c[plane];
        m->corner[x] = c[-plane - row] + c[-plane + row] + c[plane - row] + c[plane + row];
    }
}

/* r = v - A u, with A = (-8/3, 0, 1/6, 1/12) by distance. v and r may be the same. */
static void mg_residual(struct multigrid *m, int level, const double *v)
{
    const struct mg_grid *g = &m->grid[level];
    const double *u = m->u[level];
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++) {
            size_t at = mg_index(g, 0, y, z);
            const double *edge = m->edge + 1, *corner = m->corner + 1;
            mg_sum_lines(m, g, u, y, z);
            for (int x = 0; x < g->n[0]; x++)
                m->r[level][at + (size_t)x] = v[at + (size_t)x] + 8.0 / 3 * u[at + (size_t)x] -
                                              1.0 / 6 * (corner[x] + edge[x - 1] + edge[x + 1]) -
                                              1.0 / 12 * (corner[x - 1] + corner[x + 1]);
        }
    mg_exchange(g, m->r[level]);
}

/* u = u + S r */
static void mg_smooth(struct multigrid *m, int level)
{
    const struct mg_grid *g = &m->grid[level];
    const double *s = classes[m->run->class].smoother;
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++) {
            double *u = &m->u[level][mg_index(g, 0, y, z)];
            const double *r = &m->r[level][mg_index(g, 0, y, z)], *edge = m->edge + 1,
                         *corner = m->corner + 1;
            mg_sum_lines(m, g, m->r[level], y, z);
            for (int x = 0; x < g->n[0]; x++)
                u[x] += s[0] * r[x] + s[1] * (r[x - 1] + r[x + 1] + edge[x]) +
                        s[2] * (corner[x] + edge[x - 1] + edge[x + 1]);
        }
    mg_exchange(g, m->u[level]);
}

/* The residual of the next coarser level: a weighted mean around every second point. */
static void mg_restrict_residual(struct multigrid *m, int fine)
{
    const struct mg_grid *f = &m->grid[fine], *c = &m->grid[fine - 1];
    bool joins = c->whole && !f->whole;
    int n[3], first[3];
    for (int d = 0; d < 3; d++) {
        n[d] = f->n[d] / 2;
        first[d] = joins ? n[d] * m->ranks.at[d] : 0;
    }
    for (int z = 0; z < n[2]; z++)
        for (int y = 0; y < n[1]; y++) {
            double *out = &m->r[fine - 1][mg_index(c, first[0], first[1] + y, first[2] + z)];
            const double *in = &m->r[fine][mg_index(f, 0, 2 * y + 1, 2 * z + 1)];
            const double *edge = m->edge + 1, *corner = m->corner + 1;
            mg_sum_lines(m, f, m->r[fine], 2 * y + 1, 2 * z + 1);
            for (int x = 0; x < n[0]; x++) {
                int i = 2 * x + 1;
                out[x] = 0.5 * in[i] + 0.25 * (in[i - 1] + in[i + 1] + edge[i]) +
                         0.125 * (edge[i - 1] + edge[i + 1] + corner[i]) +
                         0.0625 * (corner[i - 1] + corner[i + 1]);
            }
        }
    if (joins)
        mg_gather(c, n, m->r[fine - 1]);
    mg_exchange(c, m->r[fine - 1]);
}

/* Adds the solution of the coarser level to the finer level: coarse points are the odd points of the finer
 * level; points between them get the mean. */
static void mg_interpolate(struct multigrid *m, int fine)
{
    const struct mg_grid *f = &m->grid[fine], *c = &m->grid[fine - 1];
    bool parts = c->whole && !f->whole;
    int first[3];
    for (int d = 0; d < 3; d++)
        first[d] = parts ? f->first[d] / 2 : 0;
    /* The layers of the neighbours, -1 and n, follow from the coarse layers without an exchange. */
    for (int z = -1; z <= f->n[2]; z++)
        for (int y = -1; y <= f->n[1]; y++) {
            /* An even line lies between two coarse lines; an odd line coincides with a coarse line, which
             * is used twice. */
            const int cy = first[1] + (y + 1) / 2 - (y % 2 != 0), cz = first[2] + (z + 1) / 2 - (z % 2 != 0);
            const double *in = &m->u[fine - 1][mg_index(c, first[0], cy, cz)];
            ptrdiff_t row = y % 2 ? 0 : -(ptrdiff_t)c->row, plane = z % 2 ? 0 : -(ptrdiff_t)c->plane;
            double *out = &m->u[fine][mg_index(f, 0, y, z)];
            double before = 0.25 * (in[-1] + in[-1 + row] + in[-1 + plane] + in[-1 + row + plane]);
            const int half = f->n[0] / 2;
            out[-1] += before;
            for (int x = 0; x < half; x++) {
                double here = 0.25 * (in[x] + in[x + row] + in[x + plane] + in[x + row + plane]);
                out[2 * x] += 0.5 * (before + here);
                out[2 * x + 1] += here;
                before = here;
            }
            out[f->n[0]] +=
                0.5 *
                (before + 0.25 * (in[half] + in[half + row] + in[half + plane] + in[half + row + plane]));
        }
}

static void mg_clear(struct multigrid *m, int level)
{
    memset(m->u[level], 0, mg_block_doubles(&m->grid[level]) * sizeof(double));
}

/* Executes one V-cycle and computes the residual. */
static void mg_cycle(struct multigrid *m)
{
    for (int k = m->top; k > 1; k--)
        mg_restrict_residual(m, k);
    mg_clear(m, 1);
    mg_smooth(m, 1);
    for (int k = 2; k < m->top; k++) {
        mg_clear(m, k);
        mg_interpolate(m, k);
        mg_residual(m, k, m->r[k]);
        mg_smooth(m, k);
    }
    mg_interpolate(m, m->top);
    mg_residual(m, m->top, m->v);
    mg_smooth(m, m->top);
    mg_residual(m, m->top, m->v);
}

struct extreme {
    double value;
    int64_t at;
};

static int compare_by_value(const void *a, const void *b)
{
    const struct extreme *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Inserts a value into the sorted list of the ten smallest. */
static void extremes_insert(struct extreme *list, double value, int64_t at)
{
    if (value >= list[CHARGES - 1].value)
        return;
    list[CHARGES - 1] = (struct extreme){value, at};
    for (int i = CHARGES - 1; i > 0 && list[i].value < list[i - 1].value; i--) {
        struct extreme e = list[i];
        list[i] = list[i - 1];
        list[i - 1] = e;
    }
}

/* Places charges at the ten smallest entries of all ranks' lists. */
static void mg_place_charges(struct multigrid *m, const struct extreme *mine, double charge)
{
    const struct mg_grid *g = &m->grid[m->top];
    struct extreme *all = kernel_alloc(m->run, CHARGES * (size_t)m->run->size * sizeof(*all));
    MPI_Allgather(mine, CHARGES * sizeof(*mine), MPI_BYTE, all, CHARGES * sizeof(*mine), MPI_BYTE,
                  m->run->comm);
    qsort(all, CHARGES * (size_t)m->run->size, sizeof(*all), compare_by_value);
    for (int i = 0; i < CHARGES; i++) {
        int x = (int)(all[i].at % g->points) - g->first[0];
        int y = (int)(all[i].at / g->points % g->points) - g->first[1];
        int z = (int)(all[i].at / g->points / g->points) - g->first[2];
        if (x >= 0 && x < g->n[0] && y >= 0 && y < g->n[1] && z >= 0 && z < g->n[2])
            m->v[mg_index(g, x, y, z)] = charge;
    }
    free(all);
}

/* The charges: -1 at the ten smallest of a cube of random numbers, +1 at the ten largest. */
static void mg_make_charges(struct multigrid *m)
{
    const struct mg_grid *g = &m->grid[m->top];
    struct extreme small[CHARGES], large[CHARGES];
    for (int i = 0; i < CHARGES; i++)
        small[i] = large[i] = (struct extreme){2, 0};
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++) {
            int64_t at =
                g->first[0] + (int64_t)g->points * (g->first[1] + y + (int64_t)g->points * (g->first[2] + z));
            uint64_t seed = random_skip(314159265, (uint64_t)at);
            for (int x = 0; x < g->n[0]; x++, at++) {
                double value = random_next(&seed);
                extremes_insert(small, value, at);
                extremes_insert(large, 1 - value, at);
            }
        }
    mg_place_charges(m, small, -1);
    mg_place_charges(m, large, 1);
    mg_exchange(g, m->v);
}

static double mg_norm(struct multigrid *m)
{
    const struct mg_grid *g = &m->grid[m->top];
    double sum = 0, all = 0;
    for (int z = 0; z < g->n[2]; z++)
        for (int y = 0; y < g->n[1]; y++)
            for (int x = 0; x < g->n[0]; x++) {
                double r = m->r[m->top][mg_index(g, x, y, z)];
                sum += r * r;
            }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, m->run->comm);
    return sqrt(all / pow(g->points, 3));
}

static void mg_set_initial(struct multigrid *m)
{
    mg_clear(m, m->top);
    mg_residual(m, m->top, m->v);
}

static void mg_open(struct multigrid *m, struct kernel_run *run)
{
    int points = classes[run->class].points;
    *m = (struct multigrid){.run = run};
    mg_ranks_make(&m->ranks, run, points);
    while (1 << m->top < points)
        m->top++;
    for (int k = 1; k <= m->top; k++) {
        mg_grid_make(&m->grid[k], &m->ranks, 1 << k);
        m->u[k] = kernel_alloc(run, mg_block_doubles(&m->grid[k]) * sizeof(double));
        m->r[k] = kernel_alloc(run, mg_block_doubles(&m->grid[k]) * sizeof(double));
    }
    m->v = kernel_alloc(run, mg_block_doubles(&m->grid[m->top]) * sizeof(double));
    m->edge = kernel_alloc(run, ((size_t)points + 2) * sizeof(double));
    m->corner = kernel_alloc(run, ((size_t)points + 2) * sizeof(double));
    mg_make_charges(m);
}

static void mg_run(struct kernel_run *run, struct kernel_result *out)
{
    struct multigrid m;
    mg_open(&m, run);
    mg_set_initial(&m);
    mg_cycle(&m); /* one untimed cycle, as the specification requires */
    double started = kernel_start(run);
    mg_set_initial(&m);
    for (int i = 1; i <= classes[run->class].iterations; i++) {
        mg_cycle(&m);
        kernel_progress(run, i, classes[run->class].iterations);
    }
    double left = mg_norm(&m);
    kernel_stop(run, started, out);
    kernel_verify_value(out, left, classes[run->class].norm, 1e-8);
    /* [NPB94] counts 58 operations for each point of the finest level for all levels of one cycle. */
    out->amount = 58.0 * classes[run->class].iterations * pow(classes[run->class].points, 3) * 1e-6;
    for (int k = 1; k <= m.top; k++) {
        free(m.u[k]);
        free(m.r[k]);
    }
    free(m.v);
    free(m.edge);
    free(m.corner);
    mg_ranks_free(&m.ranks);
}

/* Every rank needs two points of the finest level in each dimension. */
static bool mg_accepts_ranks(int ranks, enum kernel_class class)
{
    double most = pow(classes[class].points / 2, 3);
    return kernel_is_power_of_two(ranks) && ranks <= most;
}

const struct kernel kernel_mg = {
    .name = "mg",
    .doc = "multigrid V-cycles on a cube; exchanges faces of all sizes with six neighbours",
    .unit = "Mflop/s",
    .ranks = "powers of two",
    .accepts_ranks = mg_accepts_ranks,
    .run = mg_run,
};

/* lu_grid.c: LU's grid on one rank: which points, neighbours' points, and the residual.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lu.h"

enum { LEAST = 3 }; /* points of a rank in a direction: its neighbours need two of them */

bool lu_cut(int ranks, int n, int out[2])
{
    for (int y = (int)sqrt((double)ranks); y >= 1; y--)
        if (ranks % y == 0) {
            out[0] = ranks / y;
            out[1] = y;
            return n / out[0] >= LEAST && n / out[1] >= LEAST;
        }
    return false;
}

void lu_grid_open(struct lu_grid *g, struct kernel_run *run, int n, double dt)
{
    *g = (struct lu_grid){.n = n, .step = 1.0 / (n - 1), .dt = dt};
    lu_cut(run->size, n, g->ranks);
    g->at[0] = run->rank % g->ranks[0];
    g->at[1] = run->rank / g->ranks[0];
    for (int d = 0; d < 2; d++) {
        int each = n / g->ranks[d], more = n % g->ranks[d], stride = d == 0 ? 1 : g->ranks[0];
        g->count[d] = each + (g->at[d] < more);
        g->first[d] = g->at[d] * each + (g->at[d] < more ? g->at[d] : more);
        g->before[d] = g->at[d] > 0 ? run->rank - stride : MPI_PROC_NULL;
        g->after[d] = g->at[d] < g->ranks[d] - 1 ? run->rank + stride : MPI_PROC_NULL;
    }
    size_t bytes = lu_at(g, -LU_GHOST, -LU_GHOST, n) * sizeof(double);
    g->u = kernel_alloc(run, bytes);
    g->force = kernel_alloc(run, bytes);
    g->rsd = kernel_alloc(run, bytes);
    int widest = g->count[0] > g->count[1] ? g->count[0] : g->count[1];
    g->faces = kernel_alloc(run, (size_t)(4 * LU_GHOST * widest) * (size_t)n * LU_M * sizeof(double));
}

void lu_grid_close(struct lu_grid *g)
{
    free(g->u);
    free(g->force);
    free(g->rsd);
    free(g->faces);
}

/* Copies two layers of points, beginning with `layer` in direction d, between the field and a buffer. */
static void copy_layers(const struct lu_grid *g, double *field, double *buffer, int d, int layer, bool out)
{
    int along = g->count[1 - d];
    for (int k = 0; k < g->n; k++)
        for (int a = 0; a < along; a++)
            for (int l = layer; l < layer + LU_GHOST; l++) {
                double *point = field + (d == 0 ? lu_at(g, l, a, k) : lu_at(g, a, l, k));
                memcpy(out ? buffer : point, out ? point : buffer, LU_M * sizeof(double));
                buffer += LU_M;
            }
}

void lu_exchange(const struct lu_grid *g, struct kernel_run *run, double *field)
{
    for (int d = 0; d < 2; d++) {
        int count = LU_GHOST * g->count[1 - d] * g->n * LU_M;
        double *buffer[4]; /* to and from the one before, to and from the one after */
        MPI_Request requests[4];
        for (int b = 0; b < 4; b++)
            buffer[b] = g->faces + (size_t)b * (size_t)count;
        MPI_Irecv(buffer[1], count, MPI_DOUBLE, g->before[d], d, run->comm, &requests[0]);
        MPI_Irecv(buffer[3], count, MPI_DOUBLE, g->after[d], d, run->comm, &requests[1]);
        copy_layers(g, field, buffer[0], d, 0, true);
        MPI_Isend(buffer[0], count, MPI_DOUBLE, g->before[d], d, run->comm, &requests[2]);
        copy_layers(g, field, buffer[2], d, g->count[d] - LU_GHOST, true);
        MPI_Isend(buffer[2], count, MPI_DOUBLE, g->after[d], d, run->comm, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        if (g->before[d] != MPI_PROC_NULL)
            copy_layers(g, field, buffer[1], d, -LU_GHOST, false);
        if (g->after[d] != MPI_PROC_NULL)
            copy_layers(g, field, buffer[3], d, g->count[d], false);
    }
}

struct lu_box lu_inner(const struct lu_grid *g)
{
    struct lu_box box;
    for (int d = 0; d < 3; d++) {
        const int first = d < 2 ? g->first[d] : 0, count = d < 2 ? g->count[d] : g->n;
        box.from[d] = first == 0 ? 1 : 0;
        box.to[d] = first + count == g->n ? count - 1 : count;
    }
    return box;
}

/* One line through the grid: subtracts or adds what the differences along it give. `line` counts points of the whole grid. */
static void along_line(const struct lu_grid *g, const double *field, double *out, size_t first, size_t stride,
                       int from, int to, int global, int d)
{
    const double t1 = 1 / (g->step * g->step), t2 = 1 / (2 * g->step), smooth = 0.25;
    double flux[3][LU_M], viscous[3][LU_M];
    for (int i = from - 1; i < to + 1; i++) {
        const double *u = field + first + (size_t)i * stride;
        int slot = (i - from + 1) % 3, middle = (i - from + 3) % 3, left = (i - from + 2) % 3;
        lu_flux(u, d, flux[slot]);
        lu_viscous(u, d, viscous[slot]);
        if (i < from + 1)
            continue;
        const double *c = u - stride; /* the point whose neighbours are left and at i */
        double *r = out + first + (size_t)(i - 1) * stride;
        int line = global + i - 1;
        for (int m = 0; m < LU_M; m++) {
            double before = c[m - (ptrdiff_t)stride], after = c[m + stride];
            r[m] += -t2 * (flux[slot][m] - flux[left][m]) +
                    t1 * (viscous[slot][m] - 2 * viscous[middle][m] + viscous[left][m]) +
                    lu_damping[d] * t1 * (after - 2 * c[m] + before);
            double fourth = (line == 1 || line == g->n - 2 ? 5 : 6) * c[m];
            fourth += line > 1 ? -4 * before : 0;
            fourth += line > 2 ? c[m - 2 * (ptrdiff_t)stride] : 0;
            fourth += line < g->n - 2 ? -4 * after : 0;
            fourth += line < g->n - 3 ? c[m + 2 * stride] : 0;
            r[m] -= smooth * fourth;
        }
    }
}

void lu_residual(const struct lu_grid *g, const double *field, const double *force, double *out)
{
    const struct lu_box inner = lu_inner(g);
    const int *from = inner.from, *to = inner.to;
    size_t sx = LU_M, sy = lu_at(g, 0, 1, 0) - lu_at(g, 0, 0, 0), sz = lu_at(g, 0, 0, 1) - lu_at(g, 0, 0, 0);
    for (int k = from[2]; k < to[2]; k++)
        for (int j = from[1]; j < to[1]; j++) {
            for (int i = from[0]; i < to[0]; i++)
                for (int m = 0; m < LU_M; m++)
                    out[lu_at(g, i, j, k) + (size_t)m] = force ? -force[lu_at(g, i, j, k) + (size_t)m] : 0;
            along_line(g, field, out, lu_at(g, 0, j, k), sx, from[0], to[0], g->first[0], 0);
        }
    for (int k = from[2]; k < to[2]; k++)
        for (int i = from[0]; i < to[0]; i++)
            along_line(g, field, out, lu_at(g, i, 0, k), sy, from[1], to[1], g->first[1], 1);
    for (int j = from[1]; j < to[1]; j++)
        for (int i = from[0]; i < to[0]; i++)
            along_line(g, field, out, lu_at(g, i, j, 0), sz, from[2], to[2], 0, 2);
}

void lu_norm(const struct lu_grid *g, struct kernel_run *run, const double *field, double out[LU_M])
{
    double sum[LU_M] = {0};
    const struct lu_box b = lu_inner(g);
    for (int k = b.from[2]; k < b.to[2]; k++)
        for (int j = b.from[1]; j < b.to[1]; j++)
            for (int i = b.from[0]; i < b.to[0]; i++)
                for (int m = 0; m < LU_M; m++) {
                    double v = field[lu_at(g, i, j, k) + (size_t)m];
                    sum[m] += v * v;
                }
    MPI_Allreduce(sum, out, LU_M, MPI_DOUBLE, MPI_SUM, run->comm);
    for (int m = 0; m < LU_M; m++)
        out[m] = sqrt(out[m] / pow(g->n - 2, 3));
}

/* lu_grid.c: LU's grid on one rank: points of a rank, neighbours' points, residual.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lu.h"

void lu_grid_open(struct lu_grid *g, struct kernel_run *run, int n, double dt)
{
    *g = (struct lu_grid){.mesh = {n, 1.0 / (n - 1)}, .dt = dt};
    kernel_plane_open(&g->plane, run, n);
    size_t bytes = lu_index(g, -GAS_GHOST, -GAS_GHOST, n) * sizeof(double);
    g->u = kernel_alloc(run, bytes);
    g->force = kernel_alloc(run, bytes);
    g->rsd = kernel_alloc(run, bytes);
    int widest = g->plane.count[0] > g->plane.count[1] ? g->plane.count[0] : g->plane.count[1];
    g->faces = kernel_alloc(run, (size_t)(4 * GAS_GHOST * widest) * (size_t)n * GAS_M * sizeof(double));
}

void lu_grid_close(struct lu_grid *g)
{
    free(g->u);
    free(g->force);
    free(g->rsd);
    free(g->faces);
}

/* Copies two layers of points, beginning with `layer` in direction d, between the field and a buffer. */
static void lu_copy_layers(const struct lu_grid *g, double *field, double *buffer, int d, int layer, bool out)
{
    int along = g->plane.count[1 - d];
    for (int k = 0; k < g->mesh.n; k++)
        for (int a = 0; a < along; a++)
            for (int l = layer; l < layer + GAS_GHOST; l++) {
                double *point = field + (d == 0 ? lu_index(g, l, a, k) : lu_index(g, a, l, k));
                memcpy(out ? buffer : point, out ? point : buffer, GAS_M * sizeof(double));
                buffer += GAS_M;
            }
}

void lu_exchange(const struct lu_grid *g, struct kernel_run *run, double *field)
{
    for (int d = 0; d < 2; d++) {
        int count = GAS_GHOST * g->plane.count[1 - d] * g->mesh.n * GAS_M;
        double *buffer[4]; /* sent to and received from the preceding rank, then the following rank */
        MPI_Request requests[2];
        for (int b = 0; b < 4; b++)
            buffer[b] = g->faces + (size_t)b * (size_t)count;
        MPI_Irecv(buffer[1], count, MPI_DOUBLE, g->plane.before[d], d, run->comm, &requests[0]);
        MPI_Irecv(buffer[3], count, MPI_DOUBLE, g->plane.after[d], d, run->comm, &requests[1]);
        lu_copy_layers(g, field, buffer[0], d, 0, true);
        MPI_Send(buffer[0], count, MPI_DOUBLE, g->plane.before[d], d, run->comm);
        lu_copy_layers(g, field, buffer[2], d, g->plane.count[d] - GAS_GHOST, true);
        MPI_Send(buffer[2], count, MPI_DOUBLE, g->plane.after[d], d, run->comm);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (g->plane.before[d] != MPI_PROC_NULL)
            lu_copy_layers(g, field, buffer[1], d, -GAS_GHOST, false);
        if (g->plane.after[d] != MPI_PROC_NULL)
            lu_copy_layers(g, field, buffer[3], d, g->plane.count[d], false);
    }
}

struct lu_box lu_inner_range(const struct lu_grid *g)
{
    struct lu_box box;
    for (int d = 0; d < 3; d++) {
        const int first = d < 2 ? g->plane.first[d] : 0, count = d < 2 ? g->plane.count[d] : g->mesh.n;
        box.from[d] = first == 0 ? 1 : 0;
        box.to[d] = first + count == g->mesh.n ? count - 1 : count;
    }
    return box;
}

static void lu_copy_row(const struct lu_grid *g, const double *field, double *out, size_t first,
                        size_t stride, int from, int to, int global, int d)
{
    gas_add_line_differences(&g->mesh, field + first, out + first, stride, from, to, global, d);
}

void lu_compute_residual(const struct lu_grid *g, const double *field, const double *force, double *out)
{
    const struct lu_box inner = lu_inner_range(g);
    const int *from = inner.from, *to = inner.to;
    size_t sx = GAS_M, sy = lu_index(g, 0, 1, 0) - lu_index(g, 0, 0, 0),
           sz = lu_index(g, 0, 0, 1) - lu_index(g, 0, 0, 0);
    for (int k = from[2]; k < to[2]; k++)
        for (int j = from[1]; j < to[1]; j++) {
            for (int i = from[0]; i < to[0]; i++)
                for (int m = 0; m < GAS_M; m++)
                    out[lu_index(g, i, j, k) + (size_t)m] =
                        force ? -force[lu_index(g, i, j, k) + (size_t)m] : 0;
            lu_copy_row(g, field, out, lu_index(g, 0, j, k), sx, from[0], to[0], g->plane.first[0], 0);
        }
    for (int k = from[2]; k < to[2]; k++)
        for (int i = from[0]; i < to[0]; i++)
            lu_copy_row(g, field, out, lu_index(g, i, 0, k), sy, from[1], to[1], g->plane.first[1], 1);
    for (int j = from[1]; j < to[1]; j++)
        for (int i = from[0]; i < to[0]; i++)
            lu_copy_row(g, field, out, lu_index(g, i, j, 0), sz, from[2], to[2], 0, 2);
}

void lu_compute_norm(const struct lu_grid *g, struct kernel_run *run, const double *field, double out[GAS_M])
{
    double sum[GAS_M] = {0};
    const struct lu_box b = lu_inner_range(g);
    for (int k = b.from[2]; k < b.to[2]; k++)
        for (int j = b.from[1]; j < b.to[1]; j++)
            for (int i = b.from[0]; i < b.to[0]; i++)
                for (int m = 0; m < GAS_M; m++) {
                    double v = field[lu_index(g, i, j, k) + (size_t)m];
                    sum[m] += v * v;
                }
    MPI_Allreduce(sum, out, GAS_M, MPI_DOUBLE, MPI_SUM, run->comm);
    for (int m = 0; m < GAS_M; m++)
        out[m] = sqrt(out[m] / pow(g->mesh.n - 2, 3));
}

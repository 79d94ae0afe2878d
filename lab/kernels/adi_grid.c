/* adi_grid.c: multi-partition of BT and SP: cells of a rank, ranks of the neighbouring cells, exchange of
 * faces, residual.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adi.h"

int adi_ranks_per_side(int ranks)
{
    int side = (int)(sqrt((double)ranks) + 0.5);
    return side * side == ranks ? side : 0;
}

/* Rank that owns a cell: from slab to slab of z the cells of one rank move up in x and down in y. */
static int adi_cell_owner(int side, int x, int y, int z)
{
    return (x - z + side) % side + (y + z) % side * side;
}

static void adi_cell_open(struct adi_grid *g, struct kernel_run *run, int z)
{
    const int side = g->side, n = g->mesh.n, each = n / side, more = n % side;
    struct adi_cell *c = &g->cells[z];
    size_t points = 1;
    c->at[0] = (run->rank % side + z) % side;
    c->at[1] = (run->rank / side - z + side) % side;
    c->at[2] = z;
    for (int d = 0; d < 3; d++) {
        int at = c->at[d];
        c->count[d] = each + (at < more);
        c->first[d] = at * each + (at < more ? at : more);
        points *= (size_t)(c->count[d] + 2 * GAS_GHOST);
        g->cell_in_slab[d][at] = z;
    }
    c->u = kernel_alloc(run, points * GAS_M * sizeof(double));
    c->force = kernel_alloc(run, points * GAS_M * sizeof(double));
    c->rhs = kernel_alloc(run, points * GAS_M * sizeof(double));
    c->saved = kernel_alloc(run, points * (size_t)g->method->saved * sizeof(double));
}

void adi_grid_open(struct adi_grid *g, struct kernel_run *run, const struct adi_method *method, int n,
                   double dt)
{
    const int side = adi_ranks_per_side(run->size), x = run->rank % side, y = run->rank / side,
              back = side - 1;
    *g = (struct adi_grid){.mesh = {n, 1.0 / (n - 1)}, .method = method, .dt = dt, .side = side};
    g->cells = kernel_alloc(run, (size_t)side * sizeof(*g->cells));
    for (int d = 0; d < 3; d++) {
        g->cell_in_slab[d] = kernel_alloc(run, (size_t)side * sizeof(int));
        g->after[d] = adi_cell_owner(side, (x + (d == 0)) % side, (y + (d == 1)) % side, d == 2 && side > 1);
        g->before[d] = adi_cell_owner(side, (x + (d == 0) * back) % side, (y + (d == 1) * back) % side,
                                      d == 2 ? back : 0);
    }
    for (int z = 0; z < side; z++)
        adi_cell_open(g, run, z);
    /* Largest message: the faces of side - 1 cells, or the carried values of all lines of a cell. */
    size_t face = (size_t)(n / side + 1) * (size_t)(n / side + 1);
    size_t most = face * GAS_M * GAS_GHOST * (size_t)side;
    size_t carried = face * (size_t)(method->up > method->down ? method->up : method->down);
    if (most < carried)
        most = carried;
    for (int b = 0; b < 2; b++) {
        g->send[b] = kernel_alloc(run, most * sizeof(double));
        g->receive[b] = kernel_alloc(run, most * sizeof(double));
    }
}

void adi_grid_close(struct adi_grid *g)
{
    for (int z = 0; z < g->side; z++) {
        free(g->cells[z].u);
        free(g->cells[z].force);
        free(g->cells[z].rhs);
        free(g->cells[z].saved);
    }
    for (int d = 0; d < 3; d++)
        free(g->cell_in_slab[d]);
    for (int b = 0; b < 2; b++) {
        free(g->send[b]);
        free(g->receive[b]);
    }
    free(g->cells);
}

void adi_inner_range(const struct adi_grid *g, const struct adi_cell *c, int from[3], int to[3])
{
    for (int d = 0; d < 3; d++) {
        from[d] = c->first[d] == 0 ? 1 : 0;
        to[d] = c->first[d] + c->count[d] == g->mesh.n ? c->count[d] - 1 : c->count[d];
    }
}

/* ---- Faces ---- */

/* Copies two layers of a cell, beginning with `layer` in direction d, between u and a buffer; returns the end
 * of the copied data in the buffer. */
static double *adi_copy_layers(const struct adi_cell *c, double *buffer, int d, int layer, bool out)
{
    const int a = (d + 1) % 3, b = (d + 2) % 3;
    int p[3];
    for (p[b] = 0; p[b] < c->count[b]; p[b]++)
        for (p[a] = 0; p[a] < c->count[a]; p[a]++)
            for (p[d] = layer; p[d] < layer + GAS_GHOST; p[d]++, buffer += GAS_M) {
                double *point = c->u + adi_point_index(c, p) * GAS_M;
                memcpy(out ? buffer : point, out ? point : buffer, GAS_M * sizeof(double));
            }
    return buffer;
}

/* Copies the faces of all cells that have a neighbour on one side (0: before, 1: after), slab by slab;
 * returns the number of doubles. */
static int adi_copy_faces(const struct adi_grid *g, double *buffer, int d, int side, bool out)
{
    double *end = buffer;
    for (int s = side == 0; s < g->side - (side == 1); s++) {
        const struct adi_cell *c = &g->cells[g->cell_in_slab[d][s]];
        int own = side == 0 ? 0 : c->count[d] - GAS_GHOST, theirs = side == 0 ? -GAS_GHOST : c->count[d];
        end = adi_copy_layers(c, end, d, out ? own : theirs, out);
    }
    return (int)(end - buffer);
}

void adi_exchange(const struct adi_grid *g, struct kernel_run *run)
{
    const size_t n = (size_t)(g->mesh.n / g->side + 1);
    const int most = (int)(n * n * GAS_M * GAS_GHOST) * g->side;
    for (int d = 0; d < 3 && g->side > 1; d++) {
        MPI_Request requests[4];
        MPI_Irecv(g->receive[0], most, MPI_DOUBLE, g->before[d], 2 * d + 1, run->comm, &requests[0]);
        MPI_Irecv(g->receive[1], most, MPI_DOUBLE, g->after[d], 2 * d, run->comm, &requests[1]);
        for (int side = 0; side < 2; side++) {
            int count = adi_copy_faces(g, g->send[side], d, side, true);
            MPI_Isend(g->send[side], count, MPI_DOUBLE, side ? g->after[d] : g->before[d], 2 * d + side,
                      run->comm, &requests[2 + side]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        adi_copy_faces(g, g->receive[0], d, 0, false);
        adi_copy_faces(g, g->receive[1], d, 1, false);
    }
}

/* ---- The residual ---- */

static void adi_cell_residual(const struct adi_grid *g, const struct adi_cell *c)
{
    int from[3], to[3], p[3];
    adi_inner_range(g, c, from, to);
    for (struct adi_rows r = adi_rows(g, c); adi_rows_remain(&r); adi_rows_next(&r)) {
        const size_t first = adi_point_index(c, r.p) * GAS_M, end = first + adi_rows_length(&r) * GAS_M;
        for (size_t m = first; m < end; m++)
            c->rhs[m] = -c->force[m];
    }
    for (int d = 0; d < 3; d++) {
        const int a = (d + 1) % 3, b = (d + 2) % 3;
        for (p[b] = from[b]; p[b] < to[b]; p[b]++)
            for (p[a] = from[a]; p[a] < to[a]; p[a]++) {
                p[d] = 0;
                size_t first = adi_point_index(c, p) * GAS_M;
                gas_add_line_differences(&g->mesh, c->u + first, c->rhs + first, adi_stride(c, d) * GAS_M,
                                         from[d], to[d], c->first[d], d);
            }
    }
}

void adi_compute_residual(const struct adi_grid *g)
{
    for (int i = 0; i < g->side; i++)
        adi_cell_residual(g, &g->cells[i]);
}

/* Adds the squares of the residual, or of the error of u, at the points of a row. */
static void adi_add_row_squares(const struct adi_grid *g, const struct adi_cell *c, const struct adi_rows *r,
                                bool error, double sum[GAS_M])
{
    const double *v = (error ? c->u : c->rhs) + adi_point_index(c, r->p) * GAS_M;
    int at[3] = {c->first[0] + r->p[0], c->first[1] + r->p[1], c->first[2] + r->p[2]};
    for (size_t i = 0; i < adi_rows_length(r); i++, at[0]++, v += GAS_M) {
        double exact[GAS_M] = {0};
        if (error)
            gas_exact_at_point(&g->mesh, at, exact);
        for (int m = 0; m < GAS_M; m++)
            sum[m] += (v[m] - exact[m]) * (v[m] - exact[m]);
    }
}

void adi_compute_norm(const struct adi_grid *g, struct kernel_run *run, bool error, double out[GAS_M])
{
    double sum[GAS_M] = {0};
    for (int i = 0; i < g->side; i++)
        for (struct adi_rows r = adi_rows(g, &g->cells[i]); adi_rows_remain(&r); adi_rows_next(&r))
            adi_add_row_squares(g, &g->cells[i], &r, error, sum);
    MPI_Allreduce(sum, out, GAS_M, MPI_DOUBLE, MPI_SUM, run->comm);
    for (int m = 0; m < GAS_M; m++)
        out[m] = sqrt(out[m] / pow(g->mesh.n - 2, 3));
}

/* adi_sweep.c: solves the equation systems along one direction: elimination from slab to slab of cells, then
 * back substitution. Every rank has one cell in each slab, so no rank waits for a pipeline to fill; between
 * two slabs each rank sends one message to the rank of its next cell, which is the same for all cells of a
 * rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "adi.h"

typedef void (*adi_step)(const struct adi_grid *g, const struct adi_line *l, double *carry);

/* Applies `step` to all lines of a cell, each of which carries `width` doubles. Returns the number of carried
 * doubles. */
static int adi_step_lines(const struct adi_grid *g, const struct adi_cell *c, int d, adi_step step, int width,
                          double *carry)
{
    const int a = (d + 1) % 3, b = (d + 2) % 3;
    int from[3], to[3], p[3], done = 0;
    adi_inner_range(g, c, from, to);
    for (p[b] = from[b]; p[b] < to[b]; p[b]++)
        for (p[a] = from[a]; p[a] < to[a]; p[a]++, done += width) {
            p[d] = 0;
            struct adi_line l = {c, adi_point_index(c, p), adi_stride(c, d), from[d], to[d], c->first[d], d};
            step(g, &l, carry + done);
        }
    return done;
}

/* One sweep over the slabs, up or down. The message for the next cell is in flight while that cell is
 * solved. */
static void adi_sweep_run(const struct adi_grid *g, struct kernel_run *run, int d, bool up)
{
    const struct adi_method *by = g->method;
    const int width = up ? by->up : by->down, n = g->mesh.n / g->side + 1, most = n * n * width, tag = 8 + up;
    const int to = up ? g->after[d] : g->before[d], from = up ? g->before[d] : g->after[d];
    MPI_Request sent = MPI_REQUEST_NULL, came = MPI_REQUEST_NULL;
    for (int s = 0; s < g->side; s++) {
        const struct adi_cell *c = &g->cells[g->cell_in_slab[d][up ? s : g->side - 1 - s]];
        double *carry = g->receive[s % 2];
        MPI_Wait(&came, MPI_STATUS_IGNORE);
        if (s == 0)
            memset(carry, 0, (size_t)most * sizeof(double));
        if (s + 1 < g->side)
            MPI_Irecv(g->receive[(s + 1) % 2], most, MPI_DOUBLE, from, tag, run->comm, &came);
        int count = adi_step_lines(g, c, d, up ? by->eliminate : by->substitute, width, carry);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
        if (s + 1 < g->side) {
            memcpy(g->send[0], carry, (size_t)count * sizeof(double));
            MPI_Isend(g->send[0], count, MPI_DOUBLE, to, tag, run->comm, &sent);
        }
    }
}

void adi_solve_direction(const struct adi_grid *g, struct kernel_run *run, int d)
{
    adi_sweep_run(g, run, d, true);
    adi_sweep_run(g, run, d, false);
}

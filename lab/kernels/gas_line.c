/* gas_line.c: the equations of gas.c on a mesh: coordinates and initial values of its points, and differences
 * along one line. LU, BT and SP partition the mesh differently, but each has whole lines or parts of lines
 * with neighbours' points at both ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gas.h"

#include <stdbool.h>

void gas_exact_at_point(const struct gas_mesh *mesh, const int p[3], double u[GAS_M])
{
    const double at[3] = {p[0] * mesh->step, p[1] * mesh->step, p[2] * mesh->step};
    gas_exact_solution(at, u);
}

static bool mesh_point_is_on_face(const struct gas_mesh *mesh, const int p[3])
{
    for (int d = 0; d < 3; d++)
        if (p[d] == 0 || p[d] == mesh->n - 1)
            return true;
    return false;
}

void gas_initial_value(const struct gas_mesh *mesh, const int p[3], double u[GAS_M])
{
    double face[2][3][GAS_M], blend[3];
    if (mesh_point_is_on_face(mesh, p)) {
        gas_exact_at_point(mesh, p, u);
        return;
    }
    for (int d = 0; d < 3; d++)
        for (int s = 0; s < 2; s++) {
            int q[3] = {p[0], p[1], p[2]};
            q[d] = s ? mesh->n - 1 : 0;
            gas_exact_at_point(mesh, q, face[s][d]);
        }
    for (int m = 0; m < GAS_M; m++) {
        for (int d = 0; d < 3; d++) {
            double part = p[d] * mesh->step;
            blend[d] = (1 - part) * face[0][d][m] + part * face[1][d][m];
        }
        u[m] = blend[0] + blend[1] + blend[2] - blend[0] * blend[1] - blend[1] * blend[2] -
               blend[2] * blend[0] + blend[0] * blend[1] * blend[2];
    }
}

void gas_add_line_differences(const struct gas_mesh *mesh, const double *field, double *out, size_t stride,
                              int from, int to, int global, int direction)
{
    const double t1 = 1 / (mesh->step * mesh->step), t2 = 1 / (2 * mesh->step);
    const ptrdiff_t next = (ptrdiff_t)stride;
    double flux[3][GAS_M], viscous[3][GAS_M];
    for (int i = from - 1; i < to + 1; i++) {
        const double *u = field + i * next;
        int slot = (i - from + 1) % 3, middle = (i - from + 3) % 3, left = (i - from + 2) % 3;
        gas_flux(u, direction, flux[slot]);
        gas_viscous_terms(u, direction, viscous[slot]);
        if (i < from + 1)
            continue;
        const double *c = u - next; /* the point between its neighbours `left` and i */
        double *r = out + (i - 1) * next;
        int line = global + i - 1;
        for (int m = 0; m < GAS_M; m++) {
            double before = c[m - next], after = c[m + next];
            r[m] += -t2 * (flux[slot][m] - flux[left][m]) +
                    t1 * (viscous[slot][m] - 2 * viscous[middle][m] + viscous[left][m]) +
                    gas_damping[direction] * t1 * (after - 2 * c[m] + before);
            double fourth = (line == 1 || line == mesh->n - 2 ? 5 : 6) * c[m];
            fourth += line > 1 ? -4 * before : 0;
            fourth += line > 2 ? c[m - 2 * next] : 0;
            fourth += line < mesh->n - 2 ? -4 * after : 0;
            fourth += line < mesh->n - 3 ? c[m + 2 * next] : 0;
            r[m] -= GAS_SMOOTH * fourth;
        }
    }
}

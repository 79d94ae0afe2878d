/* sp_solve.c: SP's equation systems along a line. The derivative of the flux at a point consists of five
 * waves: three move with the gas, two at the speed of sound relative to it. Each wave gives one equation a
 * point, with two neighbours on either side because of the smoothing. One number represents viscosity: the
 * largest of its five coefficients.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "adi.h"

enum { SYSTEMS = 3, SOUND = 3 }; /* system 0 has the waves 0 to 2, systems 1 and 2 one wave each */

/* A row after elimination: x + next * (x of the next point) + far * (x of the point after that) = waves. */
struct row {
    double next[SYSTEMS], far[SYSTEMS], waves[GAS_M];
};
enum { ROW = sizeof(struct row) / sizeof(double), KEPT = 2 * SYSTEMS };

/* Makes one equation: coefficients of five points, from two before the point to two after the point. */
static void sp_make_row(const struct adi_grid *g, int line, const struct gas_speeds *before,
                        const struct gas_speeds *at, const struct gas_speeds *after, double a[5])
{
    const double t1 = g->dt / (g->mesh.step * g->mesh.step), t2 = g->dt / (2 * g->mesh.step);
    const double smooth = g->dt * GAS_SMOOTH;
    const int last = g->mesh.n - 2;
    a[0] = line > 2 ? smooth : 0;
    a[1] = -t2 * before->gas - t1 * before->spread - (line > 1 ? 4 * smooth : 0);
    a[2] = 1 + 2 * t1 * at->spread + (line == 1 || line == last ? 5 : 6) * smooth;
    a[3] = t2 * after->gas - t1 * after->spread - (line < last ? 4 * smooth : 0);
    a[4] = line < last - 1 ? smooth : 0;
}

/* Eliminates the two preceding points from the equation of one system, and divides the equation by its
 * diagonal coefficient. */
static void sp_eliminate_preceding_points(const struct row *far, const struct row *near, int system,
                                          const double a[5], struct row *out)
{
    const int first = system == 0 ? 0 : SOUND - 1 + system, end = system == 0 ? SOUND : first + 1;
    const double one = a[1] - a[0] * far->next[system];
    const double own = 1 / (a[2] - a[0] * far->far[system] - one * near->next[system]);
    for (int w = first; w < end; w++)
        out->waves[w] = (out->waves[w] - a[0] * far->waves[w] - one * near->waves[w]) * own;
    out->next[system] = (a[3] - one * near->far[system]) * own;
    out->far[system] = a[4] * own;
}

/* `carry`: rows of the last two points of the preceding cell; replaced by the last two rows of this cell.
 * Rows of boundary points, whose values are fixed, are zeros. */
static void sp_solve_eliminate(const struct adi_grid *g, const struct adi_line *l, double *carry)
{
    static const double sign[SYSTEMS] = {0, 1, -1};
    const double *u = l->cell->u + l->first * GAS_M, t2 = g->dt / (2 * g->mesh.step);
    const ptrdiff_t stride = (ptrdiff_t)(l->stride * GAS_M);
    struct gas_speeds three[3];
    struct row rows[3]; /* the two preceding rows and the present one, used in rotation */
    memcpy(rows, carry, 2 * sizeof(rows[0]));
    for (int i = l->from - 1; i <= l->from; i++)
        gas_speeds(u + i * stride, l->direction, &three[(i + 3) % 3]);
    int turn = 2;
    for (int i = l->from; i < l->to; i++, turn = (turn + 1) % 3) {
        const struct gas_speeds *before = &three[(i + 2) % 3];
        struct gas_speeds *after = &three[(i + 1) % 3];
        const size_t at = l->first + (size_t)i * l->stride;
        double a[5], *r = l->cell->rhs + at * GAS_M, *saved = l->cell->saved + at * KEPT;
        struct row *row = &rows[turn];
        gas_speeds(u + (i + 1) * stride, l->direction, after);
        sp_make_row(g, l->global + i, before, &three[i % 3], after, a);
        gas_to_waves(u + i * stride, l->direction, r, row->waves);
        for (int s = 0; s < SYSTEMS; s++) {
            const double with[5] = {a[0], a[1] - sign[s] * t2 * before->sound, a[2],
                                    a[3] + sign[s] * t2 * after->sound, a[4]};
            sp_eliminate_preceding_points(&rows[(turn + 1) % 3], &rows[(turn + 2) % 3], s, with, row);
        }
        memcpy(r, row->waves, sizeof(row->waves));
        memcpy(saved, row->next, sizeof(row->next));
        memcpy(saved + SYSTEMS, row->far, sizeof(row->far));
    }
    memcpy(carry, &rows[(turn + 1) % 3], sizeof(rows[0]));
    memcpy(carry + ROW, &rows[(turn + 2) % 3], sizeof(rows[0]));
}

/* `carry`: waves of the first two points of the next cell; replaced by the waves of the first two points
 * of this cell. */
static void sp_solve_substitute(const struct adi_grid *g, const struct adi_line *l, double *carry)
{
    double *next = carry, *far = carry + GAS_M;
    (void)g;
    for (int i = l->to - 1; i >= l->from; i--) {
        const size_t at = l->first + (size_t)i * l->stride;
        const double *saved = l->cell->saved + at * KEPT;
        double *r = l->cell->rhs + at * GAS_M, waves[GAS_M];
        for (int w = 0; w < GAS_M; w++) {
            const int s = w < SOUND ? 0 : w - SOUND + 1;
            waves[w] = r[w] - saved[s] * next[w] - saved[SYSTEMS + s] * far[w];
        }
        memcpy(far, next, sizeof(waves));
        memcpy(next, waves, sizeof(waves));
        gas_from_waves(l->cell->u + at * GAS_M, l->direction, waves, r);
    }
}

const struct adi_method sp_method = {
    .saved = KEPT,
    .up = 2 * ROW,
    .down = 2 * GAS_M,
    .eliminate = sp_solve_eliminate,
    .substitute = sp_solve_substitute,
};

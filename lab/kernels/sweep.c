/* sweep.c: a wavefront sweep like sweep3D [Liu04 9.2]: transport of particles in 48 directions through a
 * cube, by diamond differences. Each octant of directions starts in a corner; a rank continues when the faces
 * of two neighbours have arrived, block by block of planes and angles. No suite publishes values for this
 * kernel: the source is chosen so that a flux linear in x, y and z, with a slope of its own for each
 * direction and angle, solves the difference equations exactly. A lost, late or exchanged face therefore
 * changes the result.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "kernels.h"

enum { ANGLES = 6, ANGLE_BLOCK = 3, PLANES = 5, POINTS_MIN = 1 };

static const struct problem {
    int n, iterations;
} problems[CLASS_COUNT] = {
    [CLASS_S] = {20, 4}, [CLASS_W] = {50, 12}, [CLASS_A] = {100, 12}, [CLASS_B] = {150, 12}};

static const double absorbed = 0.75;

struct sweep {
    int n;
    struct kernel_plane plane;
    double *face[2]; /* flux through the faces in x and in y: [angle][plane][line] of one block */
    double *below;   /* flux through the faces in z: [angle][y][x] */
    double worst;    /* largest relative error of a flux */
};

/* One block of one octant: ANGLE_BLOCK angles beginning with `angle`, and `planes` planes beginning
 * `plane` steps from the octant's corner. */
struct sweep_block {
    int sign[3]; /* 1 or -1 */
    int octant, angle, plane, planes;
};

static void sweep_open(struct sweep *s, struct kernel_run *run, int n)
{
    *s = (struct sweep){.n = n};
    kernel_plane_open(&s->plane, run, n);
    for (int d = 0; d < 2; d++)
        s->face[d] =
            kernel_alloc(run, (size_t)(ANGLE_BLOCK * PLANES * s->plane.count[1 - d]) * sizeof(double));
    s->below =
        kernel_alloc(run, (size_t)(ANGLE_BLOCK * s->plane.count[0] * s->plane.count[1]) * sizeof(double));
}

static void sweep_close(struct sweep *s)
{
    free(s->face[0]);
    free(s->face[1]);
    free(s->below);
}

/* ---- The exact solution ---- */

static void sweep_slopes(int octant, int angle, double out[3])
{
    for (int d = 0; d < 3; d++)
        out[d] = 0.1 + 0.07 * d + 0.011 * octant + 0.013 * angle;
}

/* Exact flux at point (x, y, z); coordinates are in cells from the corner of the cube. */
static double sweep_exact_flux(const struct sweep *s, const struct sweep_block *p, int angle, double x,
                               double y, double z)
{
    double slope[3];
    sweep_slopes(p->octant, p->angle + angle, slope);
    return 1 + (slope[0] * x + slope[1] * y + slope[2] * z) / s->n;
}

/* Cosines of a direction: the six angles of an octant are three at each of two heights. */
static void sweep_cosines(int angle, double out[3])
{
    const double height = angle < 3 ? 0.35 : 0.8, turn = (angle % 3 + 0.5) * acos(-1.0) / 6;
    out[0] = sqrt(1 - height * height) * cos(turn);
    out[1] = sqrt(1 - height * height) * sin(turn);
    out[2] = height;
}

/* ---- One block ---- */

/* Sets the inflow faces in direction d of a block at the boundary of the cube; inside the cube the
 * neighbour sends these faces. */
static void sweep_fill_face(const struct sweep *s, const struct sweep_block *p, int d)
{
    double *face = s->face[d], edge = p->sign[d] > 0 ? 0 : s->n;
    for (int a = 0; a < ANGLE_BLOCK; a++)
        for (int k = 0; k < p->planes; k++) {
            int plane = p->plane + k;
            double z = p->sign[2] > 0 ? plane + 0.5 : s->n - plane - 0.5;
            for (int l = 0; l < s->plane.count[1 - d]; l++) {
                double along = s->plane.first[1 - d] + l + 0.5;
                *face++ = d == 0 ? sweep_exact_flux(s, p, a, edge, along, z)
                                 : sweep_exact_flux(s, p, a, along, edge, z);
            }
        }
}

static void sweep_fill_below(const struct sweep *s, const struct sweep_block *p)
{
    double *below = s->below;
    for (int a = 0; a < ANGLE_BLOCK; a++)
        for (int j = 0; j < s->plane.count[1]; j++)
            for (int i = 0; i < s->plane.count[0]; i++)
                *below++ = sweep_exact_flux(s, p, a, s->plane.first[0] + i + 0.5, s->plane.first[1] + j + 0.5,
                                            p->sign[2] > 0 ? 0 : s->n);
}

/* Solves one angle in one plane. The flux at a cell's centre is the mean of the fluxes through two opposite
 * faces. */
static void sweep_solve_plane(struct sweep *s, const struct sweep_block *p, int a, int k)
{
    double cosine[3], slope[3], weight[3], sum = absorbed, source = 0;
    const int plane = p->plane + k;
    const double z = p->sign[2] > 0 ? plane + 0.5 : s->n - plane - 0.5;
    sweep_cosines(p->angle + a, cosine);
    sweep_slopes(p->octant, p->angle + a, slope);
    for (int d = 0; d < 3; d++) {
        weight[d] = 2 * cosine[d] * s->n;
        sum += weight[d];
        source += cosine[d] * p->sign[d] * slope[d];
    }
    double *fx = s->face[0] + (a * p->planes + k) * s->plane.count[1],
           *fy = s->face[1] + (a * p->planes + k) * s->plane.count[0];
    double *fz = s->below + (size_t)a * (size_t)(s->plane.count[0] * s->plane.count[1]);
    for (int b = 0; b < s->plane.count[1]; b++) {
        int j = p->sign[1] > 0 ? b : s->plane.count[1] - 1 - b;
        for (int c = 0; c < s->plane.count[0]; c++) {
            int i = p->sign[0] > 0 ? c : s->plane.count[0] - 1 - c;
            double *below = fz + j * s->plane.count[0] + i;
            double right =
                sweep_exact_flux(s, p, a, s->plane.first[0] + i + 0.5, s->plane.first[1] + j + 0.5, z);
            double flux =
                (source + absorbed * right + weight[0] * fx[j] + weight[1] * fy[i] + weight[2] * *below) /
                sum;
            fx[j] = 2 * flux - fx[j];
            fy[i] = 2 * flux - fy[i];
            *below = 2 * flux - *below;
            double error = fabs(flux / right - 1);
            s->worst = error <= s->worst ? s->worst : error;
        }
    }
}

static void sweep_solve_block(struct sweep *s, struct kernel_run *run, const struct sweep_block *p)
{
    for (int d = 0; d < 2; d++) {
        int from = p->sign[d] > 0 ? s->plane.before[d] : s->plane.after[d];
        int count = ANGLE_BLOCK * p->planes * s->plane.count[1 - d];
        if (from == MPI_PROC_NULL)
            sweep_fill_face(s, p, d);
        else
            MPI_Recv(s->face[d], count, MPI_DOUBLE, from, d, run->comm, MPI_STATUS_IGNORE);
    }
    if (p->plane == 0)
        sweep_fill_below(s, p);
    for (int a = 0; a < ANGLE_BLOCK; a++)
        for (int k = 0; k < p->planes; k++)
            sweep_solve_plane(s, p, a, k);
    for (int d = 0; d < 2; d++)
        MPI_Send(s->face[d], ANGLE_BLOCK * p->planes * s->plane.count[1 - d], MPI_DOUBLE,
                 p->sign[d] > 0 ? s->plane.after[d] : s->plane.before[d], d, run->comm);
}

static void sweep_run_octants(struct sweep *s, struct kernel_run *run)
{
    struct sweep_block p;
    for (p.octant = 0; p.octant < 8; p.octant++) {
        for (int d = 0; d < 3; d++)
            p.sign[d] = p.octant >> d & 1 ? -1 : 1;
        for (p.angle = 0; p.angle < ANGLES; p.angle += ANGLE_BLOCK)
            for (p.plane = 0; p.plane < s->n; p.plane += PLANES) {
                p.planes = s->n - p.plane < PLANES ? s->n - p.plane : PLANES;
                sweep_solve_block(s, run, &p);
            }
    }
}

static bool sweep_accepts_ranks(int ranks, enum kernel_class class)
{
    int out[2];
    return kernel_divide_plane(ranks, problems[class].n, POINTS_MIN, out);
}

static void sweep_run(struct kernel_run *run, struct kernel_result *out)
{
    const struct problem *p = &problems[run->class];
    const double bound = 1e-10;
    struct sweep s;
    sweep_open(&s, run, p->n);
    double started = kernel_start(run);
    for (int it = 0; it < p->iterations; it++) {
        sweep_run_octants(&s, run);
        kernel_progress(run, it + 1, p->iterations);
    }
    kernel_stop(run, started, out);
    out->amount = 8.0 * ANGLES * p->iterations * pow(p->n, 3) * 1e-6;
    MPI_Allreduce(&s.worst, &out->error, 1, MPI_DOUBLE, MPI_MAX, run->comm);
    out->verified = out->error <= bound;
    sweep_close(&s);
}

const struct kernel kernel_sweep = {
    .name = "sweep",
    .doc = "particles through a cube; wavefronts from its eight corners, as sweep3D",
    .unit = "Mcell/s",
    .ranks = "any number that gives each rank at least one grid point in x and y",
    .accepts_ranks = sweep_accepts_ranks,
    .run = sweep_run,
};

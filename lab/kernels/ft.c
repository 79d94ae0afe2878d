/* ft.c: a partial differential equation by three-dimensional Fourier transforms [NPB94]. Each transform
 * transposes the whole array from planes of z to planes of y with one alltoall and so measures the bandwidth
 * from all ranks to all others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "random.h"

enum { SUMMANDS = 1024, ITERATIONS_MAX = 20 };

static const struct {
    int n[3], iterations;
    double sums[ITERATIONS_MAX][2];
} classes[CLASS_COUNT] = {
    [CLASS_S] = {{64, 64, 64},
                 6,
                 {{5.546087004964e+02, 4.845363331978e+02},
                  {5.546385409189e+02, 4.865304269511e+02},
                  {5.546148406171e+02, 4.883910722336e+02},
                  {5.545423607415e+02, 4.901273169046e+02},
                  {5.544255039624e+02, 4.917475857993e+02},
                  {5.542683411902e+02, 4.932597244941e+02}}},
    [CLASS_W] = {{128, 128, 32},
                 6,
                 {{5.673612178944e+02, 5.293246849175e+02},
                  {5.631436885271e+02, 5.282149986629e+02},
                  {5.594024089970e+02, 5.270996558037e+02},
                  {5.560698047020e+02, 5.260027904925e+02},
                  {5.530898991250e+02, 5.249400845633e+02},
                  {5.504159734538e+02, 5.239212247086e+02}}},
    [CLASS_A] = {{256, 256, 128},
                 6,
                 {{5.046735008193e+02, 5.114047905510e+02},
                  {5.059412319734e+02, 5.098809666433e+02},
                  {5.069376896287e+02, 5.098144042213e+02},
                  {5.077892868474e+02, 5.101336130759e+02},
                  {5.085233095391e+02, 5.104914655194e+02},
                  {5.091487099959e+02, 5.107917842803e+02}}},
    [CLASS_B] = {{512, 256, 256},
                 20,
                 {{5.177643571579e+02, 5.077803458597e+02}, {5.154521291263e+02, 5.088249431599e+02},
                  {5.146409228649e+02, 5.096208912659e+02}, {5.142378756213e+02, 5.101023387619e+02},
                  {5.139626667737e+02, 5.103976610617e+02}, {5.137423460082e+02, 5.105948019802e+02},
                  {5.135547056878e+02, 5.107404165783e+02}, {5.133910925466e+02, 5.108576573661e+02},
                  {5.132470705390e+02, 5.109577278523e+02}, {5.131197729984e+02, 5.110460304483e+02},
                  {5.130070319283e+02, 5.111252433800e+02}, {5.129070537032e+02, 5.111968077718e+02},
                  {5.128182883502e+02, 5.112616233064e+02}, {5.127393733383e+02, 5.113203605551e+02},
                  {5.126691062020e+02, 5.113735928093e+02}, {5.126064276004e+02, 5.114218460548e+02},
                  {5.125504076570e+02, 5.114656139760e+02}, {5.125002331720e+02, 5.115053595966e+02},
                  {5.124551951846e+02, 5.115415130407e+02}, {5.124146770029e+02, 5.115744692211e+02}}},
};

struct complex {
    double re, im;
};

/* In planes a point has the index x + nx (y + ny z), z from z0; transposed, z + nz (x + nx y), y from y0. */
struct transform {
    struct kernel_run *run;
    int nx, ny, nz;
    int planes, z0, lines, y0;
    size_t points; /* points of this rank; the number is the same in planes and in lines */
    struct complex *wave, *work, *scratch, *turn;
    struct complex *roots[3]; /* exp(-2 pi i k / n) for each dimension */
    double *factor;           /* factor of each wave for one time step */
};

/* Stockham transforms of length n of `batch` interleaved sequences: no bit reversal, and the innermost loop
 * accesses consecutive memory. The result is in data; scratch has the same size. sign is -1 or 1. */
static void ft_transform_batch(struct complex *data, struct complex *scratch, int n, int batch,
                               const struct complex *roots, int sign)
{
    struct complex *from = data, *to = scratch;
    for (int half = n / 2, step = 1; half >= 1; half /= 2, step *= 2) {
        size_t run = (size_t)step * (size_t)batch;
        for (int p = 0; p < half; p++) {
            const struct complex *a = from + (size_t)p * run, *b = a + (size_t)half * run;
            struct complex *low = to + 2 * (size_t)p * run, *high = low + run, w = roots[p * step];
            w.im *= -sign;
            for (size_t q = 0; q < run; q++) {
                double re = a[q].re - b[q].re, im = a[q].im - b[q].im;
                low[q] = (struct complex){a[q].re + b[q].re, a[q].im + b[q].im};
                high[q] = (struct complex){re * w.re - im * w.im, re * w.im + im * w.re};
            }
        }
        struct complex *swap = from;
        from = to;
        to = swap;
    }
    if (from != data)
        memcpy(data, from, (size_t)n * (size_t)batch * sizeof(*data));
}

static void ft_transform_planes(struct transform *t, struct complex *u, int sign)
{
    size_t plane = (size_t)t->nx * (size_t)t->ny;
    for (int z = 0; z < t->planes; z++) {
        for (int y = 0; y < t->ny; y++)
            ft_transform_batch(u + (size_t)z * plane + (size_t)y * (size_t)t->nx, t->scratch, t->nx, 1,
                               t->roots[0], sign);
        ft_transform_batch(u + (size_t)z * plane, t->scratch, t->ny, t->nx, t->roots[1], sign);
    }
}

static void ft_transform_lines(struct transform *t, struct complex *u, int sign)
{
    for (size_t at = 0; at < t->points; at += (size_t)t->nz)
        ft_transform_batch(u + at, t->scratch, t->nz, 1, t->roots[2], sign);
}

static void ft_exchange(struct transform *t, struct complex *from, struct complex *to)
{
    int count = (int)(2 * t->points / (size_t)t->run->size);
    MPI_Alltoall(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, t->run->comm);
}

/* Transposes planes to lines. The blocks that ranks exchange have the index x + nx (z + planes y). */
static void ft_transpose_to_lines(struct transform *t, struct complex *u)
{
    for (int z = 0; z < t->planes; z++)
        for (int y = 0; y < t->ny; y++)
            memcpy(t->turn + (size_t)t->nx * (size_t)(z + t->planes * y),
                   u + (size_t)t->nx * (size_t)(y + t->ny * z), (size_t)t->nx * sizeof(*u));
    ft_exchange(t, t->turn, t->work);
    size_t block = t->points / (size_t)t->run->size;
    for (int y = 0; y < t->lines; y++)
        for (int x = 0; x < t->nx; x++)
            for (int z = 0; z < t->nz; z++)
                u[(size_t)z + (size_t)t->nz * (size_t)(x + t->nx * y)] =
                    t->work[(size_t)(z / t->planes) * block + (size_t)x +
                            (size_t)t->nx * (size_t)(z % t->planes + t->planes * y)];
}

static void ft_transpose_to_planes(struct transform *t, struct complex *u)
{
    size_t block = t->points / (size_t)t->run->size;
    for (int y = 0; y < t->lines; y++)
        for (int x = 0; x < t->nx; x++)
            for (int z = 0; z < t->nz; z++)
                t->turn[(size_t)(z / t->planes) * block + (size_t)x +
                        (size_t)t->nx * (size_t)(z % t->planes + t->planes * y)] =
                    u[(size_t)z + (size_t)t->nz * (size_t)(x + t->nx * y)];
    ft_exchange(t, t->turn, t->work);
    for (int z = 0; z < t->planes; z++)
        for (int y = 0; y < t->ny; y++)
            memcpy(u + (size_t)t->nx * (size_t)(y + t->ny * z),
                   t->work + (size_t)t->nx * (size_t)(z + t->planes * y), (size_t)t->nx * sizeof(*u));
}

static void ft_fill(struct transform *t)
{
    uint64_t seed = random_skip(314159265, 2 * (uint64_t)t->z0 * (uint64_t)t->nx * (uint64_t)t->ny);
    for (size_t i = 0; i < t->points; i++) {
        t->wave[i].re = random_next(&seed);
        t->wave[i].im = random_next(&seed);
    }
}

/* Square of the wave number, counted from -n/2. */
static double ft_wave_square(int k, int n)
{
    int centred = (k + n / 2) % n - n / 2;
    return (double)centred * centred;
}

static void ft_make_factors(struct transform *t)
{
    const double alpha = 1e-6;
    for (int y = 0; y < t->lines; y++)
        for (int x = 0; x < t->nx; x++)
            for (int z = 0; z < t->nz; z++)
                t->factor[(size_t)z + (size_t)t->nz * (size_t)(x + t->nx * y)] = exp(
                    -4 * alpha * M_PI * M_PI *
                    (ft_wave_square(x, t->nx) + ft_wave_square(t->y0 + y, t->ny) + ft_wave_square(z, t->nz)));
}

/* Sums 1024 points of u that are spread over the whole array. */
static void ft_sum_sample_points(struct transform *t, const struct complex *u, double sum[2])
{
    double mine[2] = {0}, total = (double)t->nx * t->ny * t->nz;
    for (int j = 1; j <= SUMMANDS; j++) {
        int x = j % t->nx, y = 3 * j % t->ny, z = 5 * j % t->nz - t->z0;
        if (z < 0 || z >= t->planes)
            continue;
        const struct complex *at = &u[(size_t)x + (size_t)t->nx * (size_t)(y + t->ny * z)];
        mine[0] += at->re / total;
        mine[1] += at->im / total;
    }
    MPI_Allreduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, t->run->comm);
}

static struct complex *ft_make_roots(struct kernel_run *run, int n)
{
    struct complex *roots = kernel_alloc(run, (size_t)n * sizeof(*roots));
    for (int k = 0; k < n; k++)
        roots[k] = (struct complex){cos(2 * M_PI * k / n), -sin(2 * M_PI * k / n)};
    return roots;
}

static void ft_open(struct transform *t, struct kernel_run *run)
{
    const int *n = classes[run->class].n;
    *t = (struct transform){.run = run, .nx = n[0], .ny = n[1], .nz = n[2]};
    t->planes = t->nz / run->size;
    t->z0 = t->planes * run->rank;
    t->lines = t->ny / run->size;
    t->y0 = t->lines * run->rank;
    t->points = (size_t)t->nx * (size_t)t->ny * (size_t)t->planes;
    size_t bytes = t->points * sizeof(struct complex), plane = (size_t)t->nx * (size_t)t->ny;
    t->wave = kernel_alloc(run, bytes);
    t->work = kernel_alloc(run, bytes);
    t->turn = kernel_alloc(run, bytes);
    t->scratch = kernel_alloc(run, (plane > (size_t)t->nz ? plane : (size_t)t->nz) * sizeof(struct complex));
    t->factor = kernel_alloc(run, t->points * sizeof(*t->factor));
    for (int d = 0; d < 3; d++)
        t->roots[d] = ft_make_roots(run, n[d]);
}

static void ft_close(struct transform *t)
{
    free(t->wave);
    free(t->work);
    free(t->turn);
    free(t->scratch);
    free(t->factor);
    for (int d = 0; d < 3; d++)
        free(t->roots[d]);
}

/* Transforms the initial values to waves. */
static void ft_transform_initial_values(struct transform *t)
{
    ft_fill(t);
    ft_make_factors(t);
    ft_transform_planes(t, t->wave, -1);
    ft_transpose_to_lines(t, t->wave);
    ft_transform_lines(t, t->wave, -1);
}

static void ft_run(struct kernel_run *run, struct kernel_result *out)
{
    struct transform t;
    int iterations = classes[run->class].iterations;
    ft_open(&t, run);
    struct complex *now = kernel_alloc(run, t.points * sizeof(*now));
    ft_transform_initial_values(&t); /* untimed, as in the original: touches all memory */
    double sum[2], started = kernel_start(run);
    ft_transform_initial_values(&t);
    for (int i = 0; i < iterations; i++) {
        for (size_t k = 0; k < t.points; k++) {
            t.wave[k].re *= t.factor[k];
            t.wave[k].im *= t.factor[k];
            now[k] = t.wave[k];
        }
        ft_transform_lines(&t, now, 1);
        ft_transpose_to_planes(&t, now);
        ft_transform_planes(&t, now, 1);
        ft_sum_sample_points(&t, now, sum);
        kernel_verify_value(out, sum[0], classes[run->class].sums[i][0], 1e-12);
        kernel_verify_value(out, sum[1], classes[run->class].sums[i][1], 1e-12);
        kernel_progress(run, i + 1, iterations);
    }
    kernel_stop(run, started, out);
    double total = (double)t.nx * t.ny * t.nz;
    /* A transform of N points counts as 5 N log2 N operations, a time step as 2 N. */
    out->amount = (5 * total * log2(total) * (iterations + 1) + 2 * total * iterations) * 1e-6;
    free(now);
    ft_close(&t);
}

/* Every rank needs at least one plane of z and one plane of y. */
static bool ft_accepts_ranks(int ranks, enum kernel_class class)
{
    return kernel_is_power_of_two(ranks) && ranks <= classes[class].n[1] && ranks <= classes[class].n[2];
}

const struct kernel kernel_ft = {
    .name = "ft",
    .doc = "Fourier transforms of a cube; each sends the whole array in one MPI_Alltoall",
    .unit = "Mflop/s",
    .ranks = "powers of two up to the number of planes",
    .accepts_ranks = ft_accepts_ranks,
    .run = ft_run,
};

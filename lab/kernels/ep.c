/* ep.c: "embarrassingly parallel": pairs of Gaussian deviates by the polar method, their sums, and the number
 * of pairs in each square ring [NPB94]. Nearly no communication: the time is that of the processor and of the
 * start of a job.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>

#include "kernels.h"
#include "random.h"

enum { RINGS = 10, BATCH = 1 << 16 };

static const struct {
    int log2_pairs;
    double x, y;
} classes[CLASS_COUNT] = {
    [CLASS_S] = {24, -3.247834652034740e+3, -6.958407078382297e+3},
    [CLASS_W] = {25, -2.863319731645753e+3, -6.320053679109499e+3},
    [CLASS_A] = {28, -4.295875165629892e+3, -1.580732573678431e+4},
    [CLASS_B] = {30, 4.033815542441498e+4, -2.660669192809235e+4},
};

/* Sums of the deviates, then the number of pairs in each ring. */
struct tally {
    double x, y, ring[RINGS];
};

static void ep_tally_batch(struct tally *t, uint64_t seed, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        double x = 2 * random_next(&seed) - 1, y = 2 * random_next(&seed) - 1;
        double square = x * x + y * y;
        if (square > 1)
            continue;
        double scale = sqrt(-2 * log(square) / square);
        x *= scale;
        y *= scale;
        t->x += x;
        t->y += y;
        int ring = (int)fmax(fabs(x), fabs(y));
        if (ring < RINGS)
            t->ring[ring]++;
    }
}

static void ep_run(struct kernel_run *run, struct kernel_result *out)
{
    const uint64_t seed = 271828183, pairs = UINT64_C(1) << classes[run->class].log2_pairs;
    const int batches = (int)(pairs / BATCH);
    struct tally mine = {0}, all;
    double started = kernel_start(run);
    for (int b = run->rank; b < batches; b += run->size) {
        ep_tally_batch(&mine, random_skip(seed, 2 * (uint64_t)b * BATCH), BATCH);
        kernel_progress(run, b, batches);
    }
    MPI_Allreduce(&mine, &all, sizeof(all) / sizeof(double), MPI_DOUBLE, MPI_SUM, run->comm);
    kernel_stop(run, started, out);
    out->amount = (double)pairs * 1e-6;
    kernel_verify_value(out, all.x, classes[run->class].x, 1e-8);
    kernel_verify_value(out, all.y, classes[run->class].y, 1e-8);
}

const struct kernel kernel_ep = {
    .name = "ep",
    .doc = "Gaussian pairs from random numbers; one reduction at the end",
    .unit = "Mpair/s",
    .ranks = "any number",
    .run = ep_run,
};

/* forced_report.c: --forced: compares the library's own choice of a protocol with the best forced one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

static double forced_median(const double *values)
{
    struct bench_stats s;
    double sorted[BENCH_ROUNDS];
    memcpy(sorted, values, sizeof(sorted));
    bench_stats_compute(sorted, BENCH_ROUNDS, 1, &s);
    return s.median;
}

/* Finds the forced protocol with the lowest median time; returns the median ratio of auto's time to it. */
static double forced_compute_ratio(const struct bench_forced *f, int *best)
{
    double ratios[BENCH_ROUNDS];
    *best = 1;
    for (int k = 2; k < f->n; k++)
        if (forced_median(f->time[k]) < forced_median(f->time[*best]))
            *best = k;
    for (int r = 0; r < BENCH_ROUNDS; r++)
        ratios[r] = f->time[0][r] / f->time[*best][r];
    return forced_median(ratios);
}

/* Returns the median relative change of a protocol's time from one round to the next: smaller differences
 * between protocols are noise. */
static double forced_noise(const double *times)
{
    double ratios[BENCH_ROUNDS];
    for (int r = 0; r < BENCH_ROUNDS; r++) {
        const double a = times[r], z = times[(r + 1) % BENCH_ROUNDS];
        ratios[r] = a > z ? a / z : z / a;
    }
    return forced_median(ratios) - 1;
}

void bench_forced_text(const struct bench_forced *f, FILE *out)
{
    int best;
    const double ratio = forced_compute_ratio(f, &best);
    fprintf(out, "  auto / best forced (%s): %.2f; that one from round to round: +-%.0f %%; times of auto:",
            f->name[best], ratio, 100 * forced_noise(f->time[best]));
    for (int k = 1; k < f->n; k++)
        fprintf(out, "  %s %.2f", f->name[k], forced_median(f->time[k]) / forced_median(f->time[0]));
    fputc('\n', out);
}

void bench_forced_json(const struct bench_forced *f, struct json *j)
{
    int best;
    const double ratio = forced_compute_ratio(f, &best);
    json_object(j, "forced");
    json_members(j, "best=%s ratio=%g noise=%g", f->name[best], ratio, forced_noise(f->time[best]));
    json_object(j, "times");
    for (int k = 0; k < f->n; k++)
        json_real(j, f->name[k], forced_median(f->time[k]) / forced_median(f->time[0]));
    json_end(j);
    json_end(j);
}

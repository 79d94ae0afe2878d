/* measure.c: measures the time of one operation. Batches are made so long that the clock's own cost is
 * negligible, and repeated until the time is spent. All ranks use the times of rank 0, so that they agree on
 * the number of calls.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli/number.h"

/* Shortest batches in seconds. Two clock reads (tens of ns) are negligible in batch_pair. A batch of
 * collectives is longer, because ranks leave the barrier before it at different times. */
static const double batch_pair = 100e-6, batch_all = 1e-3;

enum { ITERATIONS_MAX = 1 << 20, SAMPLES_MIN = 10, ALL_ITERATIONS_MIN = 10, LOOK_EVERY = 20 };

void bench_stats_compute(double *samples, int n, int iterations, struct bench_stats *out)
{
    number_sort(samples, (size_t)n);
    int p99 = (int)ceil(0.99 * n) - 1;
    *out = (struct bench_stats){.min = samples[0],
                                .median = samples[n / 2],
                                .p99 = samples[p99 < 0 ? 0 : p99],
                                .samples = n,
                                .iterations = iterations};
}

void bench_stats_divide(struct bench_stats *s, int n)
{
    s->min /= n;
    s->median /= n;
    s->p99 /= n;
}

/* Returns the elapsed seconds of one batch. */
static double run_batch(MPI_Comm comm, bool worst, void (*batch)(void *arg, int n), void *arg, int n)
{
    if (worst)
        MPI_Barrier(comm);
    double start = MPI_Wtime();
    batch(arg, n);
    return MPI_Wtime() - start;
}

/* Lengthens the batch until it takes `target` seconds, including untimed parts: a root that only sends
 * spends a hundredth of the time inside its calls. The shorter batches are the warm-up. */
static int measure_calibrate_batch(MPI_Comm comm, bool worst, void (*batch)(void *arg, int n), void *arg,
                                   double target, double *took)
{
    int n = worst ? ALL_ITERATIONS_MIN : 1;
    for (int round = 0;; round++) {
        double t = run_batch(comm, worst, batch, arg, n);
        MPI_Bcast(&t, 1, MPI_DOUBLE, 0, comm);
        if ((t >= target && round >= 2) || n >= ITERATIONS_MAX) {
            *took = t;
            return n;
        }
        if (t < target) {
            double grow = t > 0 ? target / t * 1.1 : 8;
            n = (int)(n * (grow > 8 ? 8 : grow)) + 1;
        }
    }
}

/* True if the measurement takes more than twice its time: on a busy machine batches may take far longer
 * than the one that determined their number. */
static bool measure_is_over(MPI_Comm comm, double start, double seconds)
{
    int enough = MPI_Wtime() - start > 2 * seconds;
    MPI_Bcast(&enough, 1, MPI_INT, 0, comm);
    return enough;
}

void bench_progress(struct bench *b, double part)
{
    if (b->rank == 0 && b->report)
        progress_report(&b->progress, b->steps_done + part, b->steps, "%d figures", b->figures);
}

void bench_measure(struct bench *b, MPI_Comm comm, bool worst, void (*batch)(void *arg, int n), void *arg,
                   struct bench_stats *out)
{
    int rank;
    double took;
    MPI_Comm_rank(comm, &rank);
    int n = measure_calibrate_batch(comm, worst, batch, arg, worst ? batch_all : batch_pair, &took);
    double wanted = b->options.seconds / (took > 0 ? took : 1e-9);
    int count = wanted > BENCH_SAMPLES_MAX ? BENCH_SAMPLES_MAX
                : wanted < SAMPLES_MIN     ? SAMPLES_MIN
                                           : (int)wanted;

    double *mine = malloc(sizeof(*mine) * 2 * (size_t)count);
    if (!mine)
        MPI_Abort(b->comm, 1);
    double *all = mine + count;
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        const double whole = run_batch(comm, worst, batch, arg, n);
        mine[i] = (b->times_itself ? b->own_time : whole) / n;
        if ((i + 1) % LOOK_EVERY == 0 && measure_is_over(comm, start, b->options.seconds))
            count = i + 1;
        bench_progress(b, (double)i / count);
    }
    if (worst)
        MPI_Reduce(mine, all, count, MPI_DOUBLE, MPI_MAX, 0, comm);
    else
        memcpy(all, mine, sizeof(*mine) * (size_t)count);
    if (rank == 0)
        bench_stats_compute(all, count, n, out);
    free(mine);
}

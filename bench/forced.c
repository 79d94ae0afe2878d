/* forced.c: --forced compares the library's own choice of protocol for large messages with each forced
 * protocol, in one run and with the same buffers. The protocols take turns in rounds, so that drift of the
 * machine and buffer placement affect all of them alike; between separate runs these differ by more than the
 * protocols do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* the first half of a turn is not counted: caches still hold the data of the previous protocol */
enum { BATCHES_MIN = 8, SKIPPED_PART = 2 };

/* Sets the MPI_T control variable RENDEZVOUS to the protocol with this name; false if it does not exist. */
static bool forced_set_protocol(const char *name)
{
    int provided, index, count, items, value, length;
    MPI_T_enum kinds;
    MPI_T_cvar_handle handle;
    bool found = false;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return false;
    if (MPI_T_cvar_get_index("RENDEZVOUS", &index) == MPI_SUCCESS &&
        MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, &kinds, NULL, NULL, NULL, NULL) == MPI_SUCCESS &&
        MPI_T_enum_get_info(kinds, &items, NULL, NULL) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
        for (int i = 0; i < items && !found; i++) {
            char text[32] = "";
            length = sizeof(text);
            MPI_T_enum_get_item(kinds, i, &value, text, &length);
            found = strcmp(text, name) == 0 && MPI_T_cvar_write(handle, &value) == MPI_SUCCESS;
        }
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    return found;
}

bool bench_forced_parse(struct bench_forced *f, const char *text)
{
    *f = (struct bench_forced){.n = 1, .name = {"auto"}};
    while (*text && f->n < BENCH_FORCED_MAX) {
        size_t len = strcspn(text, ",");
        if (len == 0 || len >= sizeof(f->name[0]))
            return false;
        memcpy(f->name[f->n], text, len);
        f->name[f->n++][len] = 0;
        text += len + (text[len] == ',');
    }
    return f->n > 1 && *text == 0;
}

/* Shuffles the protocols for a round, in the same way on all ranks. Each measurement affects the next one,
 * so no protocol may always have the same predecessor. */
static void forced_shuffle(int *order, int n, unsigned round)
{
    unsigned state = round * 2654435761u + 1;
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        const int k = (int)((state >> 16) % (unsigned)(i + 1)), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* Measures one turn of a protocol; returns the median of its batches in seconds per operation. */
static double forced_measure_turn(struct bench *b, void (*batch)(void *arg, int n), void *arg, int n,
                                  int count, double *samples)
{
    struct bench_stats s;
    const int skipped = count / SKIPPED_PART;
    MPI_Barrier(b->team);
    for (int i = 0; i < count; i++) {
        double start = MPI_Wtime();
        batch(arg, n);
        if (i >= skipped)
            samples[i - skipped] = (MPI_Wtime() - start) / n;
    }
    bench_stats_compute(samples, count - skipped, n, &s);
    return s.median;
}

void bench_forced_measure(struct bench *b, void (*batch)(void *arg, int n), void *arg,
                          struct bench_stats *out)
{
    struct bench_forced *f = &b->options.forced;
    const double total = b->options.seconds;
    /* this measurement is also the warm-up, in which the library's tuner chooses */
    b->options.seconds = total / BENCH_ROUNDS;
    bench_measure(b, b->team, false, batch, arg, out);
    b->options.seconds = total;
    int plan[2] = {0};
    if (b->rank == 0) { /* the other ranks have no result */
        plan[0] = out->iterations;
        plan[1] = (int)(total / BENCH_ROUNDS / (out->median * out->iterations));
    }
    MPI_Bcast(plan, 2, MPI_INT, 0, b->team);
    const int count = plan[1] < BATCHES_MIN         ? BATCHES_MIN
                      : plan[1] > BENCH_SAMPLES_MAX ? BENCH_SAMPLES_MAX
                                                    : plan[1];
    double *samples = malloc(sizeof(*samples) * (size_t)count), mine[BENCH_ROUNDS];
    if (!samples)
        MPI_Abort(b->comm, 1);
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        int order[BENCH_FORCED_MAX];
        forced_shuffle(order, f->n, (unsigned)round);
        for (int i = 0; i < f->n; i++) {
            const int k = order[i];
            if (!forced_set_protocol(f->name[k]) && !b->failed) {
                bench_report_note(b, "--forced: this MPI library has no protocol '%s' to choose.",
                                  f->name[k]);
                b->failed = true;
            }
            f->time[k][round] = forced_measure_turn(b, batch, arg, plan[0], count, samples);
            bench_progress(b, (double)(round * f->n + i + 1) / (BENCH_ROUNDS * f->n));
        }
    }
    forced_set_protocol("auto");
    memcpy(mine, f->time[0], sizeof(mine));
    bench_stats_compute(mine, BENCH_ROUNDS, plan[0], out);
    f->measured = true;
    free(samples);
}

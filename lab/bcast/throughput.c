/* throughput.c: number of consecutive broadcasts per second [Liu04 fig. 7.8].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bcast.h"

#include <stdio.h>
#include <stdlib.h>

enum { PASSES = 7, CALLS = 400, CALLS_QUICK = 60 };

static const long sizes[] = {4, 64, 256, 1024}, quick_sizes[] = {64};

static int throughput_select_sizes(bool quick, const long **list)
{
    *list = quick ? quick_sizes : sizes;
    return quick ? sizeof(quick_sizes) / sizeof(quick_sizes[0]) : sizeof(sizes) / sizeof(sizes[0]);
}

/* Measures broadcasts per second; the clock stops when the last rank has received all of them. */
static double throughput_measure_rate(const struct ib_rank *r, char *data, long bytes, int calls)
{
    MPI_Barrier(r->bench.comm);
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        MPI_Bcast(data, (int)bytes, MPI_BYTE, 0, r->bench.comm);
    return calls / ib_max_over_ranks(r, MPI_Wtime() - start);
}

static void throughput_run_rank(struct ib_rank *r)
{
    const int passes = r->quick ? 3 : PASSES, calls = r->quick ? CALLS_QUICK : CALLS;
    const long *list;
    const int n = throughput_select_sizes(r->quick, &list);
    char *data = bench_alloc((size_t)list[n - 1]);
    for (int i = 0; i < n; i++) {
        double sample[PASSES];
        bcast_check_data(r, data, (int)list[i]);
        for (int p = 0; p < passes; p++)
            sample[p] = throughput_measure_rate(r, data, list[i], calls);
        ib_report_figure(r, IB_RATE, bcast_median(sample, passes), "rate.%ld", list[i]);
    }
    bcast_report_counters(r);
    free(data);
}

static void throughput_print_tables(struct ib_driver *d)
{
    static const char title[] = "Throughput of MPI_Bcast, thousands in a second, 8 nodes [Liu04 fig. 7.8]";
    const long *list;
    const int n = throughput_select_sizes(d->quick, &list);
    double most[BCAST_DESIGNS] = {0};
    struct bcast_figures f;
    bcast_run_jobs(d, "throughput", BCAST_ALL, &f);
    struct ib_table *t =
        ib_table_open(d, title,
                      "Basic is the worst, Window much better than Original, Aggregate10 up to 112 % better "
                      "than Original.");
    struct ib_curves c = {
        .id = "7.8", .title = title, .x_name = "bytes", .y_name = "thousands in a second", .points = n};
    char figure[32] = "";
    ib_table_add_column(t, "bytes");
    bcast_add_columns(t, &f);
    for (int k = 0; k < n; k++) {
        const double original = ib_find_figure(f.figures[BCAST_ORIGINAL], "rate.%ld", list[k]);
        ib_table_add_cell(t, "%ld", list[k]);
        c.x[k] = (double)list[k];
        snprintf(figure, sizeof(figure), "rate.%ld", list[k]);
        bcast_add_row(t, &f, &c, k, 1e-3, 2, figure);
        for (int i = 0; i < BCAST_DESIGNS; i++) {
            const double rate = ib_find_figure(f.figures[i], "rate.%ld", list[k]);
            if (k == 0 || bcast_gain_percent(rate, original) > most[i])
                most[i] = bcast_gain_percent(rate, original);
        }
    }
    ib_table_add_remark(
        t,
        "at most, against Original: Basic %+.0f %%, Window %+.0f %%, Co-root2 %+.0f %%, Aggregate10 "
        "%+.0f %%.",
        most[BCAST_BASIC], most[BCAST_WINDOW], most[BCAST_COROOT], most[BCAST_AGGREGATE]);
    bcast_print_counters(t, &f);
    bcast_print_peers(t, d, &f, "rate.64", "64 bytes", true);
    ib_table_close(t);
    ib_draw_curves(d, &c);
    bcast_figures_free(&f);
}

const struct ib_topic bcast_throughput = {.name = "throughput",
                                          .doc = "broadcasts one after the other (fig. 7.8)",
                                          .rank = throughput_run_rank,
                                          .tables = throughput_print_tables};

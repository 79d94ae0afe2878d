/* latency.c: time from the start of a broadcast until a receiver has it [Liu04 figs. 7.5 and 7.6]. As in the
 * paper, the receivers take turns to answer the root, and the time of the answer, which a ping-pong measures,
 * is subtracted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bcast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PASSES = 9, CALLS = 42, CALLS_QUICK = 14, LARGEST = 65536 };

static const long small_sizes[] = {4, 16, 64, 256, 1024}, quick_small[] = {64};
static const long large_sizes[] = {2048, 4096, 8192, 16384, 32768, 65536}, quick_large[] = {8192};

struct sizes {
    const long *list;
    int n;
};

static struct sizes latency_select_sizes(bool quick, bool large)
{
    if (quick)
        return (struct sizes){large ? quick_large : quick_small, 1};
    return large ? (struct sizes){large_sizes, sizeof(large_sizes) / sizeof(large_sizes[0])}
                 : (struct sizes){small_sizes, sizeof(small_sizes) / sizeof(small_sizes[0])};
}

/* Measures the one-way time in seconds of an empty message between the root and each receiver in turn. */
static double latency_time_one_way(const struct ib_rank *r, int calls)
{
    const int others = r->bench.size - 1, rank = r->bench.rank;
    MPI_Barrier(r->bench.comm);
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        const int peer = i % others + 1;
        if (rank == 0) {
            MPI_Send(NULL, 0, MPI_BYTE, peer, 1, r->bench.comm);
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, r->bench.comm, MPI_STATUS_IGNORE);
        } else if (rank == peer) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, r->bench.comm, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, 0, 1, r->bench.comm);
        }
    }
    return (MPI_Wtime() - start) / calls / 2;
}

/* Measures the seconds of a broadcast and the answer of one receiver. */
static double latency_time_answered_broadcast(const struct ib_rank *r, char *data, int bytes, int calls)
{
    const struct bench *bench = &r->bench;
    const int others = bench->size - 1;
    MPI_Barrier(bench->comm);
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        const int peer = i % others + 1;
        MPI_Bcast(data, bytes, MPI_BYTE, 0, bench->comm);
        if (bench->rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 2, bench->comm, MPI_STATUS_IGNORE);
        else if (bench->rank == peer)
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, bench->comm);
    }
    return (MPI_Wtime() - start) / calls;
}

static void latency_measure(struct ib_rank *r, char *data, long bytes)
{
    double sample[PASSES];
    const int passes = r->quick ? 3 : PASSES, calls = r->quick ? CALLS_QUICK : CALLS;
    bcast_check_data(r, data, (int)bytes);
    for (int p = 0; p < passes; p++) {
        const double answer = latency_time_one_way(r, calls);
        sample[p] = latency_time_answered_broadcast(r, data, (int)bytes, calls) - answer;
    }
    ib_report_figure(r, IB_TIME, bcast_median(sample, passes) * 1e6, "us.%ld", bytes);
}

static void latency_run_rank(struct ib_rank *r)
{
    char *data = bench_alloc(LARGEST);
    for (int large = 0; large < 2; large++) {
        const struct sizes s = latency_select_sizes(r->quick, large);
        for (int i = 0; i < s.n; i++)
            latency_measure(r, data, s.list[i]);
    }
    bcast_report_counters(r);
    free(data);
}

struct figure {
    const char *id, *title, *paper;
    bool large;
};

static void latency_print_table(struct ib_driver *d, const struct bcast_figures *f,
                                const struct figure *about)
{
    struct ib_table *t = ib_table_open(d, about->title, about->paper);
    const struct sizes s = latency_select_sizes(d->quick, about->large);
    struct ib_curves c = {
        .id = about->id, .title = about->title, .x_name = "bytes", .y_name = "us", .points = s.n};
    char figure[32];
    double best = -INFINITY;
    long where = 0;
    ib_table_add_column(t, "bytes");
    bcast_add_columns(t, f);
    for (int k = 0; k < s.n; k++) {
        ib_table_add_cell(t, "%ld", s.list[k]);
        c.x[k] = (double)s.list[k];
        snprintf(figure, sizeof(figure), "us.%ld", s.list[k]);
        bcast_add_row(t, f, &c, k, 1, 1, figure);
        const double gain = bcast_gain_percent(c.y[BCAST_ORIGINAL][k], c.y[BCAST_WINDOW][k]);
        if (s.list[k] == 2048 || s.list[k] == 8192)
            ib_table_add_remark(t, "Window is %+.0f %% better than Original at %ld bytes.", gain, s.list[k]);
        if (gain > best) {
            best = gain;
            where = s.list[k];
        }
    }
    ib_table_add_remark(t, "Window is at most %+.0f %% better than Original, at %ld bytes.", best, where);
    bcast_print_counters(t, f);
    bcast_print_peers(t, d, f, s.list[0] < 2048 ? "us.64" : "us.8192",
                      s.list[0] < 2048 ? "64 bytes" : "8 KiB", false);
    ib_table_close(t);
    ib_draw_curves(d, &c);
}

static void latency_print_tables(struct ib_driver *d)
{
    static const struct figure small = {
        "7.5", "Latency of MPI_Bcast in us, small messages, 8 nodes [Liu04 fig. 7.5]",
        "all designs with multicast are alike, since acknowledgements come in the background; up to 58 % "
        "better than Original.",
        false};
    static const struct figure large = {
        "7.6", "Latency of MPI_Bcast in us, large messages, 8 nodes [Liu04 fig. 7.6]",
        "Window is 210 % better than Original at 2 KiB, 86 % at 8 KiB, and better up to 32 KiB.", true};
    struct bcast_figures f;
    bcast_run_jobs(d, "latency", BCAST_ALL, &f);
    latency_print_table(d, &f, &small);
    latency_print_table(d, &f, &large);
    bcast_figures_free(&f);
}

const struct ib_topic bcast_latency = {.name = "latency",
                                       .doc = "until a broadcast has arrived, by size (figs. 7.5 and 7.6)",
                                       .rank = latency_run_rank,
                                       .tables = latency_print_tables};

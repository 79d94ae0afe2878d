/* skew.c: time that ranks spend in MPI_Bcast if each of them enters the call late by a random time [Liu04
 * fig. 7.7]. In a tree a late rank delays the ranks below it; a multicast packet waits for each rank in the
 * rank's own adapter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "bcast.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { PASSES = 9, CALLS = 40, CALLS_QUICK = 12, BYTES = 64 };

static const long skews[] = {0, 50, 100, 200, 300, 400}, quick_skews[] = {0, 400};

static int skew_select_delays(bool quick, const long **list)
{
    *list = quick ? quick_skews : skews;
    return quick ? sizeof(quick_skews) / sizeof(quick_skews[0]) : sizeof(skews) / sizeof(skews[0]);
}

/* Sleeps instead of spinning, so that the other ranks can use the core. */
static void skew_sleep(double us)
{
    const struct timespec t = {.tv_nsec = (long)(us * 1e3)};
    if (us > 0)
        nanosleep(&t, NULL);
}

/* Seconds in MPI_Bcast, mean of all receivers and calls, if each receiver is late by 0 to 2 * skew us. */
static double skew_time_in_bcast(const struct ib_rank *r, char *data, long skew, int calls,
                                 unsigned short random[3])
{
    double inside = 0;
    for (int i = 0; i < calls; i++) {
        MPI_Barrier(r->bench.comm);
        if (r->bench.rank > 0)
            skew_sleep(2 * (double)skew * erand48(random));
        const double start = MPI_Wtime();
        MPI_Bcast(data, BYTES, MPI_BYTE, 0, r->bench.comm);
        inside += r->bench.rank > 0 ? MPI_Wtime() - start : 0;
    }
    return ib_sum_over_ranks(r, inside) / calls / (r->bench.size - 1);
}

static void skew_run_rank(struct ib_rank *r)
{
    char data[BYTES];
    unsigned short random[3] = {1, 2, (unsigned short)r->bench.rank};
    const int passes = r->quick ? 3 : PASSES, calls = r->quick ? CALLS_QUICK : CALLS;
    const long *list;
    const int n = skew_select_delays(r->quick, &list);
    prctl(PR_SET_TIMERSLACK, 1000UL); /* ns; with the default slack a sleep takes 50 us longer */
    bcast_check_data(r, data, BYTES);
    for (int i = 0; i < n; i++) {
        double sample[PASSES];
        for (int p = 0; p < passes; p++)
            sample[p] = skew_time_in_bcast(r, data, list[i], calls, random);
        ib_report_figure(r, IB_TIME, bcast_median(sample, passes) * 1e6, "us.%ld", list[i]);
    }
    bcast_report_counters(r);
}

static void skew_print_tables(struct ib_driver *d)
{
    static const char title[] =
        "Time in MPI_Bcast in us, receivers late by a random time, 64 bytes, 8 nodes [Liu04 fig. 7.7]";
    const long *list;
    const int n = skew_select_delays(d->quick, &list);
    struct bcast_figures f;
    bcast_run_jobs(d, "skew", 1u << BCAST_ORIGINAL | 1u << BCAST_WINDOW, &f);
    struct ib_table *t = ib_table_open(
        d, title, "Original grows with the skew, Window is not affected: 10 times better at 400 us.");
    struct ib_curves c = {
        .id = "7.7", .title = title, .x_name = "mean skew, us", .y_name = "us", .points = n};
    const double *original = c.y[0], *window = c.y[1]; /* curves 0 and 1: the two designs of the mask */
    char figure[32] = "";
    ib_table_add_column(t, "mean skew, us");
    bcast_add_columns(t, &f);
    ib_table_add_column(t, "Original against Window");
    for (int i = 0; i < n; i++) {
        c.x[i] = (double)list[i];
        ib_table_add_cell(t, "%ld", list[i]);
        snprintf(figure, sizeof(figure), "us.%ld", list[i]);
        bcast_add_row(t, &f, &c, i, 1, 1, figure);
        ib_table_add_number(t, original[i] / window[i], 1);
    }
    ib_table_add_remark(
        t,
        "from no skew to %ld us Original goes from %.0f to %.0f us, Window from %.0f to %.0f us: %.1f "
        "times better.",
        list[n - 1], original[0], original[n - 1], window[0], window[n - 1], original[n - 1] / window[n - 1]);
    bcast_print_counters(t, &f);
    bcast_print_peers(t, d, &f, figure, "the longest skew", false);
    ib_table_close(t);
    ib_draw_curves(d, &c);
    bcast_figures_free(&f);
}

const struct ib_topic bcast_skew = {.name = "skew",
                                    .doc = "time in MPI_Bcast when ranks come late (fig. 7.7)",
                                    .rank = skew_run_rank,
                                    .tables = skew_print_tables};

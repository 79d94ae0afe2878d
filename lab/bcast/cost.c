/* cost.c: cost of a broadcast for its root by the number of nodes: processor time of its process, and time in
 * MPI_Bcast. An adapter sends a multicast packet once, whatever the number of members; in a tree the number
 * of messages that the root sends grows with the number of nodes. The root broadcasts as often as its window
 * permits and then sleeps, so that its adapter (in software: a thread of the process) delivers the packets
 * under way and the root spends no time on polling.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "bcast.h"

#include <stdio.h>
#include <time.h>

enum { PASSES = 15, CALLS = 30, BYTES = 64 };
static const long nodes[] = {2, 4, 8, 16}, quick_nodes[] = {2, 8};

static int cost_select_nodes(bool quick, const long **list)
{
    *list = quick ? quick_nodes : nodes;
    return quick ? sizeof(quick_nodes) / sizeof(quick_nodes[0]) : sizeof(nodes) / sizeof(nodes[0]);
}

static double cost_clock_seconds(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Measures seconds of one broadcast at the root: processor time and elapsed time. */
static void cost_time_pass(char *data, MPI_Comm among, bool is_root, double *processor, double *elapsed)
{
    const struct timespec settle = {.tv_nsec = 3000000};
    MPI_Barrier(among);
    const double cpu = cost_clock_seconds(CLOCK_PROCESS_CPUTIME_ID), start = MPI_Wtime();
    for (int i = 0; i < CALLS; i++)
        MPI_Bcast(data, BYTES, MPI_BYTE, 0, among);
    *elapsed = (MPI_Wtime() - start) / CALLS;
    if (is_root)
        nanosleep(&settle, NULL);
    *processor = (cost_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / CALLS;
    MPI_Barrier(among);
}

static void cost_measure(struct ib_rank *r, char *data, long n)
{
    double processor[PASSES], elapsed[PASSES];
    const int passes = r->quick ? 5 : PASSES;
    MPI_Comm among;
    MPI_Comm_split(r->bench.comm, r->bench.rank < n ? 0 : MPI_UNDEFINED, r->bench.rank, &among);
    if (among != MPI_COMM_NULL) {
        for (int p = 0; p < passes; p++)
            cost_time_pass(data, among, r->bench.rank == 0, &processor[p], &elapsed[p]);
        MPI_Comm_free(&among);
        ib_report_figure(r, IB_TIME, bcast_median(processor, passes) * 1e6, "processor.%ld", n);
        ib_report_figure(r, IB_TIME, bcast_median(elapsed, passes) * 1e6, "elapsed.%ld", n);
    }
    MPI_Barrier(r->bench.comm);
}

static void cost_run_rank(struct ib_rank *r)
{
    char data[BYTES];
    const long *list;
    const int n = cost_select_nodes(r->quick, &list);
    bcast_check_data(r, data, BYTES);
    for (int i = 0; i < n; i++)
        cost_measure(r, data, list[i]);
    bcast_report_counters(r);
}

static const struct cost_column {
    int design;
    const char *figure, *title;
} shown[] = {{BCAST_ORIGINAL, "processor", "Original, processor"},
             {BCAST_WINDOW, "processor", "Window, processor"},
             {BCAST_AGGREGATE, "processor", "Aggregate10, processor"},
             {BCAST_ORIGINAL, "elapsed", "Original, in the call"},
             {BCAST_WINDOW, "elapsed", "Window, in the call"},
             {BCAST_AGGREGATE, "elapsed", "Aggregate10, in the call"}};
enum { SHOWN = sizeof(shown) / sizeof(shown[0]) };

static void cost_print_tables(struct ib_driver *d)
{
    static const char title[] = "What a broadcast of 64 bytes costs its root, us, by nodes";
    const long *list;
    const int n = cost_select_nodes(d->quick, &list);
    const unsigned mask = 1u << BCAST_ORIGINAL | 1u << BCAST_WINDOW | 1u << BCAST_AGGREGATE;
    struct bcast_figures f;
    bcast_run_jobs_on_nodes(d, "cost", mask, (int)list[n - 1], &f);
    struct ib_table *t = ib_table_open(
        d, title, "has no figure of it; its text: the adapter takes the packet once and switches copy it.");
    struct ib_curves c = {
        .id = "cost", .title = title, .x_name = "nodes", .y_name = "us", .lines = SHOWN, .points = n};
    ib_table_add_column(t, "nodes");
    for (int i = 0; i < SHOWN; i++) {
        ib_table_add_column(t, "%s", shown[i].title);
        c.name[i] = shown[i].title;
    }
    for (int k = 0; k < n; k++) {
        ib_table_add_cell(t, "%ld", list[k]);
        c.x[k] = (double)list[k];
        for (int i = 0; i < SHOWN; i++) {
            c.y[i][k] = ib_find_figure(f.figures[shown[i].design], "%s.%ld", shown[i].figure, list[k]);
            ib_table_add_number(t, c.y[i][k], 2);
        }
    }
    for (int i = 0; i < SHOWN; i++)
        ib_table_add_remark(t, "%s: %+.2f us for each node more.", shown[i].title,
                            (c.y[i][n - 1] - c.y[i][0]) / (c.x[n - 1] - c.x[0]));
    bcast_print_counters(t, &f);
    ib_table_close(t);
    ib_draw_curves(d, &c);
    bcast_figures_free(&f);
}

const struct ib_topic bcast_cost = {.name = "cost",
                                    .doc = "what a broadcast costs its root, by nodes",
                                    .rank = cost_run_rank,
                                    .tables = cost_print_tables};

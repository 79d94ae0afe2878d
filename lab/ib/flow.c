/* flow.c: flow control [Liu04 chapter 5]: bandwidth of message windows smaller and larger than the number of
 * receive buffers, under the three schemes; number of explicit credit messages and of buffers for two traffic
 * patterns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "ib.h"

enum { WINDOW_MAX = 128, STEPS = 2000, STEPS_QUICK = 200, STEP_BYTES = 64 };
static const int windows[] = {1, 4, 10, 20, 50, 100};
static const size_t sizes[] = {4, 32 * KI};
enum { NWINDOWS = sizeof(windows) / sizeof(windows[0]) };

struct flow_stream {
    int me, bytes, window;
    bool blocking;
    char *buffer;
    MPI_Request requests[WINDOW_MAX];
};

/* Sends n windows of messages; the receiver replies once it has received a whole window. */
static void flow_run_windows(void *arg, int n)
{
    struct flow_stream *s = arg;
    for (int i = 0; i < n; i++) {
        for (int w = 0; w < s->window; w++) {
            char *at = s->buffer + (size_t)w * (size_t)s->bytes;
            if (s->blocking && s->me == 0)
                MPI_Send(at, s->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            else if (s->blocking)
                MPI_Recv(at, s->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            else if (s->me == 0)
                MPI_Isend(at, s->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &s->requests[w]);
            else
                MPI_Irecv(at, s->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &s->requests[w]);
        }
        if (!s->blocking)
            MPI_Waitall(s->window, s->requests, MPI_STATUSES_IGNORE);
        if (s->me == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
}

static void windows_run_rank(struct ib_rank *r)
{
    struct flow_stream s = {.me = r->bench.rank, .buffer = bench_alloc(WINDOW_MAX * 32 * KI)};
    for (int z = 0; z < 2; z++)
        for (int b = 0; b < 2; b++)
            for (int w = 0; w < NWINDOWS; w += r->quick ? 3 : 1) {
                struct bench_stats stats;
                s.bytes = (int)sizes[z];
                s.blocking = b == 1;
                s.window = windows[w];
                if (s.me == 0)
                    bench_fill(s.buffer, (size_t)s.window * sizes[z], (unsigned)(z + b + w));
                bench_measure(&r->bench, MPI_COMM_WORLD, false, flow_run_windows, &s, &stats);
                if (s.me == 1)
                    r->bench.errors +=
                        bench_check(s.buffer, (size_t)s.window * sizes[z], (unsigned)(z + b + w));
                ib_report_figure(r, IB_RATE, s.window * (double)sizes[z] / stats.min / 1e6, "bw.%zu.%d.%d",
                                 sizes[z], b, s.window);
            }
    free(s.buffer);
}

/* Asymmetric traffic: messages flow from the first rank to the last, as the wave fronts of LU do, and never
 * back. */
static void flow_run_pipeline(struct ib_rank *r, int steps)
{
    char work[STEP_BYTES] = {0};
    int me = r->bench.rank, last = r->bench.size - 1;
    for (int i = 0; i < steps; i++) {
        if (me > 0)
            MPI_Recv(work, STEP_BYTES, MPI_BYTE, me - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (me < last)
            MPI_Send(work, STEP_BYTES, MPI_BYTE, me + 1, 1, MPI_COMM_WORLD);
    }
}

/* Symmetric traffic: neighbours in a ring exchange messages. */
static void flow_run_exchange(struct ib_rank *r, int steps)
{
    char out[STEP_BYTES] = {0}, in[STEP_BYTES];
    int me = r->bench.rank, n = r->bench.size;
    for (int i = 0; i < steps; i++) {
        MPI_Sendrecv(out, STEP_BYTES, MPI_BYTE, (me + 1) % n, 1, in, STEP_BYTES, MPI_BYTE, (me + n - 1) % n,
                     1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, STEP_BYTES, MPI_BYTE, (me + n - 1) % n, 2, in, STEP_BYTES, MPI_BYTE, (me + 1) % n,
                     2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void patterns_run_rank(struct ib_rank *r)
{
    int steps = r->quick ? STEPS_QUICK : STEPS;
    if (ib_read_argument(r, "symmetric", 0))
        flow_run_exchange(r, steps);
    else
        flow_run_pipeline(r, steps);
    double frames = ib_counter("ib_frames_sent"), credits = ib_counter("ib_credit_messages"),
           most = ib_counter("ib_receives_posted_max"), waits = ib_counter("ib_credit_waits"),
           starved = ib_counter("p2p_starved_rendezvous");
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, frames), "frames");
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, credits), "credits");
    ib_report_figure(r, IB_COUNT, ib_max_over_ranks(r, most), "most");
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, waits), "waits");
    ib_report_figure(r, IB_COUNT, ib_sum_over_ranks(r, starved), "starved");
}

static void flow_run_rank(struct ib_rank *r)
{
    if (ib_read_argument(r, "pattern", 0))
        patterns_run_rank(r);
    else
        windows_run_rank(r);
}

static const char *const schemes[] = {"hw", "static", "dynamic"};
static const int buffers[] = {10, 100};

static int flow_count_buffer_settings(const struct ib_driver *d)
{
    return d->quick ? 1 : 2;
}

static void windows_print_table(struct ib_driver *d, struct ib_figures *f[2][3], int z, int blocking)
{
    static const char *const titles[2][2] = {
        {"4-byte messages, non-blocking: MB/s by window [Liu04 fig. 5.3]",
         "4-byte messages, blocking: MB/s by window [Liu04 fig. 5.2]"},
        {"32-KiB messages, non-blocking: MB/s by window [Liu04 fig. 5.5]",
         "32-KiB messages, blocking: MB/s by window [Liu04 fig. 5.4]"}};
    static const char *const papers[2] = {"with 100 buffers all schemes are alike; with 10 and larger "
                                          "windows dynamic is best and static worst.",
                                          "rendezvous makes large messages symmetric: all schemes do well "
                                          "with 10 buffers; non-blocking is much "
                                          "better than blocking."};
    struct ib_table *t = ib_table_open(d, titles[z][blocking], papers[z]);
    ib_table_add_column(t, "window");
    for (int b = 0; b < flow_count_buffer_settings(d); b++)
        for (int s = 0; s < 3; s++)
            ib_table_add_column(t, "%s/%d", schemes[s], buffers[b]);
    for (int w = 0; w < NWINDOWS; w += d->quick ? 3 : 1) {
        ib_table_add_cell(t, "%d", windows[w]);
        for (int b = 0; b < flow_count_buffer_settings(d); b++)
            for (int s = 0; s < 3; s++)
                ib_table_add_number(
                    t, ib_find_figure(f[b][s], "bw.%zu.%d.%d", sizes[z], blocking, windows[w]), 1);
    }
    if (!d->quick) {
        double v[3];
        for (int s = 0; s < 3; s++)
            v[s] = ib_find_figure(f[0][s], "bw.%zu.%d.100", sizes[z], blocking);
        ib_table_add_remark(t, "window 100, 10 buffers: static has %.2f and dynamic %.2f of hw's bandwidth.",
                            v[1] / v[0], v[2] / v[0]);
    }
    ib_table_close(t);
}

static void windows_print_tables(struct ib_driver *d)
{
    struct ib_figures *f[2][3];
    char settings[256];
    for (int b = 0; b < flow_count_buffer_settings(d); b++)
        for (int s = 0; s < 3; s++) {
            snprintf(settings, sizeof(settings),
                     "FISHPLATE_EAGER_MAX=2k FISHPLATE_IB_POLLSET=0 FISHPLATE_IB_BUFFERS=%d "
                     "FISHPLATE_LAB=IB_FLOW=%s",
                     buffers[b], schemes[s]);
            f[b][s] = ib_run_job(
                d, &(struct ib_job){.topic = "flow", .ranks = 2, .nodes = 2, .settings = settings}, "%s", "");
        }
    for (int z = 0; z < 2; z++)
        for (int blocking = 1; blocking >= 0; blocking--)
            windows_print_table(d, f, z, blocking);
    for (int b = 0; b < flow_count_buffer_settings(d); b++)
        for (int s = 0; s < 3; s++)
            ib_figures_free(f[b][s]);
}

static void patterns_print_table(struct ib_driver *d)
{
    static const struct {
        const char *scheme;
        int buffers;
    } cases[] = {{"static", 100}, {"static", 10}, {"dynamic", 2}, {"hw", 10}};
    struct ib_table *t = ib_table_open(
        d, "Credit messages and posted buffers, 4 ranks, all connections together [Liu04 tables 5.1 and 5.2]",
        "static: 18 % of LU's messages (one-sided traffic) are credit messages, other programs have none; "
        "dynamic, which starts with 1 buffer, ends with 63 for LU and 3 to 7 for the others.");
    ib_table_add_column(t, "traffic");
    ib_table_add_column(t, "scheme");
    ib_table_add_column(t, "first buffers");
    ib_table_add_column(t, "messages");
    ib_table_add_column(t, "credit messages");
    ib_table_add_column(t, "share");
    ib_table_add_column(t, "most posted");
    ib_table_add_column(t, "waited for credit");
    for (int symmetric = 0; symmetric < 2; symmetric++)
        for (size_t i = d->quick ? 1 : 0; i < (d->quick ? 3 : sizeof(cases) / sizeof(cases[0])); i++) {
            char settings[256];
            snprintf(settings, sizeof(settings),
                     "FISHPLATE_IB_POLLSET=0 FISHPLATE_IB_BUFFERS=%d FISHPLATE_LAB=IB_FLOW=%s",
                     cases[i].buffers, cases[i].scheme);
            struct ib_job job = {.topic = "flow", .ranks = 4, .nodes = 4, .settings = settings, .repeat = 1};
            struct ib_figures *f = ib_run_job(d, &job, "pattern=1 symmetric=%d", symmetric);
            double frames = ib_find_figure(f, "frames"), credits = ib_find_figure(f, "credits");
            ib_table_add_cell(t, symmetric ? "exchange" : "pipeline");
            ib_table_add_cell(t, "%s", cases[i].scheme);
            ib_table_add_cell(t, "%d", cases[i].buffers);
            ib_table_add_number(t, frames + credits, 0);
            ib_table_add_number(t, credits, 0);
            ib_table_add_cell(t, "%.1f%%", 100 * credits / (frames + credits));
            ib_table_add_number(t, ib_find_figure(f, "most"), 0);
            ib_table_add_number(t, ib_find_figure(f, "waits"), 0);
            ib_figures_free(f);
        }
    ib_table_close(t);
}

static void flow_print_tables(struct ib_driver *d)
{
    windows_print_tables(d);
    patterns_print_table(d);
}

const struct ib_topic ib_flow = {
    .name = "flow",
    .doc = "flow control by adapter, static and dynamic credits; credit messages, posted buffers",
    .rank = flow_run_rank,
    .tables = flow_print_tables,
};

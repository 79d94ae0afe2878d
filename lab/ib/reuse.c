/* reuse.c: gain of sending from the same memory again [Liu04 figs 9.7 and 9.8]: a given share of the
 * iterations of a round uses one buffer, each other iteration a buffer that no message has used before. Every
 * round maps new memory and touches its pages before the clock starts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "ib.h"

static const size_t sizes[] = {4 * KI, 64 * KI, 256 * KI, 1 * MI};
static const int percents[] = {0, 25, 50, 75, 100};
enum {
    NSIZES = sizeof(sizes) / sizeof(sizes[0]),
    NPERCENTS = sizeof(percents) / sizeof(percents[0]),
    ITERATIONS_MOST = 32,
    ITERATIONS_QUICK = 8,
    ROUNDS = 20,
    ROUNDS_QUICK = 4
};

struct round {
    int me, iterations, percent, bytes;
    char *out, *in; /* 1 + iterations buffers each; buffer 0 is sent again and again */
};

static size_t reuse_buffer_offset(const struct round *t, int i)
{
    bool again = (i + 1) * t->percent / 100 != i * t->percent / 100;
    return again ? 0 : (size_t)(i + 1) * (size_t)t->bytes;
}

static void reuse_latency(const struct round *t)
{
    for (int i = 0; i < t->iterations; i++) {
        size_t at = reuse_buffer_offset(t, i);
        if (t->me == 0)
            MPI_Send(t->out + at, t->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(t->in + at, t->bytes, MPI_BYTE, 1 - t->me, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (t->me == 1)
            MPI_Send(t->out + at, t->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void reuse_bandwidth(const struct round *t)
{
    MPI_Request requests[ITERATIONS_MOST];
    for (int i = 0; i < t->iterations; i++)
        if (t->me == 0)
            MPI_Isend(t->out + reuse_buffer_offset(t, i), t->bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD,
                      &requests[i]);
        else
            MPI_Irecv(t->in + reuse_buffer_offset(t, i), t->bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD,
                      &requests[i]);
    MPI_Waitall(t->iterations, requests, MPI_STATUSES_IGNORE);
    if (t->me == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

static char *reuse_map_memory(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(p, 1, bytes);
    return p;
}

static double reuse_time_best_round(struct ib_rank *r, struct round *t, void (*run)(const struct round *))
{
    size_t total = (size_t)t->bytes * (size_t)(t->iterations + 1);
    double best = 1e9;
    for (int i = 0; i < (r->quick ? ROUNDS_QUICK : ROUNDS); i++) {
        t->out = reuse_map_memory(total);
        t->in = reuse_map_memory(total);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        run(t);
        double took = MPI_Wtime() - start;
        best = took < best ? took : best;
        munmap(t->in, total);
        munmap(t->out, total);
    }
    return best / t->iterations;
}

/* Times 1 MiB messages from new memory and from reused memory with one kind of registration. */
static void reuse_run_large(struct ib_rank *r, struct round *t)
{
    t->bytes = (int)sizes[NSIZES - 1];
    for (t->percent = 0; t->percent <= 100; t->percent += 100)
        ib_report_figure(r, IB_TIME, reuse_time_best_round(r, t, reuse_latency) / 2 * 1e6, "large.%d",
                         t->percent);
}

static void reuse_run_rank(struct ib_rank *r)
{
    struct round t = {.me = r->bench.rank, .iterations = r->quick ? ITERATIONS_QUICK : ITERATIONS_MOST};
    if (ib_read_argument(r, "large", 0)) {
        reuse_run_large(r, &t);
        return;
    }
    for (int z = 0; z < NSIZES; z += r->quick ? 3 : 1)
        for (int p = 0; p < NPERCENTS; p += r->quick ? 4 : 1) {
            t.bytes = (int)sizes[z];
            t.percent = percents[p];
            double hits = ib_counter("reg_hits"), misses = ib_counter("reg_misses");
            ib_report_figure(r, IB_TIME, reuse_time_best_round(r, &t, reuse_latency) / 2 * 1e6,
                             "latency.%zu.%d", sizes[z], t.percent);
            ib_report_figure(r, IB_RATE,
                             (double)sizes[z] / reuse_time_best_round(r, &t, reuse_bandwidth) / 1e6,
                             "bw.%zu.%d", sizes[z], t.percent);
            hits = ib_counter("reg_hits") - hits;
            misses = ib_counter("reg_misses") - misses;
            if (hits + misses >= t.iterations) /* omitted for eager messages, which register no memory */
                ib_report_figure(r, IB_COUNT, 100 * hits / (hits + misses), "hits.%zu.%d", sizes[z],
                                 t.percent);
        }
}

static void reuse_print_shares(struct ib_driver *d, const struct ib_figures *f, const char *title,
                               const char *paper, const char *figure, int digits, const char *unit)
{
    struct ib_table *t = ib_table_open(d, title, paper);
    ib_table_add_column(t, "bytes");
    for (int p = 0; p < NPERCENTS; p += d->quick ? 4 : 1)
        ib_table_add_column(t, "%d %%", percents[p]);
    for (int z = 0; z < NSIZES; z += d->quick ? 3 : 1) {
        ib_table_add_cell(t, "%zu", sizes[z]);
        for (int p = 0; p < NPERCENTS; p += d->quick ? 4 : 1)
            ib_table_add_number(t, ib_find_figure(f, "%s.%zu.%d", figure, sizes[z], percents[p]), digits);
    }
    ib_table_add_remark(t, "1 MiB: %.*f%s with new buffers, %.*f%s with the same one.", digits,
                        ib_find_figure(f, "%s.%zu.0", figure, sizes[NSIZES - 1]), unit, digits,
                        ib_find_figure(f, "%s.%zu.100", figure, sizes[NSIZES - 1]), unit);
    ib_table_close(t);
}

static const char *const protocols[] = {"rput", "get", "pipe", "auto"};
enum { RPUT = 0, PIPE = 2, NPROTOCOLS = sizeof(protocols) / sizeof(protocols[0]) };

/* Adds one row: `hcas` is the value of mpiexec -hcas, NULL without the option; us[] receives the time from
 * new buffers for each protocol. */
static void reuse_add_row(struct ib_driver *d, struct ib_table *t, const char *hcas, double us[NPROTOCOLS])
{
    for (int w = 0; w < NPROTOCOLS; w++) {
        char settings[64];
        snprintf(settings, sizeof(settings), "FISHPLATE_RENDEZVOUS=%s", protocols[w]);
        struct ib_job job = {.topic = "reuse", .ranks = 2, .nodes = 2, .settings = settings, .hcas = hcas};
        struct ib_figures *f = ib_run_job(d, &job, "large=1");
        us[w] = ib_find_figure(f, "large.0");
        ib_table_add_cell(t, "%.0f (%.0f)", us[w], ib_find_figure(f, "large.100"));
        ib_figures_free(f);
    }
}

/* softib pins no pages, so a setting of softib adds the time that a driver takes to pin a page. Other
 * adapters are measured unchanged. */
static void reuse_print_protocols(struct ib_driver *d)
{
    static const int pins[] = {100, 500};
    const bool softib = strstr(d->adapter, "softib") != NULL;
    double us[NPROTOCOLS];
    struct ib_table *t =
        ib_table_open(d, "1 MiB between new buffers (and the same ones), by how they are registered: us",
                      "a pipeline registers pieces while others move [Shipman06 4.3].");
    ib_table_add_column(t, "added ns a page");
    for (int w = 0; w < NPROTOCOLS; w++)
        ib_table_add_column(t, "%s", protocols[w]);
    if (!softib || !d->quick) {
        ib_table_add_cell(t, "0");
        reuse_add_row(d, t, NULL, us);
    }
    for (size_t p = d->quick; softib && p < sizeof(pins) / sizeof(pins[0]); p++) {
        char hcas[32];
        snprintf(hcas, sizeof(hcas), "1,pin=%dns", pins[p]);
        ib_table_add_cell(t, "%d", pins[p]);
        reuse_add_row(d, t, hcas, us);
    }
    ib_table_add_remark(t, "new buffers in the last row: %.0f us as one, %.0f us in pieces.", us[RPUT],
                        us[PIPE]);
    ib_table_close(t);
}

static void reuse_print_tables(struct ib_driver *d)
{
    struct ib_job job = {.topic = "reuse", .ranks = 2, .nodes = 2, .settings = ""};
    struct ib_figures *f = ib_run_job(d, &job, "%s", "");
    reuse_print_shares(d, f, "Latency by how often buffers are used again: us [Liu04 fig. 9.7]",
                       "above 1 KiB latency suffers greatly when buffers are not used again.", "latency", 2,
                       " us");
    reuse_print_shares(d, f, "Bandwidth by how often buffers are used again: MB/s [Liu04 fig. 9.8]",
                       "drops significantly when buffers are not used again.", "bw", 0, " MB/s");
    reuse_print_shares(d, f, "Registrations found in the cache: % (eager messages need none)",
                       "lazy deregistration lives on buffers that are used again.", "hits", 1, " %");
    ib_figures_free(f);
    reuse_print_protocols(d);
}

const struct ib_topic ib_reuse = {
    .name = "reuse",
    .doc = "buffers used again from 0 to 100 %: latency, bandwidth, hits of the registration cache",
    .rank = reuse_run_rank,
    .tables = reuse_print_tables,
};

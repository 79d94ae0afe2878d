/* coll.c: broadcast and all-to-all over one and two rails [Liu04 figs. 8.10-8.13], and the kernels IS and FT,
 * whose time is mostly all-to-all [Liu04 figs. 8.14-8.15]. The paper uses 8 nodes, this benchmark 4 so that a
 * small machine suffices.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rails.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/kernels/kernels.h"

/* The rails are slower than the paper's so that they stay the bottleneck although several processes share a
 * core. */
#define SLOW_ONE "250MB/s"
#define SLOW_TWO "2x250MB/s"

struct operation {
    int bytes, size, root;
    char *out, *in;
};

static void coll_broadcast(void *arg, int n)
{
    struct operation *o = arg;
    for (int i = 0; i < n; i++) {
        MPI_Bcast(o->out, o->bytes, MPI_BYTE, o->root, MPI_COMM_WORLD);
        o->root = (o->root + 1) % o->size; /* prevents the root from running ahead of the other ranks */
    }
}

static void coll_all_to_all(void *arg, int n)
{
    struct operation *o = arg;
    for (int i = 0; i < n; i++)
        MPI_Alltoall(o->out, o->bytes, MPI_BYTE, o->in, o->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* Checks the received bytes: a broadcast is the same on all ranks; a block of all-to-all depends on its
 * sender and receiver. */
static void coll_check_all_to_all(struct ib_rank *r, struct operation *o)
{
    size_t block = (size_t)o->bytes;
    for (int i = 0; i < o->size; i++)
        bench_fill(o->out + (size_t)i * block, block, (unsigned)(r->bench.rank * o->size + i));
    coll_all_to_all(o, 1);
    for (int i = 0; i < o->size; i++)
        r->bench.errors +=
            bench_check(o->in + (size_t)i * block, block, (unsigned)(i * o->size + r->bench.rank));
}

static void coll_run_rank(struct ib_rank *r)
{
    long from = ib_read_argument(r, "from", 1 << 14), to = ib_read_argument(r, "to", 1 << 20);
    struct operation o = {.size = r->bench.size};
    o.out = bench_alloc((size_t)(to * o.size));
    o.in = bench_alloc((size_t)(to * o.size));
    for (long bytes = from; bytes <= to; bytes *= 4) {
        struct bench_stats s;
        o.bytes = (int)bytes;
        bench_fill(o.out, (size_t)bytes, r->bench.rank == 0 ? 77u : 0u);
        o.root = 0;
        coll_broadcast(&o, 1);
        r->bench.errors += bench_check(o.out, (size_t)bytes, 77);
        bench_measure(&r->bench, MPI_COMM_WORLD, true, coll_broadcast, &o, &s);
        ib_report_figure(r, IB_TIME, s.min * 1e6, "bcast.%ld", bytes);
        coll_check_all_to_all(r, &o);
        bench_measure(&r->bench, MPI_COMM_WORLD, true, coll_all_to_all, &o, &s);
        ib_report_figure(r, IB_TIME, s.min * 1e6, "alltoall.%ld", bytes);
    }
    free(o.in);
    free(o.out);
    rails_report_bytes(r);
}

static void coll_print_table(struct ib_driver *d, const char *title, struct ib_figures *const *f,
                             const char *figure, long from, long to)
{
    struct ib_table *t = ib_table_open(
        d, title, "significantly less time for large messages with two rails, as for pairs of processes.");
    double last = NAN;
    ib_table_add_column(t, "bytes");
    ib_table_add_column(t, "one rail, us");
    ib_table_add_column(t, "two rails, us");
    ib_table_add_column(t, "two against one");
    for (long bytes = from; bytes <= to; bytes *= 4) {
        double one = ib_find_figure(f[0], "%s.%ld", figure, bytes),
               two = ib_find_figure(f[1], "%s.%ld", figure, bytes);
        last = two / one;
        ib_table_add_cell(t, "%ldK", bytes >> 10);
        ib_table_add_number(t, one, 0);
        ib_table_add_number(t, two, 0);
        ib_table_add_cell(t, "%.2f", last);
    }
    ib_table_add_remark(t, "%.2f times the time of one rail at the largest size.", last);
    rails_print_second_share(t, f[1]);
    ib_table_close(t);
}

/* Runs the job with one rail and with two rails. */
static void coll_run_both(struct ib_driver *d, struct ib_job job, const char *args, struct ib_figures **f)
{
    job.hcas = SLOW_ONE;
    job.settings = "";
    f[0] = ib_run_job(d, &job, "%s", args);
    job.hcas = SLOW_TWO;
    job.settings = STRIPE_EVEN;
    f[1] = ib_run_job(d, &job, "%s", args);
}

static void coll_print_tables(struct ib_driver *d)
{
    long from = 1 << 16, to = d->quick ? 1 << 16 : 1 << 20;
    char args[64];
    snprintf(args, sizeof(args), "from=%ld to=%ld", from, to);
    for (int smp = 0; smp < 2; smp++) {
        struct ib_figures *f[2];
        coll_run_both(d, (struct ib_job){.topic = "coll", .ranks = smp ? 8 : 4, .nodes = 4}, args, f);
        coll_print_table(d,
                         smp ? "MPI_Bcast, 4 nodes, rails of 250 MB/s, two processes each [Liu04 fig. 8.12]"
                             : "MPI_Bcast, 4 nodes, rails of 250 MB/s, one process each [Liu04 fig. 8.10]",
                         f, "bcast", from, to);
        coll_print_table(
            d,
            smp ? "MPI_Alltoall, bytes for each rank, 4 nodes, rails of 250 MB/s, two processes each "
                  "[Liu04 fig. 8.13]"
                : "MPI_Alltoall, bytes for each rank, 4 nodes, rails of 250 MB/s, one process each "
                  "[Liu04 fig. 8.11]",
            f, "alltoall", from, to);
        ib_figures_free(f[0]);
        ib_figures_free(f[1]);
    }
}

/* Compares three uses of rails for the large messages of one collective: striped over all rails, one rail
 * for each stage, one rail for each process. */
static void stages_print_table(struct ib_driver *d, int rails, const char *figure,
                               struct ib_figures *const *f, long from, long to)
{
    static const char *const uses[] = {"striped", "a rail for each stage", "a rail for each process"};
    char title[128];
    snprintf(title, sizeof(title),
             "%s, 4 nodes, two processes each, %d rails of %d MB/s together [Liu04 11.2]",
             strcmp(figure, "bcast") == 0 ? "MPI_Bcast" : "MPI_Alltoall", rails, 500);
    struct ib_table *t = ib_table_open(
        d, title, "future work: stages of one collective operation on different rails may beat striping.");
    ib_table_add_column(t, "bytes");
    for (int i = 0; i < 3; i++)
        ib_table_add_column(t, "%s, us", uses[i]);
    ib_table_add_column(t, "fastest");
    for (long bytes = from; bytes <= to; bytes *= 4) {
        int best = 0;
        ib_table_add_cell(t, "%ldK", bytes >> 10);
        for (int i = 0; i < 3; i++) {
            const double us = ib_find_figure(f[i], "%s.%ld", figure, bytes);
            ib_table_add_number(t, us, 0);
            best = us < ib_find_figure(f[best], "%s.%ld", figure, bytes) ? i : best;
        }
        ib_table_add_cell(t, "%s", uses[best]);
    }
    rails_print_second_share(t, f[1]);
    ib_table_close(t);
}

static void stages_print_tables(struct ib_driver *d)
{
    static const char *const settings[] = {STRIPE_EVEN, "FISHPLATE_LAB=IB_STRIPE=stages", STRIPE_OFF};
    const long from = 1 << 14, to = d->quick ? 1 << 16 : 1 << 20;
    char args[64];
    snprintf(args, sizeof(args), "from=%ld to=%ld", from, to);
    for (int rails = 2; rails <= 4; rails += 2) {
        struct ib_figures *f[3];
        for (int i = 0; i < 3; i++) {
            const struct ib_job job = {.topic = "coll",
                                       .ranks = 8,
                                       .nodes = 4,
                                       .settings = settings[i],
                                       .hcas = rails == 2 ? SLOW_TWO : "4x125MB/s"};
            f[i] = ib_run_job(d, &job, "%s", args);
        }
        stages_print_table(d, rails, "bcast", f, from, to);
        stages_print_table(d, rails, "alltoall", f, from, to);
        for (int i = 0; i < 3; i++)
            ib_figures_free(f[i]);
    }
}

const struct ib_topic rails_stages = {
    .name = "stages",
    .doc = "collectives over two and four rails: striped, or whole messages by stage or process",
    .rank = coll_run_rank,
    .tables = stages_print_tables,
};

const struct ib_topic rails_coll = {
    .name = "coll",
    .doc = "broadcast and all-to-all, 4 nodes (figs. 8.10-8.13)",
    .rank = coll_run_rank,
    .tables = coll_print_tables,
};

static const struct kernel *const kernels[] = {&kernel_is, &kernel_ft, &kernel_vis};
enum { KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

static void kernels_run_rank(struct ib_rank *r)
{
    for (int k = 0; k < KERNELS; k++) {
        struct kernel_run run = {.comm = MPI_COMM_WORLD,
                                 .rank = r->bench.rank,
                                 .size = r->bench.size,
                                 .class = ib_read_argument(r, "class", CLASS_W),
                                 .name = kernels[k]->name,
                                 .progress_time = MPI_Wtime()};
        struct kernel_result result = {.verified = true};
        kernels[k]->run(&run, &result);
        r->bench.errors += r->bench.rank == 0 && !result.verified;
        ib_report_figure(r, IB_TIME, result.seconds * 1e3, "%s", kernels[k]->name);
    }
    rails_report_bytes(r);
}

static void kernels_print_table(struct ib_driver *d, int ranks, const char *title)
{
    struct ib_figures *f[3];
    char args[32];
    snprintf(args, sizeof(args), "class=%d", d->quick ? CLASS_S : CLASS_W);
    struct ib_job job = {.topic = "kernels", .ranks = ranks, .nodes = 4};
    coll_run_both(d, job, args, f);
    job.settings = ""; /* unlimited link rate: the time is mostly computing */
    f[2] = ib_run_job(d, &job, "%s", args);
    struct ib_table *t = ib_table_open(
        d, title,
        "FT communicates in almost half the time, IS in up to 38 % less: up to 22 % less running time. The "
        "visualisation communicates in 43 % less: 16 % less running time.");
    ib_table_add_column(t, "kernel, class %c", d->quick ? 'S' : 'W');
    ib_table_add_column(t, "one rail, ms");
    ib_table_add_column(t, "two rails, ms");
    ib_table_add_column(t, "no limit, ms");
    ib_table_add_column(t, "running time");
    ib_table_add_column(t, "time on the links");
    for (int k = 0; k < KERNELS; k++) {
        const char *name = kernels[k]->name;
        double one = ib_find_figure(f[0], "%s", name), two = ib_find_figure(f[1], "%s", name),
               none = ib_find_figure(f[2], "%s", name);
        ib_table_add_cell(t, "%s", name);
        ib_table_add_number(t, one, 1);
        ib_table_add_number(t, two, 1);
        ib_table_add_number(t, none, 1);
        ib_table_add_cell(t, "%+.0f%%", (two / one - 1) * 100);
        ib_table_add_cell(t, one > none ? "%+.0f%%" : "-", ((two - none) / (one - none) - 1) * 100);
    }
    ib_table_add_remark(
        t, "the time on the links is what a job takes longer than with links as fast as memory. Results "
           "verify.");
    rails_print_second_share(t, f[1]);
    ib_table_close(t);
    for (int i = 0; i < 3; i++)
        ib_figures_free(f[i]);
}

static void kernels_print_tables(struct ib_driver *d)
{
    kernels_print_table(
        d, 4, "IS, FT and a visualisation, 4 nodes, rails of 250 MB/s, one process each [Liu04 fig. 8.14]");
    if (!d->quick)
        kernels_print_table(
            d, 8,
            "IS, FT and a visualisation, 4 nodes, rails of 250 MB/s, two processes each [Liu04 fig. 8.15]");
}

const struct ib_topic rails_kernels = {
    .name = "kernels",
    .doc = "the kernels IS and FT, a visualisation, 4 nodes (figs. 8.14-8.15)",
    .rank = kernels_run_rank,
    .tables = kernels_print_tables,
};

/* bcast.c: the command: help, the list of topics, the designs, and what the topics share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bcast.h"
#include "cli/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const struct bcast_design bcast_designs[BCAST_DESIGNS] = {
    [BCAST_ORIGINAL] = {"Original", "bcast=binomial"},
    [BCAST_BASIC] = {"Basic", "bcast=multicast:basic=1"},
    [BCAST_WINDOW] = {"Window", "bcast=multicast"},
    [BCAST_COROOT] = {"Co-root2", "bcast=multicast:coroots=2"},
    [BCAST_AGGREGATE] = {"Aggregate10", "bcast=multicast:aggregate=10"},
};

static const struct ib_topic *const topics[] = {&bcast_latency, &bcast_skew, &bcast_throughput, &bcast_cost};
enum { NTOPICS = sizeof(topics) / sizeof(topics[0]) };

/* Source files of the program that the ranks run, for compilation with other MPI libraries. */
static const char *const peers[] = {"bench/pattern.c", "bench/measure.c", "bench/transports.c",   "cli/*.c",
                                    "lab/ib/*.c",      "lab/bcast/*.c",   "lab/programs/bcast.c", NULL};

static void print_usage(void);
static const struct ib_command command = {.name = "bcast",
                                          .topics = topics,
                                          .ntopics = NTOPICS,
                                          .usage = print_usage,
                                          .draws = true,
                                          .peers = peers};

static void print_usage(void)
{
    cli_print_page(
        "Usage: fishplate-lab bcast [options] [topics]\n"
        "\n"
        "Measures MPI_Bcast by the network's multicast against a tree of messages, and prints it beside the "
        "figures of Liu 2004, chapter 7. It starts its own jobs on 8 virtual nodes (mpiexec -vnodes 8 "
        "-hcas " BCAST_LINKS
        "), whose links are slow enough to be the bottleneck on a small machine. `mpiexec -n 8 fishplate "
        "bench bcast` measures the broadcast of one job. The designs are settings that any program can use:\n"
        "\n",
        stdout);
    for (int i = 0; i < BCAST_DESIGNS; i++)
        printf("  %-12s FISHPLATE_COLL=%s\n", bcast_designs[i].name, bcast_designs[i].setting);
    cli_print_page(
        "\n  Original is a binomial tree. Basic: the root waits for all acknowledgements. Window: they come "
        "later. Co-root2: two ranks collect them. Aggregate10: one for ten packets. `fishplate info --coll` "
        "has all "
        "options.\n\n"
        "Without names, all topics run:\n\n",
        stdout);
    for (int i = 0; i < NTOPICS; i++)
        cli_print_text(topics[i]->doc, printf("  %-10s", topics[i]->name), 14, stdout);
    ib_print_options(&command);
    cli_print_page(
        "\n"
        "Where there are fewer than 8 cores the ranks take turns: compare figures of one row.\n\n"
        "Examples:\n"
        "  fishplate-lab bcast skew\n"
        "  fishplate-lab bcast --repeat 1 --json\n"
        "  fishplate-lab sim bcast --nodes 8,64,1024    a tree of messages on simulated machines\n",
        stdout);
}

/* ---- in a rank ---- */

void bcast_check_data(struct ib_rank *r, char *data, int bytes)
{
    for (int root = 0; root < 2; root++) {
        const unsigned seed = (unsigned)(31 * root + bytes);
        bench_fill(data, (size_t)bytes, r->bench.rank == root ? seed : seed + 1);
        MPI_Bcast(data, bytes, MPI_BYTE, root, r->bench.comm);
        r->bench.errors += bench_check(data, (size_t)bytes, seed);
    }
}

void bcast_report_counters(const struct ib_rank *r)
{
    static const char *const names[] = {"coll_bcast_multicast", "mcast_resent_to_all", "mcast_resent_to_one",
                                        "mcast_window_waits"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ib_report_figure(r, IB_COUNT, ib_counter(names[i]), "%s", names[i]); /* counted at rank 0, the root */
}

double bcast_median(double *samples, int n)
{
    struct bench_stats s;
    bench_stats_compute(samples, n, 1, &s);
    return s.median;
}

/* ---- in the driver ---- */

static struct ib_figures *design_run_job(struct ib_driver *d, const char *topic, int design, int nodes)
{
    char setting[128];
    const int failures = d->failures;
    snprintf(setting, sizeof(setting), "FISHPLATE_COLL=%s", bcast_designs[design].setting);
    const struct ib_job job = {
        .topic = topic, .ranks = nodes, .nodes = nodes, .settings = setting, .hcas = BCAST_LINKS};
    struct ib_figures *f = ib_run_job(d, &job, "%s", "");
    if (design != BCAST_ORIGINAL && d->failures == failures &&
        !(ib_find_figure(f, "coll_bcast_multicast") > 0)) {
        fprintf(stderr, "fishplate-lab bcast: the job of %s did not multicast.\n",
                bcast_designs[design].name);
        d->failures++;
    }
    return f;
}

void bcast_run_jobs_on_nodes(struct ib_driver *d, const char *topic, unsigned mask, int nodes,
                             struct bcast_figures *f)
{
    *f = (struct bcast_figures){.n = BCAST_DESIGNS};
    for (int i = 0; i < BCAST_DESIGNS; i++) {
        f->name[i] = bcast_designs[i].name;
        f->figures[i] = mask >> i & 1 ? design_run_job(d, topic, i, nodes) : NULL;
    }
}

void bcast_run_jobs(struct ib_driver *d, const char *topic, unsigned mask, struct bcast_figures *f)
{
    bcast_run_jobs_on_nodes(d, topic, mask, BCAST_NODES, f);
    for (int i = 0; i < d->peers->n; i++) {
        const struct ib_job job = {.topic = topic,
                                   .ranks = BCAST_NODES,
                                   .nodes = BCAST_NODES,
                                   .settings = "",
                                   .hcas = BCAST_LINKS,
                                   .peer = &d->peers->library[i]};
        const int missing = d->peers->nmissing;
        f->figures[f->n] = ib_run_job(d, &job, "%s", "");
        f->name[f->n] = d->peers->library[i].name;
        if (d->peers->nmissing == missing)
            f->n++;
        else
            ib_figures_free(f->figures[f->n]);
    }
}

void bcast_figures_free(struct bcast_figures *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->figures[i])
            ib_figures_free(f->figures[i]);
}

void bcast_print_counters(struct ib_table *t, const struct bcast_figures *f)
{
    const struct ib_figures *w = f->figures[BCAST_WINDOW];
    const double again = ib_find_figure(w, "mcast_resent_to_all") + ib_find_figure(w, "mcast_resent_to_one");
    ib_table_add_remark(
        t,
        "the root of the last job of Window sent %.0f broadcasts by multicast; %.0f packets were sent "
        "again, and it waited %.0f times for room in the window.",
        ib_find_figure(w, "coll_bcast_multicast"), again, ib_find_figure(w, "mcast_window_waits"));
}

void bcast_add_columns(struct ib_table *t, const struct bcast_figures *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->figures[i])
            ib_table_add_column(t, "%s", f->name[i]);
}

void bcast_add_row(struct ib_table *t, const struct bcast_figures *f, struct ib_curves *c, int point,
                   double factor, int digits, const char *figure)
{
    c->lines = 0;
    for (int i = 0; i < f->n; i++) {
        if (!f->figures[i])
            continue;
        c->name[c->lines] = f->name[i];
        c->y[c->lines][point] = ib_find_figure(f->figures[i], "%s", figure) * factor;
        ib_table_add_number(t, c->y[c->lines++][point], digits);
    }
}

/* Index of the best line in [from, to) for a figure; -1: no line has the figure. */
static int figures_find_best_line(const struct bcast_figures *f, int from, int to, const char *figure,
                                  bool higher)
{
    int best = -1;
    for (int i = from; i < to; i++) {
        const double v = f->figures[i] ? ib_find_figure(f->figures[i], "%s", figure) : NAN;
        const double least = best < 0 ? NAN : ib_find_figure(f->figures[best], "%s", figure);
        if (!isnan(v) && (best < 0 || (higher ? v > least : v < least)))
            best = i;
    }
    return best;
}

void bcast_print_peers(struct ib_table *t, const struct ib_driver *d, const struct bcast_figures *f,
                       const char *figure, const char *where, bool higher)
{
    const int ours = figures_find_best_line(f, BCAST_ORIGINAL + 1, BCAST_DESIGNS, figure, higher);
    const int other = figures_find_best_line(f, BCAST_DESIGNS, f->n, figure, higher);
    if (ours >= 0 && other >= 0) {
        const double a = ib_find_figure(f->figures[ours], "%s", figure),
                     b = ib_find_figure(f->figures[other], "%s", figure);
        ib_table_add_remark(t, "at %s %s is %.1f times as fast as %s on the same fabric.", where,
                            f->name[ours], higher ? a / b : b / a, f->name[other]);
    }
    for (int i = 0; i < d->peers->nmissing; i++)
        ib_table_add_remark(t, "%s", d->peers->missing[i]);
}

double bcast_gain_percent(double original, double ours)
{
    return (original / ours - 1) * 100;
}

int bench_bcast_main(void (*draw)(const struct ib_curves *c, FILE *out), int argc, char **argv)
{
    struct ib_driver d = {.draw = draw};
    return ib_command_main(&command, &d, argc, argv);
}

/* bcast.c: the command: help, the list of topics, the designs, and what the topics share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bcast.h"

#include <stdio.h>
#include <stdlib.h>

const struct bcast_design bcast_designs[BCAST_DESIGNS] = {
    [BCAST_ORIGINAL] = {"Original", "bcast=binomial"},
    [BCAST_BASIC] = {"Basic", "bcast=multicast:basic=1"},
    [BCAST_WINDOW] = {"Window", "bcast=multicast"},
    [BCAST_COROOT] = {"Co-root2", "bcast=multicast:coroots=2"},
    [BCAST_AGGREGATE] = {"Aggregate10", "bcast=multicast:aggregate=10"},
};

static const struct ib_topic *const topics[] = {&bcast_latency, &bcast_skew, &bcast_throughput};
enum { NTOPICS = sizeof(topics) / sizeof(topics[0]) };

static void usage(void)
{
    printf("Usage: fishplate bench bcast [options] [topics]\n\n"
           "Measures MPI_Bcast by the network's multicast against a tree of messages, and prints it beside "
           "the figures of\n"
           "Liu 2004, chapter 7. It starts its own jobs on 8 virtual nodes (mpiexec -vnodes 8 -hcas %s),\n"
           "whose links are slow enough to be the bottleneck on a small machine. Started by mpiexec, "
           "`fishplate bench bcast`\n"
           "measures the broadcast of that job only. The designs are settings that any program can use:\n\n",
           BCAST_LINKS);
    for (int i = 0; i < BCAST_DESIGNS; i++)
        printf("  %-12s FISHPLATE_COLL=%s\n", bcast_designs[i].name, bcast_designs[i].setting);
    printf(
        "\n  Original is a binomial tree. Basic: the root waits for all acknowledgements. Window: they come "
        "later. Co-root2:\n"
        "  two ranks collect them. Aggregate10: one for ten packets. `fishplate info --coll` has all "
        "options.\n\n"
        "Without names, all topics run:\n\n");
    for (int i = 0; i < NTOPICS; i++)
        printf("  %-11s %s\n", topics[i]->name, topics[i]->doc);
    printf("\nOptions:\n"
           "  --quick     one or two points of each table, to check that everything runs\n"
           "  --repeat 3  run each job this many times; the best result counts (default 3, with --quick 1)\n"
           "  --svg DIR   write the curves as DIR/7.5.svg to DIR/7.8.svg\n"
           "  --json      one JSON document instead of tables; progress is on standard error either way\n"
           "  --help\n\n"
           "Where there are fewer than 8 cores the ranks take turns: compare figures of one row.\n\n"
           "Examples:\n"
           "  fishplate bench bcast skew\n"
           "  fishplate bench bcast --repeat 1 --json\n"
           "  fishplate sim bcast --nodes 8,64,1024    a tree of messages on simulated machines\n");
}

/* ---- in a rank ---- */

void bcast_check(struct ib_rank *r, char *data, int bytes)
{
    for (int root = 0; root < 2; root++) {
        const unsigned seed = (unsigned)(31 * root + bytes);
        bench_fill(data, (size_t)bytes, r->bench.rank == root ? seed : seed + 1);
        MPI_Bcast(data, bytes, MPI_BYTE, root, r->bench.comm);
        r->bench.errors += bench_check(data, (size_t)bytes, seed);
    }
}

void bcast_tell_used(const struct ib_rank *r)
{
    static const char *const names[] = {"coll_bcast_multicast", "mcast_resent_to_all", "mcast_resent_to_one",
                                        "mcast_window_waits"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ib_tell(r, IB_COUNT, ib_counter(names[i]), "%s", names[i]); /* of rank 0, the root */
}

double bcast_median(double *samples, int n)
{
    struct bench_stats s;
    bench_stats_of(samples, n, 1, &s);
    return s.median;
}

/* ---- in the driver ---- */

void bcast_jobs(struct ib_driver *d, const char *topic, unsigned mask, struct bcast_figures *f)
{
    *f = (struct bcast_figures){{NULL}};
    for (int i = 0; i < BCAST_DESIGNS; i++) {
        char setting[128];
        const int failures = d->failures;
        if (!(mask >> i & 1))
            continue;
        snprintf(setting, sizeof(setting), "FISHPLATE_COLL=%s", bcast_designs[i].setting);
        const struct ib_job job = {.topic = topic,
                                   .ranks = BCAST_NODES,
                                   .nodes = BCAST_NODES,
                                   .settings = setting,
                                   .hcas = BCAST_LINKS};
        f->of[i] = ib_run(d, &job, "%s", "");
        if (i == BCAST_ORIGINAL || d->failures != failures || ib_figure(f->of[i], "coll_bcast_multicast") > 0)
            continue;
        fprintf(stderr, "bench bcast: the job of %s did not multicast.\n", bcast_designs[i].name);
        d->failures++;
    }
}

void bcast_figures_free(struct bcast_figures *f)
{
    for (int i = 0; i < BCAST_DESIGNS; i++)
        if (f->of[i])
            ib_figures_free(f->of[i]);
}

void bcast_say_used(struct ib_table *t, const struct bcast_figures *f)
{
    const struct ib_figures *w = f->of[BCAST_WINDOW];
    const double again = ib_figure(w, "mcast_resent_to_all") + ib_figure(w, "mcast_resent_to_one");
    ib_ours(t,
            "the root of the last job of Window sent %.0f broadcasts by multicast; %.0f packets were sent "
            "again, and it waited %.0f times for room in the window.",
            ib_figure(w, "coll_bcast_multicast"), again, ib_figure(w, "mcast_window_waits"));
}

void bcast_column_designs(struct ib_table *t)
{
    for (int i = 0; i < BCAST_DESIGNS; i++)
        ib_column(t, "%s", bcast_designs[i].name);
}

double bcast_gain(double original, double ours)
{
    return (original / ours - 1) * 100;
}

int bench_bcast_main(void (*draw)(const struct ib_curves *c, FILE *out), int argc, char **argv)
{
    static const struct ib_command command = {
        .name = "bcast", .topics = topics, .ntopics = NTOPICS, .usage = usage, .draws = true};
    struct ib_driver d = {.draw = draw};
    return ib_command_main(&command, &d, argc, argv);
}

/* bcast.h: `fishplate-lab bcast`: broadcast by multicast against a tree of messages [Liu04 chapter 7]: each
 * figure of the paper, on virtual nodes whose links have a latency and a rate. It runs jobs and prints tables
 * as `fishplate-lab ib` does (../ib/ib.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_BCAST_BCAST_H
#define FP_LAB_BCAST_BCAST_H

#include "lab/ib/peers.h"

int bench_bcast_main(void (*draw)(const struct ib_curves *c, FILE *out), int argc, char **argv);

/* The designs of [Liu04 chapter 7], by the paper's names. */
enum { BCAST_ORIGINAL, BCAST_BASIC, BCAST_WINDOW, BCAST_COROOT, BCAST_AGGREGATE, BCAST_DESIGNS };
#define BCAST_ALL ((1u << BCAST_DESIGNS) - 1)
struct bcast_design {
    const char *name, *setting;
};
extern const struct bcast_design bcast_designs[BCAST_DESIGNS];

/* The links are slower than the paper's so that they stay the bottleneck although eight processes share a few
 * cores. */
#define BCAST_LINKS "250MB/s,latency=20us"
enum { BCAST_NODES = 8 };

/* ---- in a rank, whose job has one design in FISHPLATE_COLL ---- */

/* Runs one broadcast from each of two roots and checks the received data. */
void bcast_check_data(struct ib_rank *r, char *data, int bytes);
void bcast_report_counters(const struct ib_rank *r); /* Reports the multicast counters of the root. */
double bcast_median(double *samples, int n);

/* ---- in the driver ---- */

/* Runs the jobs of a topic on BCAST_NODES nodes with one process each: one job for each design of the mask in
 * turn, then one for each other MPI library on the same fabric. A job of a multicast design that sent no
 * multicast packets counts as failed. */
enum { BCAST_LINES = BCAST_DESIGNS + IB_PEERS };
struct bcast_figures {
    int n;
    const char *name[BCAST_LINES];
    struct ib_figures *figures[BCAST_LINES]; /* NULL: not in the mask */
};
void bcast_run_jobs(struct ib_driver *d, const char *topic, unsigned mask, struct bcast_figures *f);
/* As bcast_run_jobs, but on `nodes` nodes and without other MPI libraries. */
void bcast_run_jobs_on_nodes(struct ib_driver *d, const char *topic, unsigned mask, int nodes,
                             struct bcast_figures *f);
void bcast_figures_free(struct bcast_figures *f);
/* Adds a remark with the multicast counters of the job with design BCAST_WINDOW. */
void bcast_print_counters(struct ib_table *t, const struct bcast_figures *f);
void bcast_add_columns(struct ib_table *t, const struct bcast_figures *f);
/* Adds one cell for each job, its figure times `factor`, to the table row, and a point to each curve. */
void bcast_add_row(struct ib_table *t, const struct bcast_figures *f, struct ib_curves *c, int point,
                   double factor, int digits, const char *figure);
/* Adds remarks: the best multicast design compared with the best other library at one point, and the
 * libraries that are missing. */
void bcast_print_peers(struct ib_table *t, const struct ib_driver *d, const struct bcast_figures *f,
                       const char *figure, const char *where, bool higher);
/* Improvement of `ours` over `original` in percent, by the paper's formula. */
double bcast_gain_percent(double original, double ours);

extern const struct ib_topic bcast_latency, bcast_skew, bcast_throughput, bcast_cost;

#endif

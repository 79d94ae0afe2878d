/* bcast.h: `fishplate-lab bcast`: broadcast by multicast against a tree of messages [Liu04 chapter 7]: each figure of the
 * paper, on virtual nodes whose links have a latency and a rate. It runs jobs and prints tables as `fishplate-lab ib` does
 * (../ib/ib.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_BCAST_BCAST_H
#define FP_LAB_BCAST_BCAST_H

#include "lab/ib/peers.h"

int bench_bcast_main(void (*draw)(const struct ib_curves *c, FILE *out), int argc, char **argv);

/* The designs of the paper, by its names, as FISHPLATE_COLL names them. */
enum { BCAST_ORIGINAL, BCAST_BASIC, BCAST_WINDOW, BCAST_COROOT, BCAST_AGGREGATE, BCAST_DESIGNS };
#define BCAST_ALL ((1u << BCAST_DESIGNS) - 1)
struct bcast_design {
    const char *name, *setting;
};
extern const struct bcast_design bcast_designs[BCAST_DESIGNS];

/* Slower links than the paper's: eight processes share few cores here, and the links must be the bottleneck all the same. */
#define BCAST_LINKS "250MB/s,latency=20us"
enum { BCAST_NODES = 8 };

/* ---- in a rank, whose job has one design in FISHPLATE_COLL ---- */

/* One broadcast from each of two roots, whose data is checked. */
void bcast_check(struct ib_rank *r, char *data, int bytes);
void bcast_report_used(const struct ib_rank *r); /* what multicast did at the root */
double bcast_median(double *samples, int n);

/* ---- in the driver ---- */

/* The jobs of a topic on BCAST_NODES nodes, one process each: one for each design of the mask, in turn, then other MPI libraries on the
 * same fabric. A job of a design with multicast that did not multicast counts as failed. */
enum { BCAST_LINES = BCAST_DESIGNS + IB_PEERS };
struct bcast_figures {
    int n;
    const char *name[BCAST_LINES];
    struct ib_figures *of[BCAST_LINES]; /* NULL: not in the mask */
};
void bcast_jobs(struct ib_driver *d, const char *topic, unsigned mask, struct bcast_figures *f);
/* The same without other libraries, on any number of nodes. */
void bcast_jobs_of(struct ib_driver *d, const char *topic, unsigned mask, int nodes, struct bcast_figures *f);
void bcast_figures_free(struct bcast_figures *f);
/* Adds a line to the table with the multicast counters of Window's job. */
void bcast_print_used(struct ib_table *t, const struct bcast_figures *f);
void bcast_columns(struct ib_table *t, const struct bcast_figures *f);
/* A row: one value of each job, times `factor`; also as a point of the curves. */
void bcast_row(struct ib_table *t, const struct bcast_figures *f, struct ib_curves *c, int point,
               double factor, int digits, const char *figure);
/* Prints the best of our variants and of the other libraries at one point, and the libraries that are missing. */
void bcast_print_peers(struct ib_table *t, const struct ib_driver *d, const struct bcast_figures *f,
                       const char *figure, const char *where, bool higher);
/* By how much is `ours` better than `original`, in percent, as the paper counts. */
double bcast_gain(double original, double ours);

extern const struct ib_topic bcast_latency, bcast_skew, bcast_throughput, bcast_cost;

#endif

/* barrier.h: `fishplate-lab barrier`: compares all barrier algorithms over virtual nodes. A driver starts one
 * job for each shape (ranks, nodes); the ranks of a job measure all settings in turn and report each time
 * under the name of its setting.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_STUDY_BARRIER_H
#define FP_LAB_STUDY_BARRIER_H

#include "lab/ib/ib.h"

#include "lab/chart.h"
#include "lab/logp/barrier_model.h"

/* One barrier algorithm with its parameters, in the syntax of FISHPLATE_COLL without the prefix
 * "barrier=". Entry 0 is "": the library chooses. */
struct barrier_setting {
    const char *text;
    const char *algorithm; /* NULL: the library chooses */
    bool by_node;          /* only one rank of each node takes part */
    int parameter[COLL_PARAMETERS];
};
extern const struct barrier_setting barrier_settings[];
extern const int barrier_nsettings;
/* Whether the setting uses the barrier network, which serves MPI_COMM_WORLD only. */
bool barrier_uses_network(const struct barrier_setting *s);
const char *barrier_setting_label(int setting); /* "auto" for the library's own choice */

/* Measured figures of one setting on one shape; NAN: the setting cannot run on this shape. */
struct barrier_figures {
    double us; /* Time of one barrier in us: median of the batches of the slowest rank */
    double choose,
        /* Medians of the even (choose) and odd (judge) batches: `choose` selects the fastest setting,
         * `judge` rates the selection */
        judge;
    double messages;     /* Network operations of one barrier, sum over all ranks */
    double max_messages; /* Network operations of one barrier on the rank that executes most */
    double bytes;        /* Bytes allocated for schedules and flags on the rank that uses most */
};
enum { BARRIER_SETTINGS_MAX = 32, BARRIER_SHAPES_MAX = 32 };
struct barrier_shape {
    int ranks, nodes;
    struct barrier_figures figures[BARRIER_SETTINGS_MAX];
};

struct barrier_study {
    struct ib_driver driver;
    double budget; /* Time limit in seconds for all jobs */
    const char *html;
    bool json;
    int nshapes, skipped;
    struct barrier_shape shape[BARRIER_SHAPES_MAX];
};

int bench_barrier_main(const struct bench_host *host, int argc, char **argv);
extern const struct ib_topic barrier_topic;

/* figures.c: time of the library's own choice divided by the time of the fastest setting, for one shape;
 * NAN: not measured. *best is the fastest setting; the barrier network is excluded because it serves one
 * communicator of one job. */
double barrier_regret(const struct barrier_shape *s, int *best);
double barrier_regret_mean(const struct barrier_study *s); /* geometric mean over all shapes */

/* tables.c prints the results as text and JSON, page.c writes them as an HTML page. */
void barrier_print_text(const struct barrier_study *s);
void barrier_write_json(const struct barrier_study *s);
bool barrier_write_page(const struct barrier_study *s); /* false: failed, and an error was printed */

/* figures.c counts the network operations of a schedule and draws the charts of the paper. */
struct barrier_counts {
    long messages, max_messages; /* sends and receives: sum over all ranks; maximum of a rank */
    long rounds;                 /* largest number of fence steps of a rank */
};
bool barrier_count_operations(const struct barrier_setting *s, int ranks, struct barrier_counts *out);
void barrier_chart_measured(const struct barrier_study *s, bool one_each, struct chart *out);
void barrier_chart_kinds(const struct barrier_study *s, struct chart *out);
void barrier_chart_lop(int times, struct chart *out);    /* [Hoefler05 fig. 2.38] */
void barrier_chart_nway(bool rounds, struct chart *out); /* [Hoefler05 fig. 2.39] */

#endif

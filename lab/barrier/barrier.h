/* barrier.h: `fishplate-lab barrier`: compares all barrier algorithms over virtual nodes. A driver starts one
 * job for each shape (ranks, nodes); the ranks of a job measure all settings in turn and report each time
 * under the name of its setting.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_STUDY_BARRIER_H
#define FP_LAB_STUDY_BARRIER_H

#include "lab/ib/ib.h"

#include "tools/fishplate/chart.h"
#include "lab/logp/barrier_model.h"

/* A barrier as FISHPLATE_COLL names it, without "barrier="; the first is "", the library's own choice. */
struct barrier_setting {
    const char *text;
    const char *algorithm; /* NULL: the library chooses */
    bool by_node;          /* only one rank of each node takes part */
    int parameter[COLL_PARAMETERS];
};
extern const struct barrier_setting barrier_settings[];
extern const int barrier_nsettings;
/* is the dedicated barrier network, which serves MPI_COMM_WORLD only */
bool barrier_uses_network(const struct barrier_setting *s);
const char *barrier_setting_label(int setting); /* "auto" for the library's own choice */

/* The figures of one setting on one shape; NAN: the setting cannot run there. */
struct barrier_figures {
    double us; /* Time of one barrier in us: median of the batches of the slowest rank */
    double choose,
        /* Medians of the even and of the odd batches: one half selects the fastest setting, the other
         * measures it */
        judge;
    double messages; /* Network operations of one barrier, sum over all ranks */
    double most;     /* Network operations of one barrier, of the rank with the most */
    double bytes;    /* Memory of the rank with the most */
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

/* figures.c: time of the library's own choice divided by that of the fastest setting, for one shape; NAN if
 * it was not measured. *best is the fastest setting; the barrier network is excluded because it serves one
 * communicator of one job. */
double barrier_regret(const struct barrier_shape *s, int *best);
double barrier_regret_mean(const struct barrier_study *s); /* geometric mean over all shapes */

/* tables.c, page.c: the results as text and as a page. */
void barrier_print_text(const struct barrier_study *s);
void barrier_write_json(const struct barrier_study *s);
bool barrier_write_page(const struct barrier_study *s); /* false: failed, and an error was printed */

/* figures.c: network operations of a schedule, and the charts of the paper. */
struct barrier_counts {
    long messages, most; /* sends and receives: of all ranks, of the rank with the most */
    long rounds;         /* fences of the rank with the most */
};
bool barrier_count_operations(const struct barrier_setting *s, int ranks, struct barrier_counts *out);
void barrier_chart_measured(const struct barrier_study *s, bool one_each, struct chart *out);
void barrier_chart_kinds(const struct barrier_study *s, struct chart *out);
void barrier_chart_lop(int times, struct chart *out);    /* figure 2.38 */
void barrier_chart_nway(bool rounds, struct chart *out); /* figure 2.39 */

#endif

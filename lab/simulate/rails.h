/* rails.h: the parts of `fishplate-lab sim rails`: runs, figures, and comparison with the papers'
 * statements.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_SIMULATE_RAILS_H
#define FP_LAB_SIMULATE_RAILS_H

#include "cli/progress.h"
#include "lab/sim/stream.h"
#include "lab/sim/traffic.h"
#include "lab/chart.h"

enum { STUDY_FIGURES = 32 };

/* Parameters of one run of the load study. */
struct study_key {
    enum alloc_policy policy;
    int nodes, rails;
    double ratio, kib, load;
    int shortest_kib; /* hybrid: messages longer than this number of KiB reserve rails */
};

struct study {
    int nodes;         /* number of nodes that replaces the paper's 128 */
    double length;     /* factor of the length of the runs */
    double control_ns; /* processor time of an adapter for one control frame */
    uint64_t seed;
    struct machine machine;
    bool quiet;
    struct study_run *runs; /* each run is simulated once */
    size_t runs_count, runs_capacity;
    uint64_t events;
    struct progress progress;
};

/* Report of a run, from an earlier simulation or a new one. Ends the process if memory runs out. */
struct traffic_report study_report_of_run(struct study *s, struct study_key key);
/* The largest accepted load: the throughput if far more is offered. */
double study_max_accepted(struct study *s, struct study_key key);
/* The smallest load of which more than a twentieth is not accepted. */
double study_saturation(struct study *s, struct study_key key);
void study_free(struct study *s);

/* A line of a figure: a policy with its name and parameters. */
struct study_line {
    const char *name;
    enum alloc_policy policy;
    double ratio;
    int shortest_kib;
};
/* basic, local, dynamic; the latter two with and without stripes */
extern const struct study_line study_lines[];
enum { LINE_BASIC, LINE_LOCAL, LINE_LOCAL_STRIPED, LINE_DYNAMIC, LINE_DYNAMIC_STRIPED, STUDY_LINES };

struct study_key study_make_key(const struct study_line *line, int nodes, int rails, double kib, double load);

/* Makes a figure of the papers by its number, "3" to "16" or "8.16" to "8.19". Returns false if the number is
 * unknown. */
bool study_make_figure(struct study *s, const char *id, struct chart *out);
extern const char *const figure_ids[]; /* all figures in order; the last entry is NULL */
bool stream_make_figure(const char *id, double length, struct chart *out, uint64_t *events);

/* A claim of a paper and our result. */
struct statement {
    const char *where, *claim;
    char found[160];
    bool agrees;
    const char *why; /* NULL, or the known reason why our result differs */
};
enum { STATEMENTS_MAX = 24 };
int statements_check(struct study *s, struct statement out[STATEMENTS_MAX]);
int stream_check_statements(double length, struct statement *out, int room, uint64_t *events);

#endif

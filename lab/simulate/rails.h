/* rails.h: the parts of `fishplate-lab sim rails`: the runs, the figures, and the papers' statements beside them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_SIMULATE_RAILS_H
#define FP_LAB_SIMULATE_RAILS_H

#include "cli/progress.h"
#include "lab/sim/stream.h"
#include "lab/sim/traffic.h"
#include "tools/fishplate/chart.h"

enum { STUDY_FIGURES = 32 };

/* One run of the load study. */
struct study_key {
    enum alloc_policy policy;
    int nodes, rails;
    double ratio, kib, load;
    int shortest_kib; /* hybrid */
};

struct study {
    int nodes;         /* where the paper has 128 */
    double length;     /* of runs, times what is usual */
    double control_ns; /* an adapter's processor, for one control frame */
    uint64_t seed;
    struct machine machine;
    bool quiet;
    struct study_run *runs; /* each is made once */
    size_t runs_count, runs_room;
    uint64_t events;
    struct progress progress;
};

/* The report of a run, made now or before. Ends the process when memory runs out. */
struct traffic_report study_run(struct study *s, struct study_key key);
/* The largest accepted load: the throughput when far more is offered. */
double study_most(struct study *s, struct study_key key);
/* The smallest load of which more than a twentieth is not accepted. */
double study_saturation(struct study *s, struct study_key key);
void study_free(struct study *s);

/* A line of a figure: a policy with its name. */
struct study_line {
    const char *name;
    enum alloc_policy policy;
    double ratio;
    int shortest_kib;
};
extern const struct study_line study_lines[]; /* basic, local, dynamic, without and with stripes */
enum { LINE_BASIC, LINE_LOCAL, LINE_LOCAL_STRIPED, LINE_DYNAMIC, LINE_DYNAMIC_STRIPED, STUDY_LINES };

struct study_key study_key_of(const struct study_line *line, int nodes, int rails, double kib, double load);

/* A figure of the papers by its number, "3" to "16" and "8.16" to "8.19"; false: there is none of that name. */
bool figure_make(struct study *s, const char *id, struct chart *out);
extern const char *const figure_ids[]; /* all, in order; the last is NULL */
bool stream_figure(const char *id, double length, struct chart *out, uint64_t *events);

/* A claim of a paper and the finding. */
struct statement {
    const char *where, *claim;
    char found[160];
    bool agrees;
    const char *why; /* NULL, or why ours differs, as far as it is known */
};
enum { STATEMENTS_MAX = 24 };
int statements_check(struct study *s, struct statement out[STATEMENTS_MAX]);
int stream_statements(double length, struct statement *out, int room, uint64_t *events);

#endif

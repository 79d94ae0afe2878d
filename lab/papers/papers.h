/* papers.h: the parts of `fishplate-lab papers`. A source is one or more commands that print JSON; an entry is a figure or
 * table of a paper, with the claim of the paper, the source that measures it here, and checks that judge the two.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_PAPERS_H
#define FP_LAB_PAPERS_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/json_read.h"

enum { VARIANTS_MAX = 16, ROUNDS_MAX = 16, COLUMNS_MAX = 16, CHECKS_MAX = 24, POINTS_MAX = 40 };

/* ---- What there is to measure: sources.c, entries_*.c ---- */

/* One command. Its words are cut at blanks; "fishplate-lab", "fishplate" and "mpiexec" are those of this installation. */
struct variant {
    const char *label; /* names a column where a source has several */
    const char *quick, *full;
};

struct source {
    const char *name;
    bool same_always;     /* gives the same figures every time: one round is enough */
    bool untimed;         /* counts; other programs on the machine change nothing */
    bool quick_too_brief; /* a quick run is too short, or its problems too small, for a verdict */
    bool virtual_nodes;   /* needs an adapter, or softib */
    double quick_seconds, full_seconds; /* of one round, all variants: for the first estimate */
    struct variant variants[VARIANTS_MAX];
};

extern const struct source sources[];
extern const int sources_count;

/* How a table comes out of a source's documents. */
enum take {
    TAKE_TABLE,   /* {"tables": [{"title", "columns", "rows"}]}: the one whose title begins with `what` */
    TAKE_TESTS,   /* fishplate bench: tests named in `what`, parted by blanks; rows are sizes */
    TAKE_KERNELS, /* fishplate-lab kernels: seconds; rows are kernels, columns variants */
    TAKE_FIGURE, /* {"figures": [{"figure", "x", "y", "lines"}]}, as of fishplate-lab sim rails: figure `what` */
    TAKE_STATEMENTS, /* fishplate-lab sim rails: statements of which the paper's place begins with `what` */
    TAKE_FLOW,       /* kernels: messages of flow control; variants are "program scheme" */
    TAKE_PROFILE, /* fishplate prof: rows are programs, one a variant; `what` is "sizes", "calls" or "reuse" */
    TAKE_WAITS, /* fishplate prof: seconds of a rank in point-to-point calls; variants are "program column" */
    TAKE_SIM,   /* fishplate-lab sim: us; rows are nodes, columns algorithms */
};

enum better { BETTER_LOWER, BETTER_HIGHER, BETTER_NEITHER };

enum check_kind {
    CHECK_NONE,
    CHECK_GAIN,   /* a is better than b by `want` per cent, the paper's number: half to twice of it */
    CHECK_BETTER, /* a is better than b by `want` per cent at least; the paper prints no number */
    CHECK_ALIKE,  /* a and b differ by at most `want` per cent, in the mean of rows */
    CHECK_GROWS,  /* from the first row to the last, a grows by a factor of `want` at least */
    CHECK_FALLS,  /* from the first row to the last, a falls to `want` times the first or less */
    CHECK_STAYS,  /* the highest row of a is at most `want` per cent above the lowest */
    CHECK_BEST,  /* a is the best column among those named in b (blanks part) or all, in the median of rows */
    CHECK_WORST, /* the reverse */
    CHECK_PEAK,  /* a is best in the row named `want` */
    CHECK_NUMBER,     /* row a, column b is `want` within a factor of `from`; `want` 0: at most `to` */
    CHECK_STATEMENTS, /* statements: as many agree */
    CHECK_BESIDE,     /* nothing to judge: best of a beside `want`, which other hardware had */
};

struct check {
    enum check_kind kind;
    const char *a, *b;
    double want;
    const char *unit; /* CHECK_BESIDE */
    double from,
        to; /* only rows whose names are numbers in this range: the claim speaks of them; 0: no limit */
};

/* A number that the paper prints. */
struct point {
    const char *what;
    double value;
    const char *unit;
};

enum { PAPER_LIU, PAPER_TAKAGI, PAPER_COLL, PAPER_SHIPMAN, PAPER_HOEFLER, PAPERS };

struct paper {
    const char *key, *work;
};
extern const struct paper papers[PAPERS];

struct entry {
    const char *id; /* of the page's links, and of --only */
    int paper;
    const char *chapter, *figure, *title;
    const char *claim; /* of the paper, in our words */
    struct point points[POINTS_MAX];
    const char *source;
    enum take take;
    const char *what;
    enum better better;
    const char *y; /* quantity and unit; NULL: no plot */
    struct check checks[CHECKS_MAX];
    const char *why;    /* what is known to be unlike, when a check differs; NULL */
    bool is_model;      /* computed by a model's equations, not timed */
    const char *fitted; /* parameters that were fitted to the judged numbers: never an agreement; NULL */
};

extern const struct entry entries_liu[], entries_multicast[], entries_programs[], entries_rails[],
    entries_others[];
extern const int entries_liu_count, entries_multicast_count, entries_programs_count, entries_rails_count,
    entries_others_count;

/* A figure that cannot be measured here, and why. */
struct unmeasured {
    int paper;
    const char *figure, *why;
};
extern const struct unmeasured unmeasured[];
extern const int unmeasured_count;

/* ---- What was measured: table.c, judge.c ---- */

struct cell {
    char *text; /* NULL: a number, or nothing */
    double value;
    int samples;
    double sample[ROUNDS_MAX];
};

struct table {
    char *title, *over;
    char *here; /* the comment of the benchmark, or NULL */
    char *names[COLUMNS_MAX];
    int columns, rows;
    struct cell *cells; /* rows * columns; the first column names the row */
};

struct table *table_new(const char *title, const char *over);
void table_free(struct table *t);
int table_column(struct table *t, const char *name);
int table_row(struct table *t);
int table_row_of(struct table *t, const char *text,
                 double number); /* the row of that name, made if need be */
struct cell *table_cell(const struct table *t, int row, int column);
void table_set(struct table *t, int row, int column, double value);
void table_set_text(struct table *t, int row, int column, const char *text);
int table_find(const struct table *t, const char *name); /* a column by its name or how it begins; -1 */
/* The table of an entry from one round's documents, one a variant; NULL when it is not in them. */
struct table *table_collect(const struct entry *e, const struct source *s,
                            const struct value *const *documents);
/* Adds the samples of `more` to `t` where both have the cell. */
void table_merge(struct table *t, const struct table *more);
/* Sets every value from its samples: the best, or the median where neither direction is better. */
void table_settle(struct table *t, enum better better);
void table_print_cell(const struct cell *c, char out[64]);

enum verdict {
    VERDICT_AGREES,
    VERDICT_PARTLY,
    VERDICT_DIFFERS,
    VERDICT_BESIDE,
    VERDICT_UNRELIABLE, /* other programs ran, or rounds contradict each other */
    VERDICT_UNJUDGED,   /* the quick run was too brief */
    VERDICT_FITTED,     /* agrees, but parameters were fitted to these numbers */
    VERDICTS
};
extern const char *const verdict_names[VERDICTS], *const verdict_keys[VERDICTS];

struct finding {
    enum verdict verdict;
    char text[3000];
};

/* A tenth of the processors' time: what an idle system's services use stays below a fiftieth. */
#define OTHERS_MAX 0.1

struct conditions {
    bool is_timed;     /* the figures are times, which other programs change */
    bool is_too_brief; /* a quick run of a source that is then too short */
    double others;     /* share of all processors' time that other programs used, 0 to 1 */
};
void judge(const struct entry *e, const struct table *t, const struct conditions *c, struct finding *out);

/* ---- A run: run.c ---- */

enum change { CHANGE_NONE, CHANGE_BETTER, CHANGE_WORSE, CHANGE_NOISE, CHANGE_UNKNOWN };
extern const char *const change_names[];

struct result {
    const struct entry *entry;
    const struct source *source;
    const char *missing; /* why it was not measured; NULL: it was */
    struct table *table;
    struct finding finding;
    double others;      /* share of the processors' time that other programs used meanwhile */
    enum change change; /* against an earlier run */
    double ratio, p;    /* of it */
};

struct papers_run {
    bool quick, fresh, list, terminal;
    int rounds;
    const char *html, *json, *against, *only;
    char program[PATH_MAX], folder[PATH_MAX], work[PATH_MAX];
    char machine[128], kernel[256], date[64], settings[512];
    double load_before, load_after, seconds;
    int cores, resumed, failures;
    struct result *results;
    int results_count;
};

/* Runs the selected entries and fills the results; false: none could be run. */
bool papers_measure(struct papers_run *run);
/* Removes the answers that were kept. */
void papers_remove_files(const struct papers_run *run);
void papers_command(const struct papers_run *run, const struct variant *v, char *out, size_t size);

/* ---- What comes out ---- */

bool papers_write_json(const struct papers_run *run, const char *path);
bool papers_write_page(const struct papers_run *run, const char *path);
void papers_print(const struct papers_run *run);
void plot_write(const struct entry *e, const struct table *t, FILE *out);

/* Compares with the document of an earlier run; false: it cannot be read. */
bool papers_compare(struct papers_run *run, const char *path);
/* Two-sided probability of Student's t with that many degrees of freedom. */
double student_p(double t, double freedom);
/* Welch's test of the means of two lists; false: too few values. */
bool welch(const double *a, int na, const double *b, int nb, double *ratio, double *p);

int bench_papers_main(int argc, char **argv);

#endif

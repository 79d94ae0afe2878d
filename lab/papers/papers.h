/* papers.h: the parts of `fishplate-lab papers`. A source is one or more commands that print JSON; an entry
 * is a figure or table of a paper, with the claim of the paper, the source that measures it here, and checks
 * that judge the two.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_PAPERS_H
#define FP_LAB_PAPERS_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "lab/json_read.h"

enum { VARIANTS_MAX = 16, ROUNDS_MAX = 16, COLUMNS_MAX = 16, CHECKS_MAX = 24, POINTS_MAX = 40 };

/* ---- Measurements: sources.c, entries_*.c ---- */

/* One command line; words are separated by blanks. "fishplate-lab", "fishplate" and "mpiexec" are the
 * programs of this installation. */
struct variant {
    const char *label; /* names a column if a source has several variants */
    const char *quick, *full;
};

struct source {
    const char *name;
    bool same_always;     /* every run gives the same figures: one round is enough */
    bool untimed;         /* counts, not times: other programs on the machine have no influence */
    bool quick_too_brief; /* a quick run is too short, or its problems too small, for a verdict */
    double quick_seconds, full_seconds; /* seconds of one round with all variants, for the first estimate */
    struct variant variants[VARIANTS_MAX];
};

extern const struct source sources[];
extern const int sources_count;

/* Method that makes the table of an entry from the documents of its source. */
enum take {
    TAKE_TABLE, /* {"tables": [{"title", "columns", "rows"}]}: the table whose title begins with `selector` */
    TAKE_TESTS, /* fishplate bench: tests named in `selector`, separated by blanks; rows are sizes */
    TAKE_KERNELS, /* fishplate-lab kernels: seconds; rows are kernels, columns variants */
    /* {"figures": [{"figure", "x", "y", "lines"}]}, from fishplate-lab sim rails: figure `selector` */
    TAKE_FIGURE,
    TAKE_STATEMENTS, /* fishplate-lab sim rails: statements whose place in the paper begins with `selector` */
    TAKE_FLOW,       /* kernels: flow-control messages; variants are "program scheme" */
    /* fishplate prof: rows are programs, one for each variant; `selector` is "sizes", "calls" or "reuse" */
    TAKE_PROFILE,
    TAKE_WAITS, /* fishplate prof: seconds of a rank in point-to-point calls; variants are "program column" */
    TAKE_SIM,   /* fishplate-lab sim: us; rows are nodes, columns algorithms */
};

enum better { BETTER_LOWER, BETTER_HIGHER, BETTER_NEITHER };

enum check_kind {
    CHECK_NONE,
    CHECK_GAIN,   /* a is better than b by half to twice the `want` percent that the paper prints */
    CHECK_BETTER, /* a is better than b by at least `want` percent; the paper prints no number */
    CHECK_ALIKE,  /* a and b differ by at most `want` percent, in the mean of the rows */
    CHECK_GROWS,  /* from the first row to the last, a grows by a factor of at least `want` */
    CHECK_FALLS,  /* from the first row to the last, a falls to `want` times the first or less */
    CHECK_STAYS,  /* the highest row of a is at most `want` per cent above the lowest */
    /* a is the best of the columns named in b (separated by blanks) or of all, in the median of the rows */
    CHECK_BEST,
    CHECK_WORST,      /* a is the worst of these columns */
    CHECK_PEAK,       /* a is best in the row named `want` */
    CHECK_NUMBER,     /* row a, column b equals `want` within a factor of `from`; `want` 0: at most `to` */
    CHECK_STATEMENTS, /* all statements of the source agree with the paper */
    CHECK_PRINT_ONLY, /* no verdict: prints the best of a and `want`, which other hardware reached */
};

struct check {
    enum check_kind kind;
    const char *a, *b;
    double want;
    const char *unit; /* unit of `want`, for CHECK_PRINT_ONLY only */
    double from, to;  /* the check uses only rows whose names are numbers in this range; 0: no limit */
};

/* A number that the paper prints. */
struct point {
    const char *name;
    double value;
    const char *unit;
};

enum { PAPER_LIU, PAPER_TAKAGI, PAPER_COLL, PAPER_SHIPMAN, PAPER_HOEFLER, PAPERS };

struct paper {
    const char *key, *work;
};
extern const struct paper papers[PAPERS];

struct entry {
    const char *id; /* HTML anchor of the entry, and argument of --only */
    int paper;
    const char *chapter, *figure, *title;
    const char *claim; /* claim of the paper, in our words */
    struct point points[POINTS_MAX];
    const char *source;
    enum take take;
    const char *selector; /* part of the source, as described at enum take; or NULL */
    enum better better;
    const char *y; /* quantity and unit; NULL: no plot */
    struct check checks[CHECKS_MAX];
    const char *why; /* known difference of our conditions, printed if a check fails; or NULL */
    bool is_model;   /* computed from a model's equations, not timed */
    /* NULL, or a sentence on parameters that were fitted to the judged numbers or chosen with them known: the
     * verdict is then VERDICT_FITTED, never VERDICT_AGREES */
    const char *fitted;
};

extern const struct entry entries_liu[], entries_multicast[], entries_programs[], entries_rails[],
    entries_others[];
extern const int entries_liu_count, entries_multicast_count, entries_programs_count, entries_rails_count,
    entries_others_count;

/* A figure that cannot be measured here, with the reason. */
struct unmeasured {
    int paper;
    const char *figure, *why;
};
extern const struct unmeasured unmeasured[];
extern const int unmeasured_count;

/* ---- Results: table.c, judge.c ---- */

struct cell {
    char *text; /* NULL: a number, or an empty cell */
    double value;
    int samples;
    double sample[ROUNDS_MAX];
};

struct table {
    char *title, *over;
    char *here; /* remark of the benchmark, or NULL */
    char *names[COLUMNS_MAX];
    int columns, rows;
    struct cell *cells; /* rows * columns; column 0 names the row */
};

struct table *table_new(const char *title, const char *over);
void table_free(struct table *t);
int table_add_column(struct table *t, const char *name);
int table_add_row(struct table *t);
int table_find_row(struct table *t, const char *text, double number); /* finds or adds the row of that name */
struct cell *table_cell(const struct table *t, int row, int column);
void table_set_number(struct table *t, int row, int column, double value);
void table_set_text(struct table *t, int row, int column, const char *text);
/* Finds a column by its name or by the beginning of its name; -1: no such column. */
int table_find_column(const struct table *t, const char *name);
/* Makes the table of an entry from the documents of one round, one for each variant; NULL: the documents
 * lack the table. */
struct table *table_collect(const struct entry *e, const struct source *s,
                            const struct value *const *documents);
/* Adds the samples of `more` to the cells of `t` that both tables have. */
void table_merge(struct table *t, const struct table *more);
/* Computes every value from its samples: the best, or the median if neither direction is better. */
void table_compute_values(struct table *t, enum better better);
void table_print_cell(const struct cell *c, char out[64]);

enum verdict {
    VERDICT_AGREES,
    VERDICT_PARTLY,
    VERDICT_DIFFERS,
    VERDICT_NOT_COMPARABLE,
    VERDICT_UNRELIABLE, /* other programs ran during the measurement, or rounds contradict each other */
    VERDICT_UNJUDGED,   /* the quick run was too brief */
    VERDICT_FITTED,     /* agrees, but parameters were fitted to these numbers or chosen with them known */
    VERDICTS
};
extern const char *const verdict_names[VERDICTS], *const verdict_keys[VERDICTS];

struct finding {
    enum verdict verdict;
    char text[3000];
};

/* Largest share of the processors' time that other programs may use; an idle system uses less than 0.02. */
#define OTHERS_MAX 0.1

struct conditions {
    bool is_timed;     /* the figures are times, which other programs influence */
    bool is_too_brief; /* a quick run of a source whose quick runs are too short */
    double others;     /* share of all processors' time that other programs used, 0 to 1 */
};
void judge_entry(const struct entry *e, const struct table *t, const struct conditions *c,
                 struct finding *out);

/* ---- A run: run.c ---- */

enum change { CHANGE_NONE, CHANGE_BETTER, CHANGE_WORSE, CHANGE_NOISE, CHANGE_UNKNOWN };
extern const char *const change_names[];

struct result {
    const struct entry *entry;
    const struct source *source;
    struct table *table; /* NULL: the entry was not measured */
    char missing[400];   /* reason why the entry was not measured */
    struct finding finding;
    double others;      /* share of the processors' time that other programs used during the measurement */
    enum change change; /* compared with an earlier run */
    double ratio, p;    /* ratio and significance of the change */
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
/* Removes the stored output of the commands. */
void papers_remove_files(const struct papers_run *run);
void papers_command(const struct papers_run *run, const struct variant *v, char *out, size_t size);

/* ---- Output ---- */

bool papers_write_json(const struct papers_run *run, const char *path);
bool papers_write_page(const struct papers_run *run, const char *path);
void papers_print(const struct papers_run *run);
void plot_write(const struct entry *e, const struct table *t, FILE *out);

/* Compares with the document of an earlier run; false: the document cannot be read. */
bool papers_compare(struct papers_run *run, const char *path);
/* Two-sided probability of Student's t with this number of degrees of freedom. */
double student_two_sided_p(double t, double freedom);
/* Welch's test of the means of two lists; false: too few values. */
bool welch_test(const double *a, int na, const double *b, int nb, double *ratio, double *p);

int bench_papers_main(int argc, char **argv);

#endif

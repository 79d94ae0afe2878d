/* ib.h: `fishplate-lab ib`: gains of the papers' designs, each figure with the paper's. A driver runs
 * one job after another over virtual nodes, with the tunables that the job needs; the ranks of a job measure
 * and report figures by name to the driver. A topic is one file: the part of its ranks, and the tables of
 * their figures. Plain MPI and MPI_T; no header of the library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_IB_IB_H
#define FP_LAB_IB_IB_H

#include "bench/bench.h"

int bench_ib_main(int argc, char **argv);

#define IB_FORMAT(at) __attribute__((format(printf, at, at + 1)))

/* ---- a rank of a job ---- */

struct ib_rank {
    /* rank, size, seconds for each figure; `errors` counts received bytes with wrong values */
    struct bench bench;
    bool quick;
    int argc; /* name=value, from the driver */
    char **argv;
};

/* Kind of a figure: of several runs the driver keeps the lowest time, highest rate, last count. */
enum ib_kind { IB_TIME = 't', IB_RATE = 'r', IB_COUNT = 'c' };

struct ib_topic;
struct ib_command;
/* Main function of a rank for a topic in the command's table. argv: the topic, then name=value. */
int ib_rank_main(const struct ib_command *command, int argc, char **argv);
/* Runs a rank of a topic that is in no table; host may be NULL. argv: name=value. */
int ib_run_rank(const struct bench_host *host, const struct ib_topic *topic, int argc, char **argv);
long ib_read_argument(const struct ib_rank *r, const char *name, long otherwise);
/* Prints a figure on rank 0, for the driver. */
void ib_report_figure(const struct ib_rank *r, enum ib_kind kind, double value, const char *name, ...)
    IB_FORMAT(4);
/* Start and stop reading counters, between MPI_Init and MPI_Finalize. */
void ib_counters_start(void);
void ib_counters_stop(void);
/* Increase of a library counter since ib_counters_start; -1: the library has no counter of this name. */
double ib_counter(const char *name);
double ib_resident_bytes(void); /* resident memory of this process in bytes */
double ib_max_over_ranks(const struct ib_rank *r, double x);
double ib_sum_over_ranks(const struct ib_rank *r, double x);

/* ---- the driver ---- */

struct ib_figures;
struct ib_peers;

/* A command whose topics are measured by this driver: `fishplate-lab ib`, `fishplate-lab rails`. */
struct ib_command {
    const char *name; /* sub-command, such as "ib" */
    const struct ib_topic *const *topics;
    int ntopics;
    void (*usage)(void);
    bool draws; /* the command draws curves and accepts --svg */
    /* Sources of the ranks' program, as patterns below share/fishplate, for other MPI libraries (peers.h).
     * NULL: none. */
    const char *const *peers;
};

/* Curves with common x values, which ib_driver.draw writes as SVG. */
enum { IB_CURVES = 8, IB_POINTS = 64 };
struct ib_curves {
    const char *id, *title, *x_name, *y_name;
    int lines, points;
    const char *name[IB_CURVES];
    double x[IB_POINTS], y[IB_CURVES][IB_POINTS];
};

struct ib_driver {
    const struct ib_command *topics;                    /* NULL: the command has no topics */
    void (*draw)(const struct ib_curves *c, FILE *out); /* writes SVG; NULL: the command cannot draw */
    const char *svg;                                    /* folder, or NULL */
    struct json document;
    unsigned wanted;     /* bit i: topic i is selected */
    const char *command; /* "ib": each rank runs `PROGRAM ib rank TOPIC` */
    bool quick, json, no_peers;
    int repeat;
    char program[4096], mpiexec[4096];
    int cores;
    int jobs, failures, tables;
    double started;
    bool terminal; /* standard error is a terminal: progress overwrites one line */
    char doing[128];
    char adapter[256];      /* device of the last job */
    struct ib_peers *peers; /* NULL: the command compares with no other libraries */
};

struct ib_peer;

struct ib_job {
    const char *topic; /* topic whose function runs in the ranks */
    int ranks, nodes;
    const char *settings;       /* "NAME=VALUE NAME=VALUE" */
    const char *hcas;           /* for mpiexec -hcas; NULL: option not given */
    bool alternate_nodes;       /* place consecutive ranks on different nodes */
    int repeat;                 /* runs of the job; 0: as the user's --repeat */
    const struct ib_peer *peer; /* other MPI library that runs the job; NULL: Fishplate */
};

double ib_now_seconds(void);
bool ib_find_programs(struct ib_driver *d); /* false: not found, and an error was printed */

/* Runs a job several times and returns its merged figures: never NULL, but empty after a failure. `args`
 * is the format of the arguments of the ranks. */
struct ib_figures *ib_run_job(struct ib_driver *d, const struct ib_job *job, const char *args, ...)
    IB_FORMAT(3);
/* NAN: the job reported no figure of this name */
double ib_find_figure(const struct ib_figures *f, const char *name, ...) IB_FORMAT(2);
void ib_figures_free(struct ib_figures *f);

/* Main function of a command: parses options, runs the selected topics or, in a rank, the measurement. */
int ib_command_main(const struct ib_command *command, struct ib_driver *d, int argc, char **argv);
/* Prints the part of the usage text that describes the options. */
void ib_print_options(const struct ib_command *command);
/* With --svg: writes FOLDER/ID.svg and prints its path. */
void ib_draw_curves(struct ib_driver *d, const struct ib_curves *c);

/* A table is built in order: columns, cells row by row, remarks. */
struct ib_table;
struct ib_table *ib_table_open(struct ib_driver *d, const char *title, const char *paper);
void ib_table_add_column(struct ib_table *t, const char *name, ...) IB_FORMAT(2);
void ib_table_add_cell(struct ib_table *t, const char *text, ...) IB_FORMAT(2);
void ib_table_add_number(struct ib_table *t, double value, int digits);
void ib_table_add_remark(struct ib_table *t, const char *text, ...) IB_FORMAT(2);
void ib_table_close(struct ib_table *t);

struct ib_topic {
    const char *name, *doc;
    void (*before)(struct ib_rank *r); /* set-up of a rank before MPI_Init, or NULL */
    void (*rank)(struct ib_rank *r);
    void (*tables)(struct ib_driver *d);
};

extern const struct ib_topic ib_small, ib_polling, ib_flow, ib_rendezvous, ib_memory, ib_reuse;

#endif

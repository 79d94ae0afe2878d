/* ib.h: `fishplate-lab ib`: what the designs of the papers gain, each figure beside the paper's own. A
 * driver starts one job after another over virtual nodes, with the tunables each needs; the ranks of a job
 * measure and tell the driver figures by name. A topic is one file: what its ranks do, and the tables made of
 * their figures.
 *
 * Plain MPI and MPI_T; no header of the library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_IB_IB_H
#define FP_LAB_IB_IB_H

#include "bench/bench.h"

int bench_ib_main(int argc, char **argv);

#define IB_FORMAT(at) __attribute__((format(printf, at, at + 1)))

/* ---- a rank of a job ---- */

struct ib_rank {
    struct bench bench; /* rank, size, seconds for each figure; errors: bytes that were not what was sent */
    bool quick;
    int argc; /* name=value, from the driver */
    char **argv;
};

enum ib_kind { IB_TIME = 't', IB_RATE = 'r', IB_COUNT = 'c' }; /* of several runs: least, most, last */

struct ib_topic;
struct ib_command;
/* A rank of one of its topics. argv: the topic, then name=value. */
int ib_rank_main(const struct ib_command *command, int argc, char **argv);
/* The same for a topic that is in no table; host may be NULL. argv: name=value. */
int ib_rank_run(const struct bench_host *host, const struct ib_topic *topic, int argc, char **argv);
long ib_number(const struct ib_rank *r, const char *name, long otherwise);
/* Rank 0 reports to the driver. */
void ib_report(const struct ib_rank *r, enum ib_kind kind, double value, const char *name, ...) IB_FORMAT(4);
/* Between MPI_Init and MPI_Finalize of a program that reads counters. */
void ib_counters_start(void);
void ib_counters_stop(void);
/* A counter of the library, from its start; -1 when it has none of that name. */
double ib_counter(const char *name);
double ib_resident(void);                              /* bytes of this process in memory */
double ib_highest(const struct ib_rank *r, double x);  /* over all ranks */
double ib_together(const struct ib_rank *r, double x); /* their sum */

/* ---- the driver ---- */

struct ib_figures;
struct ib_peers;

/* A command with topics that measures with this driver: `fishplate-lab ib`, `fishplate-lab rails`. */
struct ib_command {
    const char *name; /* "ib" */
    const struct ib_topic *const *topics;
    int ntopics;
    void (*usage)(void);
    bool draws; /* it has curves, and takes --svg */
    /* Sources of its ranks, as patterns below share/fishplate: other MPI libraries stand beside it (peers.h). NULL: none. */
    const char *const *peers;
};

/* Curves over one axis, drawn by a function of the caller. */
enum { IB_CURVES = 8, IB_POINTS = 64 };
struct ib_curves {
    const char *id, *title, *x_name, *y_name;
    int lines, points;
    const char *name[IB_CURVES];
    double x[IB_POINTS], y[IB_CURVES][IB_POINTS];
};

struct ib_driver {
    const struct ib_command *topics;                    /* of a command that has some */
    void (*draw)(const struct ib_curves *c, FILE *out); /* as SVG; NULL: nobody can */
    const char *svg;                                    /* folder, or NULL */
    struct json document;
    unsigned wanted;     /* bit i: topic i */
    const char *command; /* "ib": ranks run `fishplate bench <command> rank` */
    bool quick, json, no_peers;
    int repeat;
    char program[4096], mpiexec[4096];
    int cores;
    int jobs, failures, tables;
    double started;
    bool terminal; /* progress on one line */
    char doing[128];
    char adapter[256];      /* what the last job ran on */
    struct ib_peers *peers; /* NULL: the command has none */
};

struct ib_peer;

struct ib_job {
    const char *topic; /* whose rank() runs */
    int ranks, nodes;
    const char *settings;       /* "NAME=VALUE NAME=VALUE" */
    const char *hcas;           /* mpiexec -hcas; NULL: not said */
    bool in_turn;               /* neighbouring ranks on different nodes */
    int repeat;                 /* 0: as the user wants */
    const struct ib_peer *peer; /* another MPI library's; NULL: ours */
};

double ib_now(void);                        /* seconds */
bool ib_find_programs(struct ib_driver *d); /* false after a sentence */

/* Runs a job, several times, and returns its best figures; never NULL, but empty after a failure. The format
 * gives the ranks' arguments. */
struct ib_figures *ib_run(struct ib_driver *d, const struct ib_job *job, const char *args, ...) IB_FORMAT(3);
double ib_figure(const struct ib_figures *f, const char *name, ...) IB_FORMAT(2); /* NAN when there is none */
void ib_figures_free(struct ib_figures *f);

/* The whole command: options, topics, and its ranks. */
int ib_command_main(const struct ib_command *command, struct ib_driver *d, int argc, char **argv);
/* The part of its usage text about options. */
void ib_print_options(const struct ib_command *command);
/* With --svg: writes FOLDER/ID.svg, and prints its path. */
void ib_draw(struct ib_driver *d, const struct ib_curves *c);

/* A table: columns, then cells row by row, then remarks. */
struct ib_table;
struct ib_table *ib_table_open(struct ib_driver *d, const char *title, const char *paper);
void ib_column(struct ib_table *t, const char *name, ...) IB_FORMAT(2);
void ib_cell(struct ib_table *t, const char *text, ...) IB_FORMAT(2);
void ib_cell_number(struct ib_table *t, double value, int digits);
void ib_ours(struct ib_table *t, const char *text, ...) IB_FORMAT(2);
void ib_table_close(struct ib_table *t);

struct ib_topic {
    const char *name, *doc;
    void (*before)(struct ib_rank *r); /* MPI_Init, where a rank has something to set up; or NULL */
    void (*rank)(struct ib_rank *r);
    void (*tables)(struct ib_driver *d);
};

extern const struct ib_topic ib_small, ib_polling, ib_flow, ib_rendezvous, ib_memory, ib_reuse;

#endif

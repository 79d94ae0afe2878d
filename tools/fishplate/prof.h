/* prof.h: a profiled job, read from the records of its ranks, and the functions that report on it. tools/prof
 * writes the records.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TOOLS_PROF_H
#define FP_TOOLS_PROF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "links.h"

struct text_table;

enum { PROF_TEXT_LONG = 64 };

enum prof_kind { PROF_P2P, PROF_WAIT, PROF_COLL, PROF_RMA, PROF_IO, PROF_OTHER, PROF_KINDS };

struct prof_stat {
    uint64_t calls, ns, ns_max, sized, bytes;
};

/* Times of the calls of a collective on a rank, summed over groups of consecutive calls (prof_waits.c). */
struct prof_series {
    uint64_t calls, width, groups; /* width: calls in a group */
    double *seconds;
    double waited; /* waiting time for later ranks */
};

/* One MPI function: statistics of each rank, and of all ranks. */
struct prof_function {
    char name[64];
    int id; /* identifier used by events */
    enum prof_kind kind;
    bool nonblocking, startup; /* startup: its time is not part of the recorded time */
    struct prof_stat *ranks;
    struct prof_stat all;
    double min, mean, max; /* seconds, over ranks */
    int slowest;           /* the rank of max */
    struct prof_series *waits;
    bool split;             /* `waiting` and `moving` are known */
    double waiting, moving; /* mean seconds per rank of waiting for others, and of the operation itself */
    int late;               /* the rank that others waited for most */
    double late_share;      /* share of all waiting that `late` caused */
};

struct prof_bin {
    uint64_t count, bytes;
};
enum { PROF_BINS = 64 };

struct prof_rank {
    bool has_record;
    char host[256];
    int node; /* index of the first rank on the same host */
    bool threaded;
    double on, mpi; /* seconds of recording, and inside MPI */
    double kinds[PROF_KINDS];
    uint64_t messages, bytes; /* messages and bytes sent */
    struct prof_bin
        moved[PROF_BINS]; /* messages sent, messages received and collective calls [Liu04 table 9.1] */
    int cut;              /* the signal that ended the rank, 0: none */
    char cut_in[64];      /* the MPI call that the signal interrupted, "-": none */
    double cut_after;     /* seconds that this call had taken */
    int64_t wall_ns;      /* start of the rank's time line, ns since 1970; 0: no time line */
};

/* One call of a recorded timeline. */
struct prof_event {
    int rank, function, thread; /* function: its id; thread: from 1 */
    uint64_t start, ns;         /* since the rank's wall_ns */
    bool moved;                 /* the members below are known */
    int to, from;               /* world ranks; -1: outside or any source, -2: none */
    int64_t out, in;            /* bytes; -1: no such buffer */
};

struct prof_pair {
    int from, to;
    uint64_t messages, bytes;
};

struct prof_traffic {
    uint64_t messages, bytes;
};

#define PROF_MEMORY_KINDS 3 /* enum gpu_memory_kind of gpu/gpu.h */

struct prof_reuse {
    uint64_t accesses, reused, bytes, reused_bytes, dropped;
};

/* Message counts in the four size classes of [Liu04 table 9.1], their sum, and the bytes. */
struct prof_classes {
    uint64_t count[4], all, bytes;
};

/* A line of the program that calls an MPI function. */
struct prof_site {
    int function;       /* its id */
    char path[168];     /* file of the program or library */
    uint64_t offset;    /* offset of the return address in that file */
    uint64_t calls, ns; /* over all ranks */
    char text[160];     /* file and line, "solver.c:210"; "": not among the PROF_SITES most expensive sites */
};
enum { PROF_SITES = 10 };

/* The ranks on one machine (several virtual nodes may share it) and the processors that they may use. */
struct prof_machine {
    char id[64], host[256];
    int ranks, processors;
    unsigned long mask[8192 / (8 * sizeof(unsigned long))];
};

struct prof_job {
    struct prof_job *next;
    char name[256], program[256];
    const char *command;       /* NULL when read from a file */
    int size, nrecords, nodes; /* nrecords: ranks whose record was read */
    bool threaded;
    struct prof_rank *ranks;
    struct prof_function *functions; /* most time first */
    size_t nfunctions;
    struct prof_site *sites; /* sorted by prof_job_sum_up, the most expensive first */
    size_t nsites;
    struct prof_machine *machines;
    size_t nmachines;
    struct prof_pair *pairs;
    size_t npairs;
    struct prof_pair
        *carried; /* messages of the library including those of collectives; NULL: not reported */
    size_t ncarried;
    struct link_seen *links; /* sorted by prof_job_sum_up, the slowest first */
    size_t nlinks;
    struct prof_event *events;
    size_t nevents;
    uint64_t dropped; /* events that were not recorded for lack of room */
    struct prof_bin p2p[PROF_BINS], coll[PROF_BINS];
    struct prof_reuse reuse;
    uint64_t memory[PROF_MEMORY_KINDS]; /* bytes of buffers: host, managed, GPU memory */
    long long date;                     /* seconds since 1970, 0: unknown */
    char library[256], adapter[256];
    char **settings;
    size_t nsettings;
    int status; /* exit status of the command that ran the job; 0 also if unknown */
    /* Computed by prof_job_sum_up: */
    struct prof_traffic sent, within,
        outside; /* within: both ranks on one node; outside: no rank of this job */
    struct prof_classes p2p_classes, coll_classes;
    double on, mpi; /* seconds, summed over ranks */
    double kinds[PROF_KINDS];
    double waiting, moving; /* mean seconds per rank in collectives of all ranks */
    int late;               /* the rank that others waited for most */
    double late_share;
    size_t slow_links;
};

/* Findings, the most expensive first. */
enum { PROF_FINDINGS = 8 };
struct prof_finding {
    char text[512];
    double seconds; /* mean cost per rank */
};
struct prof_verdict {
    struct prof_finding list[PROF_FINDINGS];
    int n; /* at least 1 */
};
void prof_judge(const struct prof_job *job, struct prof_verdict *v);
/* Formats the reason why the report is incomplete; "" if it is complete. */
void prof_describe_missing_data(const struct prof_job *job, char *out, size_t size);
/* Formats the date as "2026-11-16 05:40 UTC"; "" if it is unknown. */
const char *prof_format_date(const struct prof_job *job, char out[PROF_TEXT_LONG]);

extern const char *const prof_kind_words[PROF_KINDS]; /* in records and JSON */
extern const char *const prof_kind_names[PROF_KINDS]; /* in text reports */
extern const char *const prof_class_names[4];

/* Adds the records of a file to the list of jobs. False, after a message, if the file cannot be read. */
bool prof_read_file(const char *path, struct prof_job **jobs);
void prof_job_sum_up(struct prof_job *job);
bool prof_waits_read(struct prof_series *s, const char *rest);
void prof_waits_sum_up(struct prof_job *job);
/* Links (prof_links.c). out->messages is 0 if the link leads to another job. */
bool prof_link_read(const struct prof_job *job, int rank, const char *rest, struct link_seen *out);
void prof_links_sum_up(struct prof_job *job);
void prof_links_sentence(const struct prof_job *job, char *out, size_t size); /* "": no link is slow */
double prof_links_cost(const struct prof_job *job);                           /* mean seconds per rank */
void prof_report_links(const struct prof_job *job, struct text_table *r);
void prof_json_links(struct json *j, const struct prof_job *job);

/* Call sites and processors (prof_sites.c). */
bool prof_site_read(struct prof_job *job, int function, const char *rest);
bool prof_processors_read(struct prof_job *job, const char *host, const char *rest);
void prof_sites_sum_up(struct prof_job *job);
/* Formats " (most at solver.c:210)"; "" if nothing is known. */
const char *prof_find_function_site(const struct prof_job *job, const struct prof_function *f, char out[192]);
void prof_report_sites(const struct prof_job *job, struct text_table *r);
void prof_json_sites(struct json *j, const struct prof_job *job);

void prof_jobs_free(struct prof_job *jobs);

struct prof_classes prof_classify(const struct prof_bin *bins);
double prof_imbalance(const struct prof_function *f);   /* slowest rank's time / mean - 1 */
double prof_compute_percent(double part, double whole); /* percent; 0 if `whole` is 0 */

/* Format bytes and seconds for reports; return `out`. */
enum { PROF_TEXT = 32 };
const char *prof_format_bytes(double bytes, char out[PROF_TEXT]);
const char *prof_format_seconds(double seconds, char out[PROF_TEXT]);

void prof_write_text(const struct prof_job *job, bool all, FILE *out);
void prof_write_json(const struct prof_job *job, FILE *out);
void prof_write_html(const struct prof_job *job, FILE *out);
/* Writes a trace for Perfetto and Chrome (prof_timeline.c); the other two parse its lines of the record. */
void prof_write_timeline(const struct prof_job *job, FILE *out);
bool prof_timeline_read(struct prof_job *job, struct prof_rank *rank, const char *rest);
bool prof_event_read(struct prof_event *out, const char *rest, char name[64]);

/* Runs the command with the profiler preloaded; the ranks leave their records in `folder`. Returns the
 * exit status. */
int prof_run(char **command, const char *folder);
/* Makes a temporary folder for records; false after a message. */
bool prof_folder_make(char *out, size_t size);
void prof_folder_remove(const char *folder);

#endif

/* check.h: `fishplate check`: facts of every host, latency and bandwidth of each pair of hosts, and findings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_CHECK_H
#define FP_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "net/adapter_port.h"

enum { FACT_PORTS = 8, CHECK_SIZES = 6 };

/* Message sizes in bytes of --report, measured between the first two hosts. */
extern const size_t check_sizes[CHECK_SIZES];

/* One-way latency in seconds; one-way bandwidth in bytes per second. */
struct pair {
    double latency, bandwidth;
};

/* Facts that a host reports. Fixed layout, because they are sent as bytes. */
struct facts {
    char host[64];     /* as the user named it, else own_name */
    char own_name[64]; /* name that the host has for itself */
    char version[24], kernel[72];
    char no_ports[256]; /* why no port is usable */
    uint64_t memlock;   /* bytes that may be locked; UINT64_MAX: no limit */
    uint64_t shm_total, shm_free, memory;
    int32_t rank;       /* in MPI_COMM_WORLD */
    int32_t cpus;       /* processors that this process may use */
    int32_t cma;        /* CMA: 1 if a process may read the memory of another, else 0 */
    int32_t ptrace;     /* value of /proc/sys/kernel/yama/ptrace_scope; -1: the file does not exist */
    int32_t nports;     /* number of ports; the first FACT_PORTS are in `ports` */
    double clock;       /* seconds by which the clock of this host is ahead of that of the first host */
    double clock_error; /* largest error of `clock`, in seconds */
    struct net_port ports[FACT_PORTS];
};

/* The result. The element of a pair of hosts is [from * n + to]; the matrices are symmetric; 0: no figure. */
struct survey {
    int n;
    struct facts *hosts;
    double *latency;   /* one-way latency of 8 bytes in seconds, per pair */
    double *bandwidth; /* one-way bandwidth in bytes per second, per pair */
    struct pair
        of_size[CHECK_SIZES]; /* figures of the first two hosts for each of check_sizes; 0 with one host */
    char path[96];            /* transport between the first two hosts */
};

enum severity { CHECK_NOTE, CHECK_WARNING };

struct finding {
    enum severity severity;
    char host[64]; /* "": the finding concerns all hosts */
    char problem[320], todo[320];
};

struct findings {
    struct finding *v;
    int n;
};

/* Collects the facts of this host, except its clock offset (facts.c). */
void facts_gather(struct facts *out);

/* Measures; all ranks call it. Returns true at the rank that has the result. with_sizes: also fills
 * of_size (measure.c). */
bool survey_measure(bool with_sizes, struct survey *out);
void survey_free(struct survey *s);

/* Derives the findings, warnings first (judge.c). Pure. */
void findings_judge(const struct survey *s, struct findings *out);

/* Returns the median of the figures of all pairs with this host. */
double survey_get_host_median(const struct survey *s, const double *figures, int host);

/* Sets the host names from a comma-separated list, one per rank; slot counts after a colon are ignored. */
void survey_label(struct survey *s, const char *names);

/* Printing (print.c). check_print_memory_limits prints locked memory, /dev/shm and CMA in one phrase. */
void check_print_memory_limits(FILE *out, const struct facts *h);
void check_text(FILE *out, const struct survey *s, const struct findings *f);
void check_print_figures(FILE *out, const struct survey *s);
void check_print_findings(FILE *out, const struct survey *s, const struct findings *f);
void check_print_json(FILE *out, const struct survey *s, const struct findings *f);

struct check_report {
    const struct survey *survey;
    const struct findings *findings;
};
void check_write_html(FILE *out, const void *report); /* callback of command_write_file */

/* Writes the page for developers (developer_report.c). Returns 0, or 2 after a message. */
int check_write_report(const char *path, const struct survey *s);

#endif

/* check.h: `fishplate check`: facts of every host, latency and bandwidth of each pair of hosts, and findings.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_CHECK_H
#define FP_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "net/port.h"

enum { FACT_PORTS = 8, CHECK_SIZES = 6 };

/* Bytes of the messages between the first two hosts. */
extern const size_t check_sizes[CHECK_SIZES];

/* Seconds one way; bytes per second one way. */
struct pair {
    double latency, bandwidth;
};

/* Facts that a host reports. Fixed layout, because they are sent as bytes. */
struct facts {
    char host[64];     /* as the user named it, else own_name */
    char own_name[64]; /* as the host calls itself */
    char version[24], kernel[72];
    char no_ports[256]; /* why there is none */
    uint64_t memlock;   /* bytes that may be locked; UINT64_MAX: no limit */
    uint64_t shm_total, shm_free, memory;
    int32_t rank;       /* in MPI_COMM_WORLD */
    int32_t cpus;       /* processors that this process may use */
    int32_t cma;        /* may one process read another's memory: 1 yes, 0 no */
    int32_t ptrace;     /* /proc/sys/kernel/yama/ptrace_scope; -1: there is none */
    int32_t nports;     /* number of ports; the first FACT_PORTS are in `ports` */
    double clock;       /* seconds that its clock is ahead of the first host's */
    double clock_error; /* at most this far off */
    struct net_port ports[FACT_PORTS];
};

/* All hosts, and the figures of each pair: [from * n + to], symmetric, 0 where none. */
struct survey {
    int n;
    struct facts *hosts;
    double *latency;   /* one-way latency of 8 bytes in seconds, per pair */
    double *bandwidth; /* one-way bandwidth in bytes per second, per pair */
    struct pair
        of_size[CHECK_SIZES]; /* figures of the first two hosts for each of check_sizes; 0 with one host */
    char path[96];            /* how the first pair is connected */
};

enum severity { CHECK_NOTE, CHECK_WARNING };

struct finding {
    enum severity severity;
    char host[64]; /* "": all of them */
    char what[320], todo[320];
};

struct findings {
    struct finding *v;
    int n;
};

/* facts.c: of this host, without the clock. */
void facts_gather(struct facts *out);

/* measure.c: in a job, at all ranks; the result is at rank 0, where it is true. with_sizes: of_size too. */
bool survey_measure(bool with_sizes, struct survey *out);
void survey_free(struct survey *s);

/* judge.c: pure. The worst first. */
void findings_judge(const struct survey *s, struct findings *out);

/* How fast a host is: the median of its pairs. */
double host_median(const struct survey *s, const double *figures, int host);

/* Labels hosts by these names, separated by commas, one for each rank; a slot count after a colon is left out. */
void survey_label(struct survey *s, const char *names);

/* print.c, heat.c. check_memory_limits prints a phrase about locked memory, /dev/shm and CMA. */
void check_memory_limits(FILE *out, const struct facts *h);
void check_text(FILE *out, const struct survey *s, const struct findings *f);
void check_figures(FILE *out, const struct survey *s);
void check_findings(FILE *out, const struct survey *s, const struct findings *f);
void check_json(FILE *out, const struct survey *s, const struct findings *f);
void check_svg(FILE *out, const void *survey); /* for command_write_file */

/* developer_report.c: 0, or 2 with a message. */
int check_report(const char *path, const struct survey *s);

#endif

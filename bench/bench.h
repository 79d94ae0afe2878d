/* bench.h: the benchmark behind `fishplate bench`. Everything under bench/ is plain MPI, so that the same
 * sources, built with another MPI library, give comparable figures (see bench/peers).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BENCH_BENCH_H
#define FP_BENCH_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/json.h"
#include "cli/progress.h"

/* Facts about the MPI library that MPI itself does not offer; the program that contains the benchmark supplies them. */
struct bench_host {
    const char *program;                /* "fishplate bench" */
    const char *(*transport)(int rank); /* how this rank reaches another; NULL when it cannot be known */
    const char *(*carrier)(int rank);   /* by what, in a word: memory, hardware, soft-roce, softib-tcp ... */
    /* --compare: the algorithms of a collective operation, and FISHPLATE_COLL from now on (0: understood). NULL
     * when the library has no such choice. */
    const char *(*algorithm)(const char *operation, int i);
    int (*choose)(const char *setting);
    const char *kinds; /* lines of help about other benchmarks of the program; NULL: none */
};

/* Runs the command that argv[0] names and returns the exit status. Calls MPI_Init and MPI_Finalize. */
int bench_main(const struct bench_host *host, int argc, char **argv);

/* transports.c: by what the figures of a report travelled, asked by rank 0 of `size` ranks. */
enum { BENCH_TRANSPORTS_MAX = 1024 };
void bench_transports_describe(const struct bench_host *host, int size, char *out, size_t room);
void bench_transports_json(const struct bench_host *host, int size,
                           struct json *j); /* members of an object */

enum { BENCH_SIZES_MAX = 64, BENCH_SAMPLES_MAX = 4000 };

/* How collectives are called one after the other; see coll.c. */
enum bench_calls { CALLS_ROTATE, CALLS_BACK_TO_BACK, CALLS_BARRIER };

/* By which calls latency and the collectives are made; each call is complete before the next begins. */
enum bench_form { BENCH_BLOCKING, BENCH_NONBLOCKING, BENCH_PERSISTENT };

/* --forced: protocols of large messages that take turns with the library's own choice; see forced.c. */
enum { BENCH_FORCED_MAX = 10, BENCH_ROUNDS = 9 };
struct bench_forced {
    int n; /* 0: not asked for; the first is auto */
    char name[BENCH_FORCED_MAX][16];
    double time[BENCH_FORCED_MAX][BENCH_ROUNDS]; /* times of the figure that was measured last */
    bool measured;
};

struct bench_options {
    bool brief, json, help, no_pin, summary;
    bool one_buffer; /* in bw: the window's messages share memory */
    int calls;       /* enum bench_calls */
    int form;        /* enum bench_form */
    int threads;     /* threads of each rank in the test `threads`; 0: MPI is initialised without threads */
    int memory;      /* index in bench_memories */
    const char *output;  /* file of the report, or NULL */
    const char *compare; /* the operation whose algorithms are compared, or NULL */
    int pairs;           /* pairs of ranks that work at the same time in latency, bw, bibw and rate */
    double seconds;      /* time spent on each figure */
    uint64_t wanted;     /* bit i: the i-th entry of bench_tests */
    int nsizes;          /* 0: each test's own sizes */
    size_t sizes[BENCH_SIZES_MAX];
    struct bench_forced forced;
};

/* Seconds for one operation, over the batches of one measurement. */
struct bench_stats {
    double min, median, p99;
    int samples, iterations;
};

struct bench;

struct bench_test {
    const char *name, *doc;
    bool pairs;                        /* between two ranks; the others sleep */
    bool alone;                        /* works with one rank */
    const size_t *sizes, *brief_sizes; /* each ends with BENCH_END */
    void (*run)(struct bench *b, const struct bench_test *test, size_t bytes);
};
#define BENCH_END ((size_t)-1)
#define KI        ((size_t)1 << 10)
#define MI        ((size_t)1 << 20)

extern const struct bench_test bench_tests[];
extern const int bench_ntests;

struct bench_place;
struct bench_report;

struct bench {
    const struct bench_host *host;
    struct bench_options options;
    int rank, size;
    MPI_Comm comm;         /* all ranks */
    MPI_Comm team;         /* ranks that take part in the running test; MPI_COMM_NULL in a rank that sleeps */
    double init_time;      /* MPI_Init, in seconds, on this rank */
    long errors;           /* bytes received that differ from the bytes sent */
    bool failed;           /* the requested benchmark cannot run */
    bool threads_allowed;  /* MPI_THREAD_MULTIPLE */
    int steps_done, steps; /* sizes measured, and of all tests to run; `steps` 0 if unknown */
    bool times_itself;     /* the batch that is measured leaves its seconds in own_time */
    double own_time;
    struct bench_place *place;
    struct bench_report *report;
    struct progress progress;
    int figures;                   /* printed or added to the document */
    FILE *out;                     /* file of the report */
    double latency8, bandwidth[3]; /* remembered for the ratios of `limits`; 0 when not measured */
};

/* options.c: false after a sentence on standard error. */
bool bench_parse(struct bench_options *o, int argc, char **argv, bool silent);
void bench_usage(const struct bench_host *host);

/* measure.c: times `batch(arg, n)` until the time is spent, in agreement among all ranks of comm. With
 * `worst` a sample is that of the slowest rank, else rank 0's. The result is valid on rank 0 of comm. */
void bench_measure(struct bench *b, MPI_Comm comm, bool worst, void (*batch)(void *arg, int n), void *arg,
                   struct bench_stats *out);
/* Prints a line after some seconds of silence; `part` of the running step is complete. */
void bench_progress(struct bench *b, double part);
void bench_stats_compute(double *samples, int n, int iterations, struct bench_stats *out);
/* A measured operation was `n` of what is reported: a round trip, for example, is two messages. */
void bench_stats_divide(struct bench_stats *s, int n);

/* forced.c: the same for auto and for each forced protocol in turn; *out is auto's. */
bool bench_forced_parse(struct bench_forced *f, const char *text);
void bench_forced_measure(struct bench *b, void (*batch)(void *arg, int n), void *arg,
                          struct bench_stats *out);
void bench_forced_text(const struct bench_forced *f, FILE *out);
void bench_forced_json(const struct bench_forced *f, struct json *j); /* a member of the row's object */

/* pattern.c: bytes that depend on place and seed, so that a message that is late, short or shifted is seen.
 */
void bench_fill(void *buffer, size_t bytes, unsigned seed);
long bench_check(const void *buffer, size_t bytes, unsigned seed);
void *bench_alloc(size_t bytes);

/* memory.c: buffers in the memory that --memory names for this rank. */
enum bench_memory { BENCH_HOST, BENCH_DEVICE, BENCH_PINNED };
extern const char *const bench_memories[];
struct bench_buffer {
    void *at;
    size_t bytes;
    enum bench_memory kind;
};
struct bench_buffer bench_buffer_new(const struct bench *b, int rank, size_t bytes);
void bench_buffer_free(struct bench_buffer *b);
void bench_buffer_write(const struct bench_buffer *b, const void *from, size_t bytes);
void bench_buffer_read(const struct bench_buffer *b, void *to, size_t bytes);

/* place.c: where the ranks run, and pinning of those that a test uses. */
struct bench_place *bench_place_find(struct bench *b);
void bench_place_free(struct bench_place *p);
void bench_pin(struct bench *b, int active);
void bench_unpin(struct bench *b);
bool bench_is_oversubscribed(struct bench *b,
                             int active);      /* have that many ranks fewer cores than they are? */
int bench_cores(struct bench *b, int core[2]); /* up to two cores of this node; how many there are */
void bench_place_describe(struct bench *b, char *out, size_t size);

/* tests.c: the sizes of a test that this run measures; returns how many. */
int bench_test_sizes(const struct bench *b, const struct bench_test *test, const size_t **sizes);

/* team.c: the ranks a test needs; the rest sleep without disturbing it. */
void bench_team_begin(struct bench *b, int active);
void bench_team_end(struct bench *b);

/* report.c: only rank 0 prints. A figure is a time ("us") or, when `amount` is positive, amount per time. */
struct bench_report *bench_report_open(struct bench *b);
void bench_report_close(struct bench *b);
void bench_report_time(struct bench *b, const char *test, size_t bytes, const struct bench_stats *s);
void bench_report_rate(struct bench *b, const char *test, size_t bytes, const struct bench_stats *s,
                       double amount, const char *unit);
/* Adds a row of --compare, which only JSON output contains. */
void bench_report_algorithm(struct bench *b, const char *test, const char *algorithm, size_t bytes,
                            const struct bench_stats *s);
/* Records the setting that the user may copy, for JSON output. */
void bench_report_setting(struct bench *b, const char *setting);
void bench_report_ratio(struct bench *b, const char *what, double ratio);
void bench_report_note(struct bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The tests themselves. */
void bench_latency(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_bw(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_bilat(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_window(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_overhead(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_potential(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_rate(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_layout(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_matching(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_threads(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_creation(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_collective(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_overlap(struct bench *b, const struct bench_test *test, size_t bytes);
void bench_compare(struct bench *b); /* compare.c: not a test of the table */
void bench_limits(struct bench *b, const struct bench_test *test, size_t bytes);

#endif

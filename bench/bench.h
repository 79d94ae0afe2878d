/* bench.h: the benchmark behind `fishplate bench`. All sources in bench/ are plain MPI, so that they can be built
 * with other MPI libraries and give comparable figures (bench/peers).
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

/* Facts about the MPI library that MPI itself does not offer; the program that contains the benchmark
 * supplies them. */
struct bench_host {
    const char *program; /* "fishplate bench" */
    /* transport from this rank to another; NULL if it cannot be queried */
    const char *(*transport)(int rank);
    /* medium of that transport: memory, hardware, soft-roce, softib-tcp ... */
    const char *(*carrier)(int rank);
    /* For --compare: returns the i-th algorithm of a collective operation; sets FISHPLATE_COLL (0: valid).
     * NULL if the library has no such setting. */
    const char *(*algorithm)(const char *operation, int i);
    int (*choose)(const char *setting);
    const char *kinds; /* help text on other benchmarks of the program; NULL: none */
};

/* Runs the benchmark with this command line and returns the exit status. Calls MPI_Init and MPI_Finalize. */
int bench_main(const struct bench_host *host, int argc, char **argv);

/* As bench_main: the benchmarks of one-sided operations (rma/rma.c) and of files (io/io.c). */
int bench_rma_main(const struct bench_host *host, int argc, char **argv);
int bench_io_main(const struct bench_host *host, int argc, char **argv);

/* Describes the transports from rank 0 to the others of `size` ranks (transports.c). */
enum { BENCH_TRANSPORTS_MAX = 1024 };
void bench_transports_describe(const struct bench_host *host, int size, char *out, size_t room);
void bench_transports_json(const struct bench_host *host, int size,
                           struct json *j); /* writes members into an open JSON object */

enum { BENCH_SIZES_MAX = 64, BENCH_SAMPLES_MAX = 4000 };

/* Sequence of calls in the measurement of collectives; see coll.c. */
enum bench_calls { CALLS_ROTATE, CALLS_BACK_TO_BACK, CALLS_BARRIER };

/* Form of the calls in latency and in the collectives; each call is complete before the next one begins. */
enum bench_form { BENCH_BLOCKING, BENCH_NONBLOCKING, BENCH_PERSISTENT };

/* --forced: protocols of large messages, measured in turns with the library's own choice; see forced.c. */
enum { BENCH_FORCED_MAX = 10, BENCH_ROUNDS = 9 };
struct bench_forced {
    int n; /* number of entries; 0: no --forced; the first one is auto */
    char name[BENCH_FORCED_MAX][16];
    double time[BENCH_FORCED_MAX][BENCH_ROUNDS]; /* seconds per operation of the last measured figure */
    bool measured;
};

struct bench_options {
    bool brief, json, help, no_pin, summary;
    bool one_buffer;     /* in bw: all messages of a window use one buffer */
    int calls;           /* enum bench_calls */
    int form;            /* enum bench_form */
    int threads;         /* threads per rank in the test `threads`; 0: no MPI_THREAD_MULTIPLE */
    int memory;          /* index in bench_memories */
    const char *output;  /* path of the report; NULL: standard output */
    const char *compare; /* operation whose algorithms are compared; NULL: none */
    int pairs;           /* pairs of ranks that work at the same time in the tests of TEAM_PAIRS */
    double seconds;      /* time spent on each figure */
    uint64_t wanted;     /* bit i: the i-th entry of bench_tests */
    int nsizes;          /* 0: each test uses its own sizes */
    size_t sizes[BENCH_SIZES_MAX];
    struct bench_forced forced;
};

/* Seconds for one operation, over the batches of one measurement. */
struct bench_stats {
    double min, median, p99;
    int samples, iterations;
};

struct bench;

/* The ranks that run a test; the others sleep. */
enum bench_team {
    TEAM_ALL,
    TEAM_ONE,
    TEAM_TWO,  /* ranks 0 and 1 */
    TEAM_PAIRS /* the pairs of --pairs: rank 2i with rank 2i + 1 */
};

struct bench_test {
    const char *name, *doc;
    enum bench_team team;
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
    MPI_Comm team;         /* ranks of the running test; MPI_COMM_NULL on a sleeping rank */
    double init_time;      /* seconds that MPI_Init took on this rank */
    long errors;           /* bytes received that differ from the bytes sent */
    bool failed;           /* the requested benchmark cannot run */
    bool threads_allowed;  /* MPI provides MPI_THREAD_MULTIPLE */
    int steps_done, steps; /* sizes measured so far, and in total; `steps` 0: total unknown */
    bool times_itself;     /* the measured function stores its own seconds in own_time */
    double own_time;
    struct bench_place *place;
    struct bench_report *report;
    struct progress progress;
    int figures;                   /* number of figures printed or added to the JSON document */
    FILE *out;                     /* file of the report */
    double latency8, bandwidth[3]; /* results for the ratios of the test `limits`; 0: not measured */
};

/* Parses the options; false after a message on standard error (options.c). */
bool bench_parse(struct bench_options *o, int argc, char **argv, bool silent);
void bench_usage(const struct bench_host *host);

/* Times `batch(arg, n)` until the time is spent; all ranks of comm take the same number of samples. worst:
 * a sample is that of the slowest rank, else rank 0's. The result is valid on rank 0 of comm (measure.c). */
void bench_measure(struct bench *b, MPI_Comm comm, bool worst, void (*batch)(void *arg, int n), void *arg,
                   struct bench_stats *out);
/* Prints a progress line after some seconds of silence. part: completed fraction of the running step. */
void bench_progress(struct bench *b, double part);
void bench_stats_compute(double *samples, int n, int iterations, struct bench_stats *out);
/* Divides the times by n, if a measured operation contains n reported ones: a round trip is two messages. */
void bench_stats_divide(struct bench_stats *s, int n);

/* Measures auto and each forced protocol in turn; *out is auto's (forced.c). */
bool bench_forced_parse(struct bench_forced *f, const char *text);
void bench_forced_measure(struct bench *b, void (*batch)(void *arg, int n), void *arg,
                          struct bench_stats *out);
void bench_forced_text(const struct bench_forced *f, FILE *out);
/* writes a member into the row's JSON object */
void bench_forced_json(const struct bench_forced *f, struct json *j);

/* Fills and checks test data (pattern.c): a byte depends on its position and a seed, so that late, short
 * or shifted messages are detected. */
void bench_fill(void *buffer, size_t bytes, unsigned seed);
long bench_check(const void *buffer, size_t bytes, unsigned seed);
void *bench_alloc(size_t bytes);

/* Buffers in the kind of memory that --memory names for a rank (memory.c). */
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

/* Determines where the ranks run, and pins the ranks of a test to cores (place.c). */
struct bench_place *bench_place_find(struct bench *b);
void bench_place_free(struct bench_place *p);
void bench_pin(struct bench *b, int active);
void bench_unpin(struct bench *b);
bool bench_is_oversubscribed(struct bench *b,
                             int active); /* true if `active` ranks have fewer cores than ranks */
/* stores up to two cores of this machine; returns their number */
int bench_cores(struct bench *b, int core[2]);
void bench_place_describe(struct bench *b, char *out, size_t size);

/* Determines the sizes of a test in this run; returns their number (tests.c). */
int bench_test_sizes(const struct bench *b, const struct bench_test *test, const size_t **sizes);

/* Begins and ends a test on the ranks it needs; the others sleep (team.c). */
void bench_team_begin(struct bench *b, int active);
void bench_team_end(struct bench *b);

/* Writes the report on rank 0 (report.c). A rate is `amount` (in `unit`) per measured operation. */
struct bench_report *bench_report_open(struct bench *b);
void bench_report_close(struct bench *b);
void bench_report_time(struct bench *b, const char *test, size_t bytes, const struct bench_stats *s);
void bench_report_rate(struct bench *b, const char *test, size_t bytes, const struct bench_stats *s,
                       double amount, const char *unit);
/* Adds a row of --compare, which only JSON output contains. */
void bench_report_algorithm(struct bench *b, const char *test, const char *algorithm, size_t bytes,
                            const struct bench_stats *s);
/* Stores the recommended setting for JSON output. */
void bench_report_setting(struct bench *b, const char *setting);
void bench_report_ratio(struct bench *b, const char *what, double ratio);
void bench_report_note(struct bench *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Functions of the table of tests. */
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
void bench_compare(struct bench *b); /* --compare (compare.c); not in the table of tests */
void bench_limits(struct bench *b, const struct bench_test *test, size_t bytes);

#endif

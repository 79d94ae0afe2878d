/* overlap.c: measures how much of a nonblocking operation overlaps with computation. It times the operation
 * alone, a computation of twice that time alone, and both together, once without MPI calls during the
 * computation and once with a few calls of MPI_Test. The time of both beyond the computation alone was not
 * overlapped. On one node a processor copies the data, so that copying overlaps only if a processor is idle.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli/number.h"

enum { TESTS = 8, WORK_UNIT = 100 };

struct overlap {
    MPI_Comm comm;
    int rank, size, bytes, root;
    char *in, *out;
    int requests;
    MPI_Request request[2];
    void (*start)(struct overlap *o);
    long work;  /* work units of the computation per operation */
    int slices; /* number of parts of the computation, with a call of MPI_Test between them */
    volatile double result;
};

static void start_exchange(struct overlap *o)
{
    int peer = o->rank ^ 1;
    o->requests = 2;
    MPI_Irecv(o->out, o->bytes, MPI_BYTE, peer, 1, o->comm, &o->request[0]);
    MPI_Isend(o->in, o->bytes, MPI_BYTE, peer, 1, o->comm, &o->request[1]);
}

/* Starts a broadcast; the root changes, as in the blocking test. */
static void start_bcast(struct overlap *o)
{
    o->requests = 1;
    o->root = o->root + 1 < o->size ? o->root + 1 : 0;
    MPI_Ibcast(o->out, o->bytes, MPI_BYTE, o->root, o->comm, o->request);
}

static void start_allreduce(struct overlap *o)
{
    o->requests = 1;
    MPI_Iallreduce(o->in, o->out, o->bytes / 8, MPI_DOUBLE, MPI_SUM, o->comm, o->request);
}

static void overlap_wait_requests(struct overlap *o)
{
    MPI_Waitall(o->requests, o->request, MPI_STATUSES_IGNORE);
}

/* Computes. Each step depends on the previous one, so that the processor's clock rate determines the time. */
static void overlap_compute(struct overlap *o, long units)
{
    double x = o->result;
    for (long i = 0; i < units * WORK_UNIT; i++)
        x = x * 0.999999 + 1e-6;
    o->result = x;
}

static void run_alone(void *arg, int n)
{
    struct overlap *o = arg;
    for (int i = 0; i < n; i++) {
        o->start(o);
        overlap_wait_requests(o);
    }
}

static void run_work(void *arg, int n)
{
    struct overlap *o = arg;
    for (int i = 0; i < n; i++)
        overlap_compute(o, o->work);
}

static void run_both(void *arg, int n)
{
    struct overlap *o = arg;
    int flag;
    for (int i = 0; i < n; i++) {
        o->start(o);
        for (int s = 0; s < o->slices; s++) {
            overlap_compute(o, o->work / o->slices);
            if (s + 1 < o->slices)
                MPI_Testall(o->requests, o->request, &flag, MPI_STATUSES_IGNORE);
        }
        overlap_wait_requests(o);
    }
}

/* Repeats the traffic of the measurement and verifies the data. */
static void overlap_verify_data(struct bench *b, struct overlap *o, unsigned seed)
{
    const double each = o->rank + 1.0, sum = (double)o->size * (o->size + 1) / 2;
    bench_fill(o->in, (size_t)o->bytes, seed + (unsigned)o->rank);
    memset(o->out, 0xa5, (size_t)o->bytes);
    if (o->start == start_bcast && o->rank == (o->root + 1) % o->size)
        bench_fill(o->out, (size_t)o->bytes, seed);
    for (int i = 0; i < o->bytes / 8 && o->start == start_allreduce; i++)
        memcpy(o->in + (size_t)i * 8, &each, 8);
    run_both(o, 1);
    if (o->start == start_exchange)
        b->errors += bench_check(o->out, (size_t)o->bytes, seed + (unsigned)(o->rank ^ 1));
    else if (o->start == start_bcast)
        b->errors += bench_check(o->out, (size_t)o->bytes, seed);
    for (int i = 0; i < o->bytes / 8 && o->start == start_allreduce; i++)
        b->errors += memcmp(o->out + (size_t)i * 8, &sum, 8) != 0;
}

/* Measures and reports a row; returns the shortest time, the least disturbed one. */
static double measure_and_print_row(struct bench *b, struct overlap *o, const char *name, size_t bytes,
                                    void (*batch)(void *arg, int n))
{
    struct bench_stats s = {0};
    bench_measure(b, b->team, true, batch, o, &s);
    if (b->rank == 0)
        bench_report_time(b, name, bytes, &s);
    MPI_Bcast(&s.min, 1, MPI_DOUBLE, 0, b->team);
    return s.min;
}

/* Returns the number of work units that take `seconds`, from the fastest of several samples, because this
 * processor may be interrupted. */
static long calibrate_work(struct overlap *o, double seconds)
{
    const long units = 2000;
    double best = 1;
    for (int i = 0; i < 5; i++) {
        double start = MPI_Wtime();
        overlap_compute(o, units);
        double took = MPI_Wtime() - start;
        best = took < best ? took : best;
    }
    long wanted = (long)(seconds / best * (double)units);
    MPI_Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_LONG, MPI_MAX, o->comm);
    return wanted < TESTS ? TESTS : wanted;
}

static void overlap_report(struct bench *b, const char *test, size_t bytes, const char *how, double hidden)
{
    char size[32], what[96];
    number_print_size(bytes, size);
    snprintf(what, sizeof(what), "overlap of %s, %s, %s, in percent", test, size, how);
    if (b->rank == 0)
        bench_report_ratio(b, what, hidden * 100);
}

/* Reports the operation together with a computation twice as long as its time `alone`, and the overlapped
 * part of that time. */
static void overlap_measure_hidden(struct bench *b, struct overlap *o, const char *test, size_t bytes,
                                   double alone)
{
    char name[48];
    o->work = calibrate_work(o, 2 * alone);
    snprintf(name, sizeof(name), "%s.work", test);
    const double work = measure_and_print_row(b, o, name, bytes, run_work);
    snprintf(name, sizeof(name), "%s.both", test);
    const double both = measure_and_print_row(b, o, name, bytes, run_both);
    o->slices = TESTS;
    snprintf(name, sizeof(name), "%s.test", test);
    const double tested = measure_and_print_row(b, o, name, bytes, run_both);
    overlap_verify_data(b, o, 11);
    overlap_report(b, test, bytes, "no MPI calls meanwhile", 1 - (both - work) / alone);
    overlap_report(b, test, bytes, "MPI_Test meanwhile", 1 - (tested - work) / alone);
}

void bench_overlap(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct overlap o = {.comm = b->team, .slices = 1};
    bytes = (bytes + 7) / 8 * 8;
    MPI_Comm_rank(b->team, &o.rank);
    MPI_Comm_size(b->team, &o.size);
    o.bytes = (int)bytes;
    o.start = strcmp(test->name, "isend") == 0    ? start_exchange
              : strcmp(test->name, "ibcast") == 0 ? start_bcast
                                                  : start_allreduce;
    o.in = bench_alloc(bytes);
    o.out = bench_alloc(bytes);
    overlap_verify_data(b, &o, 1);
    double alone = measure_and_print_row(b, &o, test->name, bytes, run_alone);
    if (!bench_is_oversubscribed(b, o.size))
        overlap_measure_hidden(b, &o, test->name, bytes, alone);
    else if (b->rank == 0)
        bench_report_note(b,
                          "%s: the %d ranks share fewer cores, where a rank that computes stops others: "
                          "overlap is not measured.",
                          test->name, o.size);
    free(o.in);
    free(o.out);
}

/* coll.c: collectives over all ranks. A sample is the slowest rank's time for a batch of calls. Where there
 * is a root it moves on with every call: the next root needs the last result, so no rank can run ahead and
 * hide the latency.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct coll {
    MPI_Comm comm;
    int rank, size, count; /* count: bytes, or doubles for reductions */
    size_t bytes;
    char *in, *out;
};

struct kind {
    const char *name;
    bool in_all, out_all; /* buffers hold a piece for every rank */
    bool reduces;
    void (*batch)(void *arg, int n);
    void (*check)(struct bench *b, struct coll *c, unsigned seed);
};

static void run_barrier(void *arg, int n)
{
    struct coll *c = arg;
    for (int i = 0; i < n; i++)
        MPI_Barrier(c->comm);
}

static void run_bcast(void *arg, int n)
{
    struct coll *c = arg;
    for (int i = 0, root = 0; i < n; i++, root = root + 1 < c->size ? root + 1 : 0)
        MPI_Bcast(c->out, c->count, MPI_BYTE, root, c->comm);
}

static void run_reduce(void *arg, int n)
{
    struct coll *c = arg;
    for (int i = 0, root = 0; i < n; i++, root = root + 1 < c->size ? root + 1 : 0)
        MPI_Reduce(c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, root, c->comm);
}

static void run_allreduce(void *arg, int n)
{
    struct coll *c = arg;
    for (int i = 0; i < n; i++)
        MPI_Allreduce(c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, c->comm);
}

static void run_allgather(void *arg, int n)
{
    struct coll *c = arg;
    for (int i = 0; i < n; i++)
        MPI_Allgather(c->in, c->count, MPI_BYTE, c->out, c->count, MPI_BYTE, c->comm);
}

static void run_alltoall(void *arg, int n)
{
    struct coll *c = arg;
    for (int i = 0; i < n; i++)
        MPI_Alltoall(c->in, c->count, MPI_BYTE, c->out, c->count, MPI_BYTE, c->comm);
}

static void check_bcast(struct bench *b, struct coll *c, unsigned seed)
{
    int root = (int)(seed % (unsigned)c->size);
    memset(c->out, 0xa5, c->bytes);
    if (c->rank == root)
        bench_fill(c->out, c->bytes, seed);
    MPI_Bcast(c->out, c->count, MPI_BYTE, root, c->comm);
    b->errors += bench_check(c->out, c->bytes, seed);
}

/* Whole numbers, so that the sum is exact in any order: rank r contributes r + i + seed. */
static void fill_sum(struct coll *c, unsigned seed)
{
    double *in = (double *)c->in;
    for (int i = 0; i < c->count; i++)
        in[i] = c->rank + i % 1000 + (double)seed;
    memset(c->out, 0xa5, c->bytes);
}

static long wrong_sum(const struct coll *c, unsigned seed)
{
    const double *out = (const double *)c->out;
    long wrong = 0;
    for (int i = 0; i < c->count; i++)
        wrong += out[i] != (double)c->size * (c->size - 1) / 2 + c->size * (i % 1000 + (double)seed);
    return wrong;
}

static void check_reduce(struct bench *b, struct coll *c, unsigned seed)
{
    int root = (int)(seed % (unsigned)c->size);
    fill_sum(c, seed);
    MPI_Reduce(c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, root, c->comm);
    if (c->rank == root)
        b->errors += wrong_sum(c, seed);
}

static void check_allreduce(struct bench *b, struct coll *c, unsigned seed)
{
    fill_sum(c, seed);
    run_allreduce(c, 1);
    b->errors += wrong_sum(c, seed);
}

static void check_allgather(struct bench *b, struct coll *c, unsigned seed)
{
    bench_fill(c->in, c->bytes, seed + (unsigned)c->rank);
    memset(c->out, 0xa5, c->bytes * (size_t)c->size);
    run_allgather(c, 1);
    for (int r = 0; r < c->size; r++)
        b->errors += bench_check(c->out + (size_t)r * c->bytes, c->bytes, seed + (unsigned)r);
}

static void check_alltoall(struct bench *b, struct coll *c, unsigned seed)
{
    unsigned size = (unsigned)c->size, me = (unsigned)c->rank;
    for (unsigned r = 0; r < size; r++)
        bench_fill(c->in + r * c->bytes, c->bytes, seed + me * size + r);
    memset(c->out, 0xa5, c->bytes * size);
    run_alltoall(c, 1);
    for (unsigned r = 0; r < size; r++)
        b->errors += bench_check(c->out + r * c->bytes, c->bytes, seed + r * size + me);
}

static const struct kind kinds[] = {
    {"barrier", false, false, false, run_barrier, NULL},
    {"bcast", false, false, false, run_bcast, check_bcast},
    {"reduce", false, false, true, run_reduce, check_reduce},
    {"allreduce", false, false, true, run_allreduce, check_allreduce},
    {"allgather", false, true, false, run_allgather, check_allgather},
    {"alltoall", true, true, false, run_alltoall, check_alltoall},
};

static const struct kind *find_kind(const char *name)
{
    const struct kind *k = kinds;
    while (strcmp(k->name, name) != 0)
        k++;
    return k;
}

void bench_collective(struct bench *b, const struct bench_test *test, size_t bytes)
{
    const struct kind *k = find_kind(test->name);
    struct bench_stats s;
    if (k->reduces)
        bytes = (bytes + 7) / 8 * 8;
    struct coll c = {.comm = b->team, .rank = b->rank, .size = b->size, .bytes = bytes};
    c.count = (int)(k->reduces ? bytes / 8 : bytes);
    size_t all = bytes * (size_t)b->size;
    if (k->out_all && all > 256 * MI) {
        bench_report_note(b, "%s: %zu bytes for each of %d ranks is more than is measured here; left out.",
                          test->name, bytes, b->size);
        return;
    }
    c.in = bench_alloc(k->in_all ? all : bytes);
    c.out = bench_alloc(k->out_all ? all : bytes);
    for (unsigned seed = 1; k->check && seed <= 3; seed++)
        k->check(b, &c, seed);
    bench_measure(b, b->team, true, k->batch, &c, &s);
    for (unsigned seed = 11; k->check && seed <= 12; seed++)
        k->check(b, &c, seed);
    free(c.in);
    free(c.out);
    if (b->rank == 0)
        bench_report_time(b, test->name, bytes, &s);
}

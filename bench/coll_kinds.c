/* coll_kinds.c: the collective operations that are measured: how each is called, and how its result is
 * checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll.h"

#include <string.h>

/* Makes three functions per operation: call_NAME (blocking), start_NAME (nonblocking), init_NAME
 * (persistent). */
#if MPI_VERSION >= 4
#define PERSISTENT_FORM(name, Name, ...)                                          \
    static void init_##name(const struct coll *c, int root, MPI_Request *request) \
    {                                                                             \
        (void)root;                                                               \
        MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, request);                   \
    }
#define PERSISTENT(name) init_##name
#else
#define PERSISTENT_FORM(name, Name, ...)
#define PERSISTENT(name) NULL
#endif
#define FORMS(name, Name, ...)                                                     \
    static void call_##name(const struct coll *c, int root)                        \
    {                                                                              \
        (void)root;                                                                \
        MPI_##Name(__VA_ARGS__);                                                   \
    }                                                                              \
    static void start_##name(const struct coll *c, int root, MPI_Request *request) \
    {                                                                              \
        (void)root;                                                                \
        MPI_I##name(__VA_ARGS__, request);                                         \
    }                                                                              \
    PERSISTENT_FORM(name, Name, __VA_ARGS__)

FORMS(barrier, Barrier, c->comm)
FORMS(bcast, Bcast, c->out, c->count, MPI_BYTE, root, c->comm)
FORMS(reduce, Reduce, c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, root, c->comm)
FORMS(allreduce, Allreduce, c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, c->comm)
FORMS(allgather, Allgather, c->in, c->count, MPI_BYTE, c->out, c->count, MPI_BYTE, c->comm)
FORMS(alltoall, Alltoall, c->in, c->count, MPI_BYTE, c->out, c->count, MPI_BYTE, c->comm)
FORMS(gather, Gather, c->in, c->count, MPI_BYTE, c->out, c->count, MPI_BYTE, root, c->comm)
FORMS(scatter, Scatter, c->in, c->count, MPI_BYTE, c->out, c->count, MPI_BYTE, root, c->comm)
FORMS(reduce_scatter, Reduce_scatter, c->in, c->out, c->counts, MPI_DOUBLE, MPI_SUM, c->comm)
FORMS(reduce_scatter_block, Reduce_scatter_block, c->in, c->out, c->count, MPI_DOUBLE, MPI_SUM, c->comm)

void coll_call(const struct coll *c, int root)
{
    MPI_Request request;
    switch (c->b->options.form) {
    case BENCH_BLOCKING:
        c->kind->call(c, root);
        break;
    case BENCH_NONBLOCKING:
        c->kind->start(c, root, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case BENCH_PERSISTENT:
        MPI_Start(&c->persistent[c->kind->rooted ? root : 0]);
        MPI_Wait(&c->persistent[c->kind->rooted ? root : 0], MPI_STATUS_IGNORE);
    }
}

static int seed_root(const struct coll *c, unsigned seed)
{
    return (int)(seed % (unsigned)c->size);
}

static long check_bcast(const struct coll *c, unsigned seed)
{
    const int root = seed_root(c, seed);
    memset(c->out, 0xa5, c->bytes);
    if (c->rank == root)
        bench_fill(c->out, c->bytes, seed);
    coll_call(c, root);
    return bench_check(c->out, c->bytes, seed);
}

/* Fills the input of a sum: rank r contributes r + i + seed. Sums of whole numbers are exact in any order. */
static void fill_sum(const struct coll *c, int n, unsigned seed)
{
    double *in = (double *)c->in;
    for (int i = 0; i < n; i++)
        in[i] = c->rank + i % 1000 + (double)seed;
    memset(c->out, 0xa5, c->bytes);
}

static long count_wrong_sums(const struct coll *c, int first, unsigned seed)
{
    const double *out = (const double *)c->out;
    long wrong = 0;
    for (int i = 0; i < c->count; i++)
        wrong +=
            out[i] != (double)c->size * (c->size - 1) / 2 + c->size * ((first + i) % 1000 + (double)seed);
    return wrong;
}

static long check_reduce(const struct coll *c, unsigned seed)
{
    fill_sum(c, c->count, seed);
    coll_call(c, seed_root(c, seed));
    return c->rank == seed_root(c, seed) ? count_wrong_sums(c, 0, seed) : 0;
}

static long check_allreduce(const struct coll *c, unsigned seed)
{
    fill_sum(c, c->count, seed);
    coll_call(c, 0);
    return count_wrong_sums(c, 0, seed);
}

static long check_reduce_scatter(const struct coll *c, unsigned seed)
{
    fill_sum(c, c->count * c->size, seed);
    coll_call(c, 0);
    return count_wrong_sums(c, c->count * c->rank, seed);
}

static long check_reduce_scatter_block(const struct coll *c, unsigned seed)
{
    fill_sum(c, c->count * c->size, seed);
    coll_call(c, 0);
    return count_wrong_sums(c, c->count * c->rank, seed);
}

static long count_wrong_blocks(const struct coll *c, unsigned seed)
{
    long wrong = 0;
    for (int r = 0; r < c->size; r++)
        wrong += bench_check(c->out + (size_t)r * c->bytes, c->bytes, seed + (unsigned)r);
    return wrong;
}

static long check_allgather(const struct coll *c, unsigned seed)
{
    bench_fill(c->in, c->bytes, seed + (unsigned)c->rank);
    memset(c->out, 0xa5, c->bytes * (size_t)c->size);
    coll_call(c, 0);
    return count_wrong_blocks(c, seed);
}

static long check_gather(const struct coll *c, unsigned seed)
{
    bench_fill(c->in, c->bytes, seed + (unsigned)c->rank);
    memset(c->out, 0xa5, c->bytes * (size_t)c->size);
    coll_call(c, seed_root(c, seed));
    return c->rank == seed_root(c, seed) ? count_wrong_blocks(c, seed) : 0;
}

static long check_scatter(const struct coll *c, unsigned seed)
{
    for (int r = 0; r < c->size; r++)
        bench_fill(c->in + (size_t)r * c->bytes, c->bytes, seed + (unsigned)r);
    memset(c->out, 0xa5, c->bytes);
    coll_call(c, seed_root(c, seed));
    return bench_check(c->out, c->bytes, seed + (unsigned)c->rank);
}

static long check_alltoall(const struct coll *c, unsigned seed)
{
    const unsigned size = (unsigned)c->size, me = (unsigned)c->rank;
    long wrong = 0;
    for (unsigned r = 0; r < size; r++)
        bench_fill(c->in + r * c->bytes, c->bytes, seed + me * size + r);
    memset(c->out, 0xa5, c->bytes * size);
    coll_call(c, 0);
    for (unsigned r = 0; r < size; r++)
        wrong += bench_check(c->out + r * c->bytes, c->bytes, seed + r * size + me);
    return wrong;
}

#define KIND_FORMS(name) .call = call_##name, .start = start_##name, .init = PERSISTENT(name)

static const struct coll_operation kinds[] = {
    {.name = "barrier", KIND_FORMS(barrier)},
    {.name = "bcast", .rooted = true, KIND_FORMS(bcast), .check = check_bcast},
    {.name = "reduce", .rooted = true, .reduces = true, KIND_FORMS(reduce), .check = check_reduce},
    {.name = "allreduce", .reduces = true, KIND_FORMS(allreduce), .check = check_allreduce},
    {.name = "allgather", .out_all = true, KIND_FORMS(allgather), .check = check_allgather},
    {.name = "alltoall", .in_all = true, .out_all = true, KIND_FORMS(alltoall), .check = check_alltoall},
    {.name = "gather", .rooted = true, .out_all = true, KIND_FORMS(gather), .check = check_gather},
    {.name = "scatter", .rooted = true, .in_all = true, KIND_FORMS(scatter), .check = check_scatter},
    {.name = "reduce_scatter",
     .in_all = true,
     .reduces = true,
     KIND_FORMS(reduce_scatter),
     .check = check_reduce_scatter},
    {.name = "reduce_scatter_block",
     .in_all = true,
     .reduces = true,
     KIND_FORMS(reduce_scatter_block),
     .check = check_reduce_scatter_block},
};

const struct coll_operation *coll_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

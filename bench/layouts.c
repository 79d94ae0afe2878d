/* layouts.c: ping-pong of noncontiguous data: a column of a matrix and a face of a cube, as in halo
 * exchanges.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { ROW = 64, CHECKS = 3 };

struct layout {
    MPI_Comm comm;
    int me;
    MPI_Datatype type; /* a message is one element of this type */
    int bytes;         /* bytes of data, without gaps */
    size_t extent;
    char *out, *in;
};

/* Makes the type of a matrix column: one double in each row of 64. */
static void make_column_layout(struct layout *l, size_t bytes)
{
    const int rows = (int)(bytes / sizeof(double));
    MPI_Type_vector(rows, 1, ROW, MPI_DOUBLE, &l->type);
    l->extent = (size_t)rows * ROW * sizeof(double);
    l->bytes = rows * (int)sizeof(double);
}

/* Makes the type of a face in the middle dimension of a cube of doubles: contiguous rows, one plane apart. */
static void make_face_layout(struct layout *l, size_t bytes)
{
    const int side = (int)sqrt((double)bytes / sizeof(double));
    const int sizes[3] = {side, side, side}, part[3] = {side, 1, side}, first[3] = {0, side / 2, 0};
    MPI_Type_create_subarray(3, sizes, part, first, MPI_ORDER_C, MPI_DOUBLE, &l->type);
    l->extent = (size_t)side * (size_t)side * (size_t)side * sizeof(double);
    l->bytes = side * side * (int)sizeof(double);
}

static void ping_pong(void *arg, int n)
{
    struct layout *l = arg;
    for (int i = 0; i < 2 * n; i++)
        if (i % 2 == l->me)
            MPI_Send(l->out, 1, l->type, 1 - l->me, 1, l->comm);
        else
            MPI_Recv(l->in, 1, l->type, 1 - l->me, 1, l->comm, MPI_STATUS_IGNORE);
}

/* Sends one message in each direction; returns the number of wrong bytes, including changed gaps. */
static long layout_check(struct layout *l, unsigned seed)
{
    char *data = bench_alloc((size_t)l->bytes), *expected = bench_alloc(l->extent);
    int at = 0;
    long wrong = 0;
    memset(l->in, 0xa5, l->extent);
    memset(expected, 0xa5, l->extent);
    bench_fill(data, (size_t)l->bytes, seed + (unsigned)l->me);
    MPI_Unpack(data, l->bytes, &at, l->out, 1, l->type, l->comm);
    ping_pong(l, 1);
    bench_fill(data, (size_t)l->bytes, seed + 1 - (unsigned)l->me);
    at = 0;
    MPI_Unpack(data, l->bytes, &at, expected, 1, l->type, l->comm);
    for (size_t i = 0; i < l->extent; i++)
        wrong += l->in[i] != expected[i];
    free(expected);
    free(data);
    return wrong;
}

void bench_layout(struct bench *b, const struct bench_test *test, size_t bytes)
{
    struct layout l = {.me = b->rank};
    struct bench_stats s;
    (strcmp(test->name, "column") == 0 ? make_column_layout : make_face_layout)(&l, bytes);
    MPI_Type_commit(&l.type);
    MPI_Comm_dup(b->team, &l.comm);
    l.out = bench_alloc(l.extent);
    l.in = bench_alloc(l.extent);
    for (unsigned seed = 0; seed < 2 * CHECKS; seed += 2)
        b->errors += layout_check(&l, seed);
    bench_measure(b, l.comm, false, ping_pong, &l, &s);
    free(l.out);
    free(l.in);
    MPI_Comm_free(&l.comm);
    MPI_Type_free(&l.type);
    if (b->rank != 0)
        return;
    bench_stats_divide(&s, 2);
    bench_report_time(b, test->name, (size_t)l.bytes, &s);
}

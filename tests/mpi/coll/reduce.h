/* reduce.h: tests of reductions with a sum, and with an operator that does not commute (composition of
 * affine maps) on a type with gaps; in place and not. Each rank computes the expected result itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_MPI_COLL_REDUCE_H
#define FP_TESTS_MPI_COLL_REDUCE_H

#include "mpitest.h"

#define PRIME 1009

/* The affine map x -> a x + b; composition is associative and not commutative. The type has gaps between
 * and after the coefficients. */
struct affine {
    int a, hole, b, tail;
};

static struct affine make_affine_map(int rank, long i)
{
    return (struct affine){.a = (int)(2 + (rank * 5 + i) % 11), .b = (int)(1 + (rank * 3 + i * 7) % 13)};
}

static struct affine affine_compose(struct affine l, struct affine r)
{
    return (struct affine){.a = l.a * r.a % PRIME, .b = (l.a * r.b + l.b) % PRIME};
}

static void affine_apply(void *in, void *inout, int *n, MPI_Datatype *type)
{
    struct affine *l = in, *r = inout;
    for (int i = 0; i < *n; i++) {
        struct affine v = affine_compose(l[i], r[i]);
        r[i].a = v.a;
        r[i].b = v.b;
    }
}

enum { OP_SUM, OP_AFFINE };

struct reduction_test {
    MPI_Comm comm;
    int rank, size;
    int operation;
    long n;
    MPI_Datatype type;
    MPI_Op op;
    size_t bytes; /* size of an element */
};

/* Computes the reduction of element i over ranks first .. last - 1. */
static void reduce_serially(const struct reduction_test *r, int first, int last, long i, void *out)
{
    if (r->operation == OP_SUM) {
        double v = 0;
        for (int k = first; k < last; k++)
            v += k * 3 + (double)i + 1;
        memcpy(out, &v, sizeof(v));
        return;
    }
    struct affine v = make_affine_map(first, i);
    for (int k = first + 1; k < last; k++)
        v = affine_compose(v, make_affine_map(k, i));
    memcpy(out, &v, sizeof(v));
}

static int element_is_equal(const struct reduction_test *r, const void *a, const void *b)
{
    if (r->operation == OP_SUM)
        return memcmp(a, b, sizeof(double)) == 0;
    const struct affine *x = a, *y = b;
    return x->a == y->a && x->b == y->b;
}

static char *make_contribution(const struct reduction_test *r, long n, int rank)
{
    char *v = calloc((size_t)n + 1, r->bytes);
    for (long i = 0; i < n; i++)
        reduce_serially(r, rank, rank + 1, i, v + (size_t)i * r->bytes);
    return v;
}

static void expect_reduced(const struct reduction_test *r, const char *what, const char *got, long first_item,
                           long n, int first, int last)
{
    for (long i = 0; i < n; i++) {
        char want[sizeof(struct affine)];
        reduce_serially(r, first, last, first_item + i, want);
        if (!element_is_equal(r, got + (size_t)i * r->bytes, want)) {
            if (mpitest_failures++ < 20)
                fprintf(stderr,
                        "rank %d of %d: %s of %ld elements, operator %d: wrong result in element %ld\n",
                        r->rank, r->size, what, r->n, r->operation, i);
            return;
        }
    }
}

static void test_rooted(const struct reduction_test *r, int root, int in_place)
{
    char *send = make_contribution(r, r->n, r->rank), *recv = calloc((size_t)r->n + 1, r->bytes);
    int here = in_place && r->rank == root;
    if (here)
        memcpy(recv, send, (size_t)r->n * r->bytes);
    MPI_Reduce(here ? MPI_IN_PLACE : send, recv, (int)r->n, r->type, r->op, root, r->comm);
    if (r->rank == root)
        expect_reduced(r, "reduce", recv, 0, r->n, 0, r->size);
    free(send);
    free(recv);
}

static void test_all(const struct reduction_test *r, int in_place)
{
    char *send = make_contribution(r, r->n, r->rank), *recv = calloc((size_t)r->n + 1, r->bytes);
    for (int which = 0; which < 3; which++) {
        memset(recv, 0, (size_t)r->n * r->bytes);
        if (in_place)
            memcpy(recv, send, (size_t)r->n * r->bytes);
        const void *from = in_place ? MPI_IN_PLACE : send;
        if (which == 0) {
            MPI_Allreduce(from, recv, (int)r->n, r->type, r->op, r->comm);
            expect_reduced(r, "allreduce", recv, 0, r->n, 0, r->size);
        } else if (which == 1) {
            MPI_Scan(from, recv, (int)r->n, r->type, r->op, r->comm);
            expect_reduced(r, "scan", recv, 0, r->n, 0, r->rank + 1);
        } else {
            MPI_Exscan(from, recv, (int)r->n, r->type, r->op, r->comm);
            if (r->rank > 0)
                expect_reduced(r, "exscan", recv, 0, r->n, 0, r->rank);
        }
    }
    free(send);
    free(recv);
}

static void test_scattered(const struct reduction_test *r, int in_place)
{
    int counts[64];
    long total = 0, before = 0;
    for (int i = 0; i < r->size; i++) {
        counts[i] = (int)(i % 3 == 1 ? 0 : r->n + i);
        before += i < r->rank ? counts[i] : 0;
        total += counts[i];
    }
    char *send = make_contribution(r, total, r->rank), *recv = calloc((size_t)total + 1, r->bytes);
    if (in_place)
        memcpy(recv, send, (size_t)total * r->bytes);
    MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : send, recv, counts, r->type, r->op, r->comm);
    expect_reduced(r, "reduce_scatter", recv, before, counts[r->rank], 0, r->size);
    free(send);
    free(recv);

    total = r->n * r->size;
    send = make_contribution(r, total, r->rank);
    recv = calloc((size_t)total + 1, r->bytes);
    if (in_place)
        memcpy(recv, send, (size_t)total * r->bytes);
    MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : send, recv, (int)r->n, r->type, r->op, r->comm);
    expect_reduced(r, "reduce_scatter_block", recv, r->n * r->rank, r->n, 0, r->size);
    free(send);
    free(recv);
}

static void test_all_reductions(MPI_Comm comm, long n)
{
    MPI_Datatype pair, affine;
    MPI_Op compose;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(struct affine), &affine);
    MPI_Type_commit(&affine);
    MPI_Type_free(&pair);
    MPI_Op_create(affine_apply, 0, &compose);
    for (int what = OP_SUM; what <= OP_AFFINE; what++) {
        struct reduction_test r = {.comm = comm, .operation = what, .n = n};
        r.type = what == OP_SUM ? MPI_DOUBLE : affine;
        r.op = what == OP_SUM ? MPI_SUM : compose;
        r.bytes = what == OP_SUM ? sizeof(double) : sizeof(struct affine);
        MPI_Comm_rank(comm, &r.rank);
        MPI_Comm_size(comm, &r.size);
        for (int in_place = 0; in_place < 2; in_place++) {
            for (int root = 0; root < r.size; root++)
                test_rooted(&r, root, in_place);
            test_all(&r, in_place);
            test_scattered(&r, in_place);
        }
    }
    MPI_Op_free(&compose);
    MPI_Type_free(&affine);
}

#endif

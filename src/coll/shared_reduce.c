/* shared_reduce.c: reduce and allreduce through a shared block. Contributions are combined from the last rank
 * to the first, so that each application is `in op inout` and the order of operands is kept; every rank that
 * computes an element computes it the same way, so results are the same bits everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/copy.h"
#include "coll/shared.h"

#define ALL_READ_RANKS 3    /* up to so many ranks everyone combines whole pieces, however long */
#define ALL_READ_MAX   1024 /* up to so many bytes everyone does, whatever the number of ranks */

struct job {
    struct shared *b;
    const struct coll_args *args;
    struct dtype *type;
    const char *in; /* my contribution; in place, the result's memory */
    char *out;
    bool plain;      /* elements in memory are as in a slot */
    char *scratch;   /* an unpacked piece, for types that are not */
    MPI_Count first; /* of this piece */
};

static char *element(const struct job *j, const void *base, MPI_Count index)
{
    return ptr_add(base, (j->first + index) * j->type->extent);
}

/* Elements of the piece into a slot, and out of one. */
static void put(const struct job *j, char *slot, const void *base, MPI_Count from, MPI_Count n)
{
    if (j->plain)
        copy_bytes(slot, element(j, base, from), (size_t)(n * j->type->size));
    else
        dt_pack_all(j->type, n, element(j, base, from), slot);
}

static void get(const struct job *j, void *base, MPI_Count from, MPI_Count n, const char *slot)
{
    if (j->plain)
        copy_bytes(element(j, base, from), slot, (size_t)(n * j->type->size));
    else
        dt_unpack_all(j->type, n, element(j, base, from), slot, (size_t)(n * j->type->size));
}

/* A rank's elements as the operator wants them. My own are still in my buffer unless the result goes there.
 */
static const void *operand(const struct job *j, int rank, uint64_t step, size_t bytes, MPI_Count from,
                           MPI_Count n)
{
    if (rank == j->b->comm->rank && !j->args->in_place)
        return element(j, j->in, from);
    const char *slot = shared_slot(j->b, rank, step, bytes) + from * j->type->size;
    if (j->plain)
        return slot;
    void *base = ptr_add(j->scratch, -j->type->true_lb);
    dt_unpack_all(j->type, n, base, slot, (size_t)(n * j->type->size));
    return base;
}

/* Elements from .. from + n - 1 of the piece of `bytes` bytes, from all ranks' slots, into my result. */
static void combine(const struct job *j, uint64_t step, size_t bytes, MPI_Count from, MPI_Count n)
{
    const struct op *op = j->args->op;
    char *out = element(j, j->out, from);
    int r = j->b->comm->size - 1;
    const void *right = operand(j, r, step, bytes, from, n);
    if (j->plain && op_apply3(op, operand(j, r - 1, step, bytes, from, n), right, out, n, j->type))
        r--;
    else if (right != out)
        dt_copy(right, n, j->type, out, n, j->type);
    while (--r >= 0)
        op_apply(op, operand(j, r, step, bytes, from, n), out, n, j->type);
}

static int job_open(struct job *j, struct shared *b, const struct coll_args *args, size_t piece)
{
    *j = (struct job){.b = b,
                      .args = args,
                      .type = args->send.type,
                      .in = args->in_place ? args->recv.buf : args->send.buf,
                      .out = args->recv.buf,
                      .plain = args->send.type->contiguous};
    if (j->plain)
        return 0;
    MPI_Aint gap;
    j->scratch = malloc((size_t)dt_span(j->type, (MPI_Count)piece / j->type->size, &gap) + 1);
    return j->scratch ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for a piece of a reduction");
}

/* Everyone reads everyone's piece: one meeting. */
static void allreduce_whole(struct job *j, MPI_Count n, size_t bytes)
{
    uint64_t step = shared_begin(j->b, bytes);
    put(j, shared_slot(j->b, j->b->comm->rank, step, bytes), j->in, 0, n);
    if (shared_meet(j->b, step))
        combine(j, step, bytes, 0, n);
}

/* Each rank combines its share of the piece, then everyone collects the shares: two meetings, but nobody
 * reads more than two pieces. */
static void allreduce_shares(struct job *j, MPI_Count n, size_t bytes)
{
    struct shared *b = j->b;
    const int size = b->comm->size, me = b->comm->rank;
    const MPI_Count each = (n + size - 1) / size;
    const size_t share_bytes = (size_t)(each * j->type->size);
    uint64_t step = shared_begin(b, bytes);
    put(j, shared_slot(b, me, step, bytes), j->in, 0, n);
    if (!shared_meet(b, step))
        return;
    MPI_Count from = MIN(me * each, n), mine = MIN(each, n - from);
    if (mine > 0)
        combine(j, step, bytes, from, mine);
    step = shared_begin(b, share_bytes);
    if (mine > 0)
        put(j, shared_slot(b, me, step, share_bytes), j->out, from, mine);
    if (!shared_meet(b, step))
        return;
    for (int k = 1; k < size; k++) {
        int r = (me + k) % size;
        from = MIN(r * each, n);
        if (from < n)
            get(j, j->out, from, MIN(each, n - from), shared_slot(b, r, step, share_bytes));
    }
}

int shared_allreduce(struct shared *b, const struct coll_args *args, size_t piece)
{
    struct job j;
    int rc = job_open(&j, b, args, piece);
    if (rc)
        return rc;
    const MPI_Count total = args->send.count, most = (MPI_Count)piece / j.type->size;
    for (j.first = 0; j.first < total && !b->stranger; j.first += most) {
        MPI_Count n = MIN(most, total - j.first);
        size_t bytes = (size_t)(n * j.type->size);
        if (b->comm->size <= ALL_READ_RANKS || bytes <= ALL_READ_MAX)
            allreduce_whole(&j, n, bytes);
        else
            allreduce_shares(&j, n, bytes);
    }
    free(j.scratch);
    return 0;
}

/* The root combines what the others post; they go on at once. */
int shared_reduce(struct shared *b, const struct coll_args *args, size_t piece)
{
    const bool root = b->comm->rank == args->root;
    struct job j;
    int rc = job_open(&j, b, args, piece);
    if (rc)
        return rc;
    const MPI_Count total = args->send.count, most = (MPI_Count)piece / j.type->size;
    for (j.first = 0; j.first < total && !b->stranger; j.first += most) {
        MPI_Count n = MIN(most, total - j.first);
        size_t bytes = (size_t)(n * j.type->size);
        uint64_t step = root && !args->in_place ? shared_begin_reading(b) : shared_begin(b, bytes);
        if (!root || args->in_place)
            put(&j, shared_slot(b, b->comm->rank, step, bytes), j.in, 0, n);
        if (!root) {
            shared_post(b, step);
            shared_done(b, step); /* it reads nothing */
            shared_wake(b, args->root);
            continue;
        }
        bool match = true;
        for (int r = b->comm->size - 1; r >= 0 && match; r--)
            match = r == args->root || shared_wait(b, r, step);
        if (match)
            combine(&j, step, bytes, 0, n);
        shared_done(b, step);
    }
    free(j.scratch);
    return 0;
}

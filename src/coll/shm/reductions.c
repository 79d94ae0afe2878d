/* reductions.c: reduce, allreduce and reduce_scatter through a shared block. Contributions are combined from
 * the last rank to the first, so that each reduction is `in op inout` and the operand order is preserved. All
 * ranks compute an element in the same way, so results are bitwise identical.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/copy.h"
#include "coll/shm/shared_transfer.h"

#define THERE_PIECE ((size_t)64 * SPLIT_UNIT) /* bytes of each direct read into the result */

struct job {
    struct transfer t; /* first member: callbacks receive its address */
    struct dtype *type;
    const char *in;    /* contribution of this rank; equal to `out` for calls in place */
    char *out;         /* the result */
    char *copy;        /* copy of a contribution that the result would overwrite; allocated, or NULL */
    bool plain;        /* elements have the same layout in memory as in a slot */
    MPI_Count skip;    /* reduce_scatter: first element of this rank's block in its contribution */
    MPI_Count mine;    /* elements of the result at this rank */
    bool there;        /* the other rank's elements may be read directly into the result */
    const char *own;   /* in place: copy of this rank's elements of the current piece */
    MPI_Count from, n; /* first element and number of elements that are being combined */
};

static char *job_element(const struct job *j, const void *base, MPI_Count index)
{
    return ptr_add(base, index * j->type->extent);
}

/* Copy elements into a slot, and from a slot. */
static void put_elements(const struct job *j, char *slot, const void *base, MPI_Count from, MPI_Count n)
{
    if (j->plain)
        copy_bytes(slot, job_element(j, base, from), (size_t)(n * j->type->size));
    else
        dt_pack_all(j->type, n, job_element(j, base, from), slot);
}

static void get_elements(const struct job *j, void *base, MPI_Count from, MPI_Count n, const char *slot)
{
    if (j->plain)
        copy_bytes(job_element(j, base, from), slot, (size_t)(n * j->type->size));
    else
        dt_unpack_all(j->type, n, job_element(j, base, from), slot, (size_t)(n * j->type->size));
}

static void copy_vector_part(struct transfer *t, char *slot, size_t at, size_t len)
{
    const struct job *j = (const struct job *)t;
    put_elements(j, slot, j->in, (MPI_Count)at / j->type->size, (MPI_Count)len / j->type->size);
}

/* Copies part of each rank's block to a slot; a block may be shorter than the longest one. */
static void put_blocks(struct transfer *t, char *slot, size_t at, size_t len)
{
    const struct job *j = (const struct job *)t;
    const int me = t->b->comm->rank, size = t->b->comm->size;
    const MPI_Count first = (MPI_Count)at / j->type->size, most = (MPI_Count)len / j->type->size;
    for (int k = 1; k < size; k++) {
        const int r = (me + k) % size;
        const MPI_Count there = t->starts[r + 1] - t->starts[r];
        if (first < there)
            put_elements(j, slot + transfer_offset(t, me, r, len), j->in, t->starts[r] + first,
                         MIN(most, there - first));
    }
}

/* Returns part `which` of the scratch memory: two parts for operands, one for this rank's own elements. */
static char *job_scratch(const struct job *j, int which)
{
    return shared_scratch(j->t.b) + (size_t)which * SHARED_SCRATCH;
}

static const void *job_unpack(const struct job *j, const char *packed, int which)
{
    if (j->plain)
        return packed;
    void *base = ptr_add(job_scratch(j, which), -j->type->true_lb);
    dt_unpack_all(j->type, j->n, base, packed, (size_t)(j->n * j->type->size));
    return base;
}

/* Returns rank r's elements j->from .. j->from + j->n - 1 in the layout that the operator requires. `slot`
 * contains rank r's piece, which starts with element `first`. */
static const void *job_operand(struct job *j, int r, const char *slot, MPI_Count first)
{
    struct transfer *t = &j->t;
    const MPI_Count size = j->type->size;
    if (r == t->b->comm->rank)
        return j->own ? j->own : job_element(j, j->in, j->skip + j->from);
    if (t->reading >> r & 1) {
        int rc = shared_read(t->b, r, job_scratch(j, r & 1),
                             t->remote[r] + (uint64_t)((j->skip + j->from) * size), (size_t)(j->n * size));
        if (rc && !t->error)
            t->error = rc;
        return job_scratch(j, r & 1);
    }
    return job_unpack(j, slot + (j->from - first) * size, r & 1);
}

/* For a call in place: saves this rank's elements before the result overwrites them. Other ranks read
 * copies in this rank's slot. */
static void save_own_elements(struct job *j, const char *slot, MPI_Count first)
{
    if (j->t.args->kind == COLL_ALLREDUCE) {
        j->own = job_unpack(j, slot + (j->from - first) * j->type->size, 2);
        return;
    }
    char *base = ptr_add(job_scratch(j, 2), -j->type->true_lb);
    dt_copy(job_element(j, j->in, j->from), j->n, j->type, base, j->n, j->type);
    j->own = base;
}

/* Combines elements j->from .. j->from + j->n - 1 of all ranks. Their piece has `len` bytes from element
 * `first`. */
static void job_combine(struct job *j, uint64_t step, MPI_Count first, size_t len)
{
    const struct transfer *t = &j->t;
    const struct op *op = t->args->op;
    char *out = job_element(j, j->out, j->from);
    int r = t->b->comm->size - 1;
    j->own = NULL;
    if (j->in == j->out)
        save_own_elements(j, transfer_slot(t, t->b->comm->rank, step, len), first);
    const void *right = job_operand(j, r, transfer_slot(t, r, step, len), first);
    if (j->plain && op_apply3(op, job_operand(j, r - 1, transfer_slot(t, r - 1, step, len), first), right,
                              out, j->n, j->type))
        r--;
    else if (right != out)
        dt_copy(right, j->n, j->type, out, j->n, j->type);
    while (--r >= 0)
        op_apply(op, job_operand(j, r, transfer_slot(t, r, step, len), first), out, j->n, j->type);
}

/* Combines the elements of a step in portions that fit in the scratch memory. */
static void job_finish(struct transfer *t, uint64_t step, size_t at, size_t len)
{
    struct job *j = (struct job *)t;
    if (t->fetched)
        return;
    const MPI_Count size = j->type->size, first = (MPI_Count)at / size;
    const MPI_Count end = MIN(first + (MPI_Count)len / size, j->mine);
    const MPI_Count most = MAX(SHARED_SCRATCH / MAX(size, j->type->extent), 1);
    for (j->from = first; j->from < end; j->from += j->n) {
        j->n = MIN(most, end - j->from);
        job_combine(j, step, first, MIN(len, t->chunk));
    }
}

/* Called when the other rank's elements have arrived in the result: combines them with this rank's. */
static void combine_received_elements(void *arg, size_t at, size_t len)
{
    const struct job *j = arg;
    const MPI_Count first = (MPI_Count)at / j->type->size;
    op_apply(j->t.args->op, job_element(j, j->in, first), job_element(j, j->out, first),
             (MPI_Count)len / j->type->size, j->type);
}

/* Called when the reader's elements are in scratch memory: the owner combines them with its own. */
static void combine_scratch_elements(void *arg, size_t at, size_t len)
{
    const struct job *j = arg;
    op_apply(j->t.args->op, job_element(j, j->in, (MPI_Count)at / j->type->size), job_scratch(j, 0),
             (MPI_Count)len / j->type->size, j->type);
}

/* Reads the other rank's elements directly into the result: a third buffer would need cache too. */
static void fetch_to_result(struct transfer *t, int r)
{
    struct job *j = (struct job *)t;
    if (!j->there)
        return;
    for (size_t at = 0; at < t->bytes && !t->error; at += THERE_PIECE) {
        const size_t len = MIN(THERE_PIECE, t->bytes - at);
        t->error = shared_read(t->b, r, j->out + at, t->remote[r] + at, len);
        if (!t->error)
            combine_received_elements(j, at, len);
    }
    t->fetched = true;
}

static void fetch_and_combine_split(struct transfer *t, int r)
{
    const int rc = split_copy_read(t->b, r, t->remote[r], t->target, t->bytes, combine_received_elements, t);
    if (rc && !t->error)
        t->error = rc;
    t->fetched = true;
}

static const struct transfer_ops vector_ops = {.put = copy_vector_part,
                                               .fetch = fetch_to_result,
                                               .fetch_helped = fetch_and_combine_split,
                                               .combine = combine_scratch_elements,
                                               .finish = job_finish};
static const struct transfer_ops blocks_ops = {.put = put_blocks, .finish = job_finish};

/* Each rank combines its share of the piece, then all ranks collect the shares: two synchronisations, but
 * no rank reads more than two pieces. */
static void allreduce_shares(struct job *j, MPI_Count first, MPI_Count n)
{
    struct shared *b = j->t.b;
    const int size = b->comm->size, me = b->comm->rank;
    const MPI_Count each = (n + size - 1) / size;
    const size_t bytes = (size_t)(n * j->type->size), broadcast_bytes = (size_t)(each * j->type->size);
    uint64_t step = shared_begin_step(b, bytes, SHARED_EVERYONE);
    put_elements(j, shared_slot(b, me, step, bytes), j->in, first, n);
    if (!shared_synchronize(b, step, METHOD_SLOTS))
        return;
    MPI_Count from = MIN(me * each, n), mine = MIN(each, n - from);
    j->from = first + from;
    j->n = mine;
    if (mine > 0)
        job_combine(j, step, first, bytes);
    shared_report_step(b, step);
    step = shared_begin_step(b, broadcast_bytes, SHARED_EVERYONE);
    if (mine > 0)
        put_elements(j, shared_slot(b, me, step, broadcast_bytes), j->out, first + from, mine);
    if (!shared_synchronize(b, step, METHOD_SLOTS))
        return;
    for (int k = 1; k < size; k++) {
        const int r = (me + k) % size;
        from = MIN(r * each, n);
        if (from < n)
            get_elements(j, j->out, first + from, MIN(each, n - from),
                         shared_slot(b, r, step, broadcast_bytes));
    }
    shared_report_step(b, step);
}

static bool run_allreduce_shares(struct job *j)
{
    struct shared *b = j->t.b;
    const MPI_Count total = j->t.args->send.count;
    size_t slot = SHARED_SMALL;
    if (j->t.bytes > SHARED_SMALL) {
        if (!shared_open_big(b))
            return false;
        slot = b->head->big_size;
    }
    const MPI_Count most = MIN((MPI_Count)slot, SHARED_SCRATCH) / j->type->size;
    if (most == 0)
        return false;
    for (MPI_Count first = 0; first < total && !b->mismatched_rank; first += most)
        allreduce_shares(j, first, MIN(most, total - first));
    return true;
}

/* Copies the input of a reduce_scatter in place: the result overwrites the beginning of the input, which
 * other ranks still need. */
static int copy_input(struct job *j, MPI_Count n)
{
    MPI_Aint gap;
    const size_t span = (size_t)dt_span(j->type, n, &gap);
    j->copy = malloc(span + 1);
    if (!j->copy)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the input of a reduction in place");
    dt_copy(j->in, n, j->type, j->copy - gap, n, j->type);
    j->in = j->copy - gap;
    return 0;
}

static const void *job_offer_memory(const struct job *j)
{
    MPI_Aint offset;
    const struct coll_side *send = &j->t.args->send;
    if (j->t.bytes <= SHARED_SHORT || !j->plain || j->in == j->out)
        return NULL;
    return dt_is_contiguous_block(send->type, 1, &offset) ? j->in + offset : NULL;
}

/* True for a reduce of two ranks in which each rank may combine a part. The operator must be commutative,
 * and SPLIT_UNIT a multiple of the element size. */
static bool job_can_split(const struct job *j)
{
    return j->t.args->kind == COLL_REDUCE && j->t.b->comm->size == 2 && j->t.bytes >= SPLIT_COPY_MIN &&
           j->t.args->op->commutative && SPLIT_UNIT % j->type->size == 0;
}

/* True if the other rank's elements may be read into the result memory. */
static bool job_fits_result(const struct job *j)
{
    return j->t.args->kind == COLL_REDUCE && j->t.b->comm->size == 2 &&
           j->t.args->root == j->t.b->comm->rank && j->plain && j->in != j->out &&
           j->t.args->op->commutative && SPLIT_UNIT % j->type->size == 0;
}

static int job_open(struct job *j, struct shared *b, const struct coll_args *args, const struct call *call)
{
    const bool scatter = args->kind == COLL_REDUCE_SCATTER;
    const int me = b->comm->rank;
    j->t.b = b;
    j->t.args = args;
    j->t.ops = scatter ? &blocks_ops : &vector_ops;
    j->t.writer = SHARED_EVERYONE;
    j->t.reader = args->kind == COLL_REDUCE ? args->root : SHARED_EVERYONE;
    j->t.each = scatter;
    j->t.starts = call->shape.starts;
    j->t.reading = 0;
    j->t.error = 0;
    j->type = args->send.type;
    j->in = args->in_place ? args->recv.buf : args->send.buf;
    j->out = args->recv.buf;
    j->copy = NULL;
    j->plain = j->type->contiguous;
    j->skip = scatter ? call->shape.starts[me] : 0;
    j->mine = scatter ? call->shape.starts[me + 1] - call->shape.starts[me] : args->send.count;
    j->t.bytes = call->where.bytes;
    if (scatter) {
        int64_t longest = 0;
        for (int r = 0; r < b->comm->size; r++)
            longest = MAX(longest, call->shape.starts[r + 1] - call->shape.starts[r]);
        j->t.bytes = (size_t)longest * (size_t)j->type->size;
    }
    return args->in_place && scatter ? copy_input(j, call->shape.starts[b->comm->size]) : 0;
}

bool shared_combine(struct shared *b, const struct coll_args *args, const struct call *call, int *rc)
{
    struct job j;
    if (args->send.type->size > SHARED_SMALL || args->send.type->extent > SHARED_SCRATCH)
        return false;
    *rc = job_open(&j, b, args, call);
    if (*rc)
        return true;
    j.t.offer = job_offer_memory(&j);
    j.t.helps = job_can_split(&j);
    j.there = job_fits_result(&j);
    j.t.target = j.t.helps && j.there ? j.out : NULL;
    j.t.mine = j.in;
    j.t.fetched = false;
    bool done;
    if (args->kind == COLL_ALLREDUCE && b->comm->size > SHARED_ALL_READ_RANKS &&
        j.t.bytes > SHARED_ALL_READ_MAX)
        done = run_allreduce_shares(&j);
    else
        done = transfer_run(&j.t, (size_t)j.type->size);
    free(j.copy);
    *rc = j.t.error;
    return done;
}

/* data_movement.c: barrier, bcast, gather, scatter, allgather and alltoall through a shared block.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/copy.h"
#include "coll/shm/shared_transfer.h"

void shared_barrier(struct shared *b)
{
    const uint64_t step = shared_begin_step(b, 0, SHARED_EVERYONE);
    shared_synchronize(b, step, METHOD_SLOTS);
    shared_report_short_step(b, step);
}

/* Returns the address of block `index` of a side. */
static char *side_block(const struct coll_side *side, int index)
{
    return ptr_add(side->buf, index * side->count * side->type->extent);
}

static void side_pack(const struct coll_side *side, int index, char *out, size_t at, size_t len)
{
    MPI_Aint offset;
    struct dt_cursor cursor;
    if (likely(dt_is_contiguous_block(side->type, side->count, &offset))) {
        copy_bytes(out, side_block(side, index) + offset + at, len);
        return;
    }
    dt_cursor_init(&cursor, side->type, side->count, side_block(side, index));
    if (at)
        dt_cursor_seek(&cursor, at);
    dt_cursor_pack(&cursor, out, len);
}

static void side_unpack(const struct coll_side *side, int index, const char *in, size_t at, size_t len)
{
    MPI_Aint offset;
    struct dt_cursor cursor;
    if (likely(dt_is_contiguous_block(side->type, side->count, &offset))) {
        copy_bytes(side_block(side, index) + offset + at, in, len);
        return;
    }
    dt_cursor_init(&cursor, side->type, side->count, side_block(side, index));
    if (at)
        dt_cursor_seek(&cursor, at);
    dt_cursor_unpack(&cursor, in, len);
}

/* Reads a whole block from the memory of rank r, through scratch memory if it is not contiguous here. */
static void read_block(struct transfer *t, const struct coll_side *side, int index, int r, uint64_t from)
{
    MPI_Aint offset;
    int rc = 0;
    if (dt_is_contiguous_block(side->type, side->count, &offset)) {
        rc = shared_read(t->b, r, side_block(side, index) + offset, from, t->bytes);
    } else {
        char *scratch = shared_scratch(t->b);
        for (size_t at = 0; at < t->bytes && !rc; at += SHARED_SCRATCH) {
            const size_t len = MIN(SHARED_SCRATCH, t->bytes - at);
            rc = shared_read(t->b, r, scratch, from + at, len);
            if (!rc)
                side_unpack(side, index, scratch, at, len);
        }
    }
    if (rc && !t->error)
        t->error = rc;
}

/* Returns the side (send or receive arguments) that holds this rank's contribution. */
static const struct coll_side *transfer_my_side(const struct transfer *t)
{
    const enum coll_kind kind = t->args->kind;
    const bool from_recv = kind == COLL_BCAST || (t->args->in_place && kind != COLL_SCATTER);
    return from_recv ? &t->args->recv : &t->args->send;
}

/* Returns the index of this rank's block; for an allgather in place its block in the result. */
static int own_block_index(const struct transfer *t)
{
    return t->args->kind == COLL_ALLGATHER && t->args->in_place ? t->b->comm->rank : 0;
}

static void pack_blocks(struct transfer *t, char *slot, size_t at, size_t len)
{
    const int me = t->b->comm->rank, size = t->b->comm->size;
    const struct coll_side *side = transfer_my_side(t);
    if (!t->each)
        side_pack(side, own_block_index(t), slot, at, len);
    for (int k = 1; k < size && t->each; k++)
        side_pack(side, (me + k) % size, slot + transfer_offset(t, me, (me + k) % size, len), at, len);
}

/* Returns the index of the receive block for data of rank r: r if each rank has a block, else 0. */
static int source_block_index(const struct transfer *t, int r)
{
    return t->args->kind == COLL_BCAST || t->args->kind == COLL_SCATTER ? 0 : r;
}

static void unpack_block(struct transfer *t, int r, const char *from, size_t at, size_t len)
{
    side_unpack(&t->args->recv, source_block_index(t, r), from, at, len);
}

/* Returns the address of the data for this rank in the memory of rank r. */
static uint64_t remote_block_address(const struct transfer *t, int r)
{
    return t->remote[r] + (t->each ? (size_t)t->b->comm->rank * t->bytes : 0);
}

static void fetch_block(struct transfer *t, int r)
{
    read_block(t, &t->args->recv, source_block_index(t, r), r, remote_block_address(t, r));
}

static void fetch_block_split(struct transfer *t, int r)
{
    char *to = (char *)t->target + (size_t)source_block_index(t, r) * t->bytes;
    const int rc = split_copy_read(t->b, r, remote_block_address(t, r), to, t->bytes, NULL, NULL);
    if (rc && !t->error)
        t->error = rc;
}

/* Copies the data that a rank sends to itself. */
static void copy_own_data(struct transfer *t, int from, int to)
{
    const struct coll_side *s = &t->args->send, *r = &t->args->recv;
    if (t->args->in_place)
        return;
    const int rc = dt_copy(side_block(s, from), s->count, s->type, side_block(r, to), r->count, r->type);
    if (rc)
        t->error = rc;
    else if (unlikely(s->count * s->type->size < r->count * r->type->size))
        t->error =
            err_set(MPI_ERR_OTHER,
                    "a collective call sends %lld bytes from this rank to itself, where it expects %lld: "
                    "counts and datatypes do not match",
                    (long long)(s->count * s->type->size), (long long)(r->count * r->type->size));
}

static void copy_own_block(struct transfer *t)
{
    const int me = t->b->comm->rank;
    switch (t->args->kind) {
    case COLL_GATHER:
        if (t->args->root == me)
            copy_own_data(t, 0, me);
        break;
    case COLL_SCATTER:
        if (t->args->root == me)
            copy_own_data(t, me, 0);
        break;
    case COLL_ALLGATHER:
        copy_own_data(t, 0, me);
        break;
    case COLL_ALLTOALL:
        copy_own_data(t, me, me);
        break;
    default:
        break;
    }
}

static const struct transfer_ops move_ops = {.put = pack_blocks,
                                             .take = unpack_block,
                                             .fetch = fetch_block,
                                             .fetch_helped = fetch_block_split,
                                             .own = copy_own_block};

/* Returns the memory that others may read: all blocks of this rank, if they are contiguous, else NULL. */
static const void *transfer_readable_memory(const struct transfer *t, int blocks)
{
    const struct coll_side *side = transfer_my_side(t);
    MPI_Aint offset;
    if (t->bytes <= SHARED_SHORT || (t->args->kind == COLL_ALLTOALL && t->args->in_place))
        return NULL;
    if (!dt_is_contiguous_block(side->type, side->count * blocks, &offset))
        return NULL;
    return side_block(side, own_block_index(t)) + offset;
}

/* True if the owner of data may write a part of it into the memory of the reader: the data must have
 * exactly one reader, so bcast and scatter only with two ranks. */
static bool transfer_can_split(const struct transfer *t)
{
    return t->bytes >= SPLIT_COPY_MIN &&
           (t->args->kind == COLL_GATHER || (t->b->comm->size == 2 && t->writer >= 0));
}

/* Returns the result memory into which owners may write, if it is contiguous, else NULL. */
static void *transfer_result_memory(const struct transfer *t)
{
    const struct coll_side *side = &t->args->recv;
    MPI_Aint offset;
    if (t->args->kind == COLL_GATHER)
        return side->type->contiguous ? side->buf : NULL;
    return dt_is_contiguous_block(side->type, side->count, &offset) ? side_block(side, 0) + offset : NULL;
}

bool shared_move_data(struct shared *b, const struct coll_args *args, size_t bytes, int *rc)
{
    const int me = b->comm->rank, root = args->root;
    struct transfer t;
    t.b = b;
    t.args = args;
    t.bytes = bytes;
    t.reading = 0;
    t.error = 0;
    t.writer = t.reader = SHARED_EVERYONE;
    t.each = args->kind == COLL_SCATTER || args->kind == COLL_ALLTOALL;
    t.ops = &move_ops;
    if (args->kind == COLL_BCAST || args->kind == COLL_SCATTER)
        t.writer = root;
    if (args->kind == COLL_GATHER)
        t.reader = root;
    const bool writes = t.writer == SHARED_EVERYONE ? t.reader != me : t.writer == me;
    t.offer = writes ? transfer_readable_memory(&t, t.each ? b->comm->size : 1) : NULL;
    t.helps = transfer_can_split(&t);
    t.target = t.helps && !writes ? transfer_result_memory(&t) : NULL;
    t.mine = NULL;
    t.fetched = false;
    if (!transfer_run(&t, CACHE_LINE))
        return false;
    *rc = t.error;
    return true;
}

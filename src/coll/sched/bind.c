/* bind.c: maps a schedule's buffers to memory. Data in temporary memory is packed, except partial results of
 * reductions, which keep the layout of their datatype, as operators require.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/sched/bind.h"

#include <stdlib.h>
#include <string.h>

static void bind_uniform(struct bound *b, void *base, MPI_Count unit, struct dtype *type)
{
    *b = (struct bound){.base = base, .type = type, .unit = unit, .stride = type ? unit * type->extent : 0};
}

static void bind_side_buffers(struct bound *b, const struct coll_side *side)
{
    if (!side->counts.p) {
        bind_uniform(b, side->buf, side->count, side->type);
        return;
    }
    *b = (struct bound){.base = side->buf,
                        .type = side->type,
                        .counts = side->counts,
                        .displs = side->displs,
                        .types = side->types};
}

/* Returns the bytes of one block, computed from the side (send or receive) that is valid at this rank. */
static MPI_Count block_bytes(const struct coll_args *args, const struct coll_shape *shape)
{
    const struct coll_side *s = &args->send;
    bool use_recv = args->in_place || !s->type || s->counts.p;
    if (shape->kind == COLL_SCATTER && shape->rank != shape->root)
        use_recv = true;
    if (use_recv)
        s = &args->recv;
    return s->type && !s->counts.p ? s->count * s->type->size : 0;
}

/* Computes the offsets of packed blocks of different sizes in temporary memory, for calls in place. */
static int bind_temp_blocks(struct binding *b, int64_t items)
{
    b->temp_starts = malloc(((size_t)items + 1) * sizeof(int64_t));
    if (!b->temp_starts)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the offsets of %lld blocks", (long long)items);
    int64_t at = 0;
    for (int64_t i = 0; i < items; i++) {
        struct place p = binding_get_place(b, BUF_RECV, i, 1);
        b->temp_starts[i] = at;
        at += p.count * p.type->size;
    }
    b->temp_starts[items] = at;
    b->temp_size = (size_t)at;
    return 0;
}

static int bind_bcast(struct binding *b, const struct coll_args *args, const struct coll_shape *shape,
                      bool splits)
{
    const struct coll_side *side = &args->recv;
    struct bound *data = &b->buf[BUF_RECV];
    MPI_Aint offset;
    if (dt_is_contiguous_block(side->type, side->count, &offset)) {
        bind_uniform(data, ptr_add(side->buf, offset), 1, byte_type());
        return 0;
    }
    if (!splits) {
        bind_uniform(data, side->buf, side->count, side->type);
        data->whole = true;
        return 0;
    }
    bool root = shape->remote_size ? shape->root == ROOT_SELF : shape->rank == shape->root;
    b->staged = true;
    b->pack = root;
    b->unpack = !root;
    b->staged_user = side->buf;
    b->staged_count = side->count;
    b->staged_type = side->type;
    b->temp_size = (size_t)shape->count;
    return 0;
}

int binding_make(struct binding *b, const struct coll_args *args, const struct coll_shape *shape,
                 int64_t temp_items, bool splits)
{
    b->temp_size = 0;
    b->temp_starts = NULL;
    b->staged = false;
    b->buf[BUF_TEMP] = (struct bound){0};
    if (shape->kind == COLL_BARRIER || shape->root == ROOT_NONE)
        return 0;
    if (shape->kind == COLL_BCAST)
        return bind_bcast(b, args, shape, splits);
    if (kind_reduces(shape->kind)) {
        struct dtype *type = args->send.type;
        MPI_Aint gap;
        bind_uniform(&b->buf[BUF_SEND], args->send.buf, 1, type);
        bind_uniform(&b->buf[BUF_RECV], args->recv.buf, 1, type);
        bind_uniform(&b->buf[BUF_TEMP], NULL, 1, type);
        b->temp_size = (size_t)dt_span(type, temp_items, &gap);
        return 0;
    }
    bind_side_buffers(&b->buf[BUF_SEND], &args->send);
    bind_side_buffers(&b->buf[BUF_RECV], &args->recv);
    if (temp_items == 0)
        return 0;
    if (args->recv.counts.p)
        return bind_temp_blocks(b, temp_items);
    bind_uniform(&b->buf[BUF_TEMP], NULL, block_bytes(args, shape), byte_type());
    b->temp_size = (size_t)(temp_items * b->buf[BUF_TEMP].unit);
    return 0;
}

void binding_temp(struct binding *b, void *temp)
{
    struct bound *t = &b->buf[BUF_TEMP];
    if (b->staged) {
        bind_uniform(&b->buf[BUF_RECV], temp, 1, byte_type());
        return;
    }
    /* The memory has only the true extent: shift the base by the true lower bound. */
    t->base = temp && t->type ? ptr_add(temp, -t->type->true_lb) : temp;
}

void binding_free(struct binding *b)
{
    free(b->temp_starts);
    b->temp_starts = NULL;
}

void binding_pack_staged(struct binding *b)
{
    if (b->staged && b->pack)
        dt_pack_all(b->staged_type, b->staged_count, b->staged_user, b->buf[BUF_RECV].base);
}

void binding_unpack_staged(struct binding *b)
{
    if (b->staged && b->unpack)
        dt_unpack_all(b->staged_type, b->staged_count, b->staged_user, b->buf[BUF_RECV].base,
                      (size_t)(b->staged_count * b->staged_type->size));
}

struct place binding_get_place(const struct binding *b, int buf, int64_t at, int64_t count)
{
    const struct bound *t = &b->buf[buf];
    if (buf == BUF_TEMP && b->temp_starts)
        return (struct place){t->base + b->temp_starts[at], b->temp_starts[at + count] - b->temp_starts[at],
                              byte_type()};
    if (t->whole)
        return (struct place){t->base, t->unit, t->type};
    if (!t->counts.p)
        return (struct place){ptr_add(t->base, at * t->stride), count * t->unit, t->type};
    struct dtype *type = t->types ? dtype_from_handle(t->types[at]) : t->type;
    int64_t displ = t->displs.p ? ivec_get(t->displs, (size_t)at) : 0;
    return (struct place){ptr_add(t->base, t->types ? displ : displ * type->extent),
                          ivec_get(t->counts, (size_t)at), type};
}

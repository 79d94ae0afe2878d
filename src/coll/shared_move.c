/* shared_move.c: barrier and broadcast through a shared block.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/copy.h"
#include "coll/shared.h"

void shared_barrier(struct shared *b)
{
    shared_meet(b, shared_begin(b, 0));
}

/* Pieces of the packed data, from or to a buffer that may be scattered. */
struct stream {
    bool block;
    char *at;
    struct dt_cursor cursor;
};

static void stream_open(struct stream *s, const struct coll_side *side)
{
    MPI_Aint offset;
    s->block = dt_is_block(side->type, side->count, &offset);
    s->at = ptr_add(side->buf, offset);
    if (!s->block)
        dt_cursor_init(&s->cursor, side->type, side->count, side->buf);
}

static void stream_read(struct stream *s, char *out, size_t len)
{
    if (!s->block) {
        dt_cursor_pack(&s->cursor, out, len);
        return;
    }
    copy_bytes(out, s->at, len);
    s->at += len;
}

static void stream_write(struct stream *s, const char *in, size_t len)
{
    if (!s->block) {
        dt_cursor_unpack(&s->cursor, in, len);
        return;
    }
    copy_bytes(s->at, in, len);
    s->at += len;
}

/* The root runs ahead of its readers by as many pieces as it has slots. */
void shared_bcast(struct shared *b, const struct coll_args *args, size_t piece)
{
    const size_t total = (size_t)(args->recv.count * args->recv.type->size);
    const bool root = b->comm->rank == args->root;
    struct stream s;
    stream_open(&s, &args->recv);
    for (size_t at = 0; at < total; at += piece) {
        const size_t len = MIN(piece, total - at);
        if (root) {
            uint64_t step = shared_begin(b, len);
            stream_read(&s, shared_slot(b, args->root, step, len), len);
            shared_post(b, step);
            shared_wake_all(b);
        } else {
            uint64_t step = shared_begin_reading(b);
            bool matches = shared_wait(b, args->root, step);
            if (likely(matches))
                stream_write(&s, shared_slot(b, args->root, step, len), len);
            shared_done(b, step);
            if (unlikely(!matches))
                return;
        }
    }
}

/* bsend.c: allocates pieces of the attached buffer, first fit in order of address. Each piece holds one
 * packed message until it has been sent. The bookkeeping is outside the user's buffer, so that
 * MPI_BSEND_OVERHEAD is more than enough.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/bsend.h"

#include <stdlib.h>

#include "base/counter.h"
#include "gpu/gpu.h"

static COUNTER(
    buffered, "p2p_buffered",
    "Messages of MPI_Bsend copied into the attached buffer because they could not be sent at once.");

struct bsend_pool {
    struct p2p *p2p;
    char *attached; /* buffer that the program attached */
    char *base;     /* memory of the messages: `attached`, or from malloc if `attached` is GPU memory */
    MPI_Count size;
    bool automatic;
    struct list pieces; /* struct bsend_piece, in order of address */
    struct list flushes;
};

struct bsend_piece {
    struct list link;
    struct bsend_pool *pool;
    char *start;
    size_t len;
};

struct flush_request {
    struct request base; /* must be the first member */
    struct list link;
};

int bsend_attach_buffer(struct p2p *p, void *buffer, MPI_Count size, struct bsend_pool **out)
{
    struct bsend_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return err_set(MPI_ERR_NO_MEM, "out of memory for attaching a buffer");
    pool->p2p = p;
    pool->attached = pool->base = buffer;
    pool->size = size;
    pool->automatic = buffer == MPI_BUFFER_AUTOMATIC;
    if (!pool->automatic && gpu_memory_is_device(buffer) && !(pool->base = malloc((size_t)size + 1))) {
        free(pool);
        return err_set(MPI_ERR_NO_MEM,
                       "out of memory for %lld bytes in place of an attached buffer in GPU memory",
                       (long long)size);
    }
    list_init(&pool->pieces);
    list_init(&pool->flushes);
    *out = pool;
    return 0;
}

void bsend_flush(struct bsend_pool *pool)
{
    struct net_waiter w = {.awaited_kind = NET_ROOM};
    while (!list_empty(&pool->pieces))
        net_wait_step(p2p_get_net(pool->p2p), &w);
    net_wait_end(p2p_get_net(pool->p2p), &w);
}

void bsend_detach(struct bsend_pool *pool, void **buffer, MPI_Count *size)
{
    bsend_flush(pool);
    *buffer = pool->attached;
    *size = pool->automatic ? 0 : pool->size;
    if (pool->base != pool->attached)
        free(pool->base);
    free(pool);
}

/* Returns the first gap in the buffer of at least `len` bytes. *after: list position of the message before
 * the gap. */
static char *bsend_find_gap(struct bsend_pool *pool, size_t len, struct list **after)
{
    char *from = pool->base;
    *after = &pool->pieces;
    list_foreach(pos, &pool->pieces)
    {
        struct bsend_piece *piece = list_entry(pos, struct bsend_piece, link);
        if ((size_t)(piece->start - from) >= len)
            return from;
        from = piece->start + piece->len;
        *after = pos;
    }
    return (size_t)(pool->base + pool->size - from) >= len ? from : NULL;
}

static int bsend_piece_new(struct bsend_pool *pool, size_t len, struct bsend_piece **out)
{
    struct bsend_piece *piece = malloc(sizeof(*piece) + (pool->automatic ? len : 0));
    if (!piece)
        return err_set(MPI_ERR_NO_MEM, "out of memory for buffering a message of %zu bytes", len);
    *piece = (struct bsend_piece){.pool = pool, .len = len};
    struct list *after = pool->pieces.prev;
    piece->start = pool->automatic ? (char *)(piece + 1) : bsend_find_gap(pool, len, &after);
    if (!piece->start) { /* progress may complete earlier messages and free their pieces */
        net_progress(p2p_get_net(pool->p2p));
        piece->start = bsend_find_gap(pool, len, &after);
    }
    if (!piece->start) {
        free(piece);
        return err_set(MPI_ERR_BUFFER,
                       "a buffered send of %zu bytes does not fit into what is left of the attached buffer "
                       "(%lld bytes in all); attach a larger one or MPI_BUFFER_AUTOMATIC",
                       len, (long long)pool->size);
    }
    list_prepend(after, &piece->link);
    *out = piece;
    return 0;
}

static void bsend_piece_free(struct bsend_piece *piece)
{
    struct bsend_pool *pool = piece->pool;
    list_remove(&piece->link);
    free(piece);
    if (!list_empty(&pool->pieces))
        return;
    while (!list_empty(&pool->flushes)) {
        struct flush_request *f = list_entry(pool->flushes.next, struct flush_request, link);
        list_remove(&f->link);
        request_complete(&f->base, 0);
    }
}

static void on_piece_sent(struct request *r)
{
    bsend_piece_free(r->user);
}

int bsend_send(struct bsend_pool *pool, const void *buf, MPI_Count count, struct dtype *type, struct peer *to,
               struct envelope env)
{
    size_t len = (size_t)(count * type->size);
    struct bsend_piece *piece = NULL;
    int rc = bsend_piece_new(pool, len, &piece);
    if (rc != 0)
        return rc;
    rc = dt_pack_all(type, count, buf, piece->start);
    struct request *r = NULL;
    if (rc == 0)
        rc = p2p_isend(pool->p2p, piece->start, (MPI_Count)len, dtype_from_handle(MPI_PACKED), to, env,
                       SEND_STANDARD, &r);
    if (rc != 0 || r->complete) {
        if (rc == 0) {
            rc = r->error;
            request_free(r);
        }
        bsend_piece_free(piece);
        return rc;
    }
    counter_add(&buffered, 1);
    r->user = piece;
    r->on_complete = on_piece_sent;
    r->freed = true;
    return 0;
}

static void flush_release(struct request *r)
{
    r->obj.magic = MAGIC_FREED;
    objmem_free(r);
}

static const struct request_ops flush_ops = {.name = "buffer flush", .release = flush_release};

int bsend_iflush(struct bsend_pool *pool, struct request **out)
{
    struct flush_request *f = objmem_new(sizeof(*f));
    if (!f)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a request");
    request_setup(&f->base, pool->p2p, &flush_ops);
    list_init(&f->link);
    if (list_empty(&pool->pieces))
        request_complete(&f->base, 0);
    else
        list_append(&pool->flushes, &f->link);
    *out = &f->base;
    return 0;
}

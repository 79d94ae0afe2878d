/* buffer.c: registered memory in large chunks, cut into buffers. Chunks are shared mappings: a fork does not
 * copy them on write, so their pages stay in place for the adapter, and softib stores into them directly.
 * Memory is returned only at the end; buffers of a closed connection are reused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/counter.h"
#include "net/ib/ib.h"
#include "net/ib/policy/posted.h"

static COUNTER(buffer_bytes, "ib_buffer_bytes", "Bytes registered for frames, rings and handshakes.");

static void chunk_unmap(struct ib *ib, struct ib_chunk *c)
{
    for (uint32_t i = 0; i < IB_ADAPTERS_MAX; i++)
        if (c->mr[i])
            ib->device.verbs.dereg_mr(c->mr[i]);
    munmap(c->memory, c->size);
}

/* Registers the chunk with every adapter, because a connection may move to any adapter. */
static int chunk_register(struct ib *ib, struct ib_chunk *c)
{
    for (uint32_t i = 0; i < ib->nadapters; i++) {
        const struct ib_adapter *a = &ib->adapters[i];
        if (ib_adapter_is_gone(a))
            continue;
        c->mr[i] = ib->device.verbs.reg_mr(a->device->pd, c->memory, c->size,
                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (!c->mr[i] && !ib_adapter_is_gone(a))
            return err_set(
                MPI_ERR_NO_MEM,
                "%s cannot register %zu bytes for buffers (%s); raise the limit of locked memory (ulimit -l)",
                a->device->name, c->size, err_reason(errno));
    }
    return 0;
}

static int chunk_map(struct ib *ib, struct ib_chunk *c)
{
    int fd = memfd_create("fishplate-ib", MFD_CLOEXEC);
    bool sized = fd >= 0 && ftruncate(fd, (off_t)c->size) == 0;
    c->memory = sized ? mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (c->memory == MAP_FAILED) {
        const int why = errno;
        if (fd >= 0)
            close(fd);
        return err_set(MPI_ERR_NO_MEM, "no memory for %zu bytes of InfiniBand buffers: %s", c->size,
                       err_reason(why));
    }
    int rc = chunk_register(ib, c);
    close(fd);
    if (rc != 0)
        chunk_unmap(ib, c);
    return rc;
}

/* Ensures that the table of chunks has room for one more entry; false if there is no memory. */
static bool chunks_reserve_entry(struct ib *ib)
{
    if (ib->nchunks < ib->chunks_room)
        return true;
    uint32_t room = MAX(2 * ib->chunks_room, 64);
    struct ib_chunk *more = realloc(ib->chunks, room * sizeof(*more));
    if (!more)
        return false;
    ib->chunks = more;
    ib->chunks_room = room;
    return true;
}

static int pool_extend(struct ib_pool *pool)
{
    struct ib *ib = pool->ib;
    size_t n = posted_chunk_buffers(pool->size);
    struct ib_chunk c = {.size = posted_chunk_bytes(pool->size)};
    c.buffers = calloc(n, sizeof(*c.buffers));
    int rc = c.buffers && chunks_reserve_entry(ib)
                 ? chunk_map(ib, &c)
                 : err_set(MPI_ERR_NO_MEM, "out of memory for InfiniBand buffers");
    if (rc != 0) {
        free(c.buffers);
        return rc;
    }
    counter_add(&buffer_bytes, c.size);
    ib->chunks[ib->nchunks++] = c;
    pool->total += (uint32_t)n;
    for (size_t i = n; i-- > 0;) { /* backwards, so that the first buffer is used first */
        struct ib_buffer *b = &c.buffers[i];
        b->data = (char *)c.memory + i * pool->size;
        for (uint32_t a = 0; a < IB_ADAPTERS_MAX; a++) {
            b->lkey[a] = c.mr[a] ? c.mr[a]->lkey : 0;
            b->rkey[a] = c.mr[a] ? c.mr[a]->rkey : 0;
        }
        list_init(&b->link);
        b->next = pool->free;
        pool->free = b;
    }
    return 0;
}

void ib_pool_init(struct ib_pool *pool, struct ib *ib, size_t size)
{
    *pool = (struct ib_pool){.ib = ib, .size = ALIGN_UP(size, CACHE_LINE)};
}

struct ib_buffer *ib_buffer_get(struct ib_pool *pool)
{
    if (unlikely(!pool->free) && pool_extend(pool) != 0)
        return NULL;
    struct ib_buffer *b = pool->free;
    pool->free = b->next;
    pool->in_use++;
    return b;
}

void ib_buffer_put(struct ib_pool *pool, struct ib_buffer *b)
{
    b->next = pool->free;
    pool->free = b;
    pool->in_use--;
}

void ib_buffers_close(struct ib *ib)
{
    for (uint32_t i = 0; i < ib->nchunks; i++) {
        chunk_unmap(ib, &ib->chunks[i]);
        free(ib->chunks[i].buffers);
    }
    free(ib->chunks);
    ib->chunks = NULL;
    ib->nchunks = ib->chunks_room = 0;
}

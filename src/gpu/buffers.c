/* buffers.c: caches pinned buffers of host memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/buffers.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_MOST       ((size_t)64 << 20)
#define IDLE_BYTES_MOST ((size_t)256 << 20)

/* The size of the smallest buffer that holds `size` bytes. */
static size_t round_up_size(size_t size)
{
    size_t rounded = GPU_STAGING_SIZE;
    while (rounded < size)
        rounded *= 2;
    return rounded;
}

static uint64_t find_id(const struct gpu_ops *ops, const void *memory)
{
    struct gpu_range range;
    return ops->find_range((uintptr_t)memory, &range) && range.start == (uintptr_t)memory ? range.id : 0;
}

/* False: the program has destroyed the context of the memory; the address may be that of other memory now. */
static bool is_allocated(const struct gpu_ops *ops, const struct gpu_buffer *buffer)
{
    return !buffer->is_pinned || find_id(ops, buffer->memory) == buffer->id;
}

static void free_buffer(struct gpu_buffers *b, const struct gpu_ops *ops, struct gpu_buffer *buffer)
{
    if (!buffer->is_pinned)
        free(buffer->memory);
    else if (is_allocated(ops, buffer))
        ops->free_pinned(buffer->memory);
    b->idle_bytes -= buffer->size;
    *buffer = b->entries[--b->count];
}

static bool gpu_buffers_reserve_entry(struct gpu_buffers *b)
{
    if (b->count == b->room) {
        const size_t room = b->room ? 2 * b->room : 16;
        struct gpu_buffer *more = realloc(b->entries, room * sizeof(*more));
        if (!more)
            return false;
        b->entries = more;
        b->room = room;
    }
    return true;
}

static void *allocate_buffer(struct gpu_buffers *b, const struct gpu_ops *ops, size_t size)
{
    if (!gpu_buffers_reserve_entry(b))
        return NULL;
    void *const pinned = ops->alloc_pinned(size);
    void *const memory = pinned ? pinned : malloc(size);
    if (memory)
        b->entries[b->count++] = (struct gpu_buffer){.memory = memory,
                                                     .id = pinned ? find_id(ops, pinned) : 0,
                                                     .size = size,
                                                     .is_pinned = pinned != NULL};
    return memory;
}

void *gpu_buffers_get(struct gpu_buffers *b, const struct gpu_ops *ops, size_t size)
{
    if (size > SIZE_MOST)
        return malloc(size);
    size = round_up_size(size);
    for (size_t i = b->count; i-- > 0;) {
        struct gpu_buffer *it = &b->entries[i];
        if (!it->is_idle || it->size != size)
            continue;
        if (!is_allocated(ops, it)) {
            free_buffer(b, ops, it);
            continue;
        }
        it->is_idle = false;
        b->idle_bytes -= size;
        return it->memory;
    }
    return allocate_buffer(b, ops, size);
}

/* Frees idle buffers, the one used longest ago first, until `most` bytes are idle. */
static void free_idle_buffers(struct gpu_buffers *b, const struct gpu_ops *ops, size_t most)
{
    while (b->idle_bytes > most) {
        struct gpu_buffer *oldest = NULL;
        for (size_t i = 0; i < b->count; i++)
            if (b->entries[i].is_idle && (!oldest || b->entries[i].last_use < oldest->last_use))
                oldest = &b->entries[i];
        if (!oldest)
            return;
        free_buffer(b, ops, oldest);
    }
}

void gpu_buffers_put(struct gpu_buffers *b, const struct gpu_ops *ops, void *memory, size_t size)
{
    if (size > SIZE_MOST) {
        free(memory);
        return;
    }
    size_t i = 0;
    while (b->entries[i].is_idle || b->entries[i].memory != memory)
        i++;
    b->entries[i].is_idle = true;
    b->entries[i].last_use = ++b->uses;
    b->idle_bytes += b->entries[i].size;
    free_idle_buffers(b, ops, IDLE_BYTES_MOST);
}

void gpu_buffers_clear(struct gpu_buffers *b, const struct gpu_ops *ops)
{
    free_idle_buffers(b, ops, 0);
    free(b->entries);
    memset(b, 0, sizeof(*b));
}

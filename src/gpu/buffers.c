/* buffers.c: see buffers.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/buffers.h"

#include <stdlib.h>
#include <string.h>

#define IDLE_BYTES_MOST ((size_t)256 << 20)

/* The class of buffers that hold `size` bytes, or -1: larger than all of them. */
static int buffer_class(size_t size)
{
    for (int i = 0; i < BUFFER_CLASSES; i++)
        if (size <= GPU_STAGING_SIZE << i)
            return i;
    return -1;
}

static bool list_add(struct gpu_buffer_list *list, struct gpu_buffer buffer)
{
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 16;
        struct gpu_buffer *more = realloc(list->entries, room * sizeof(*more));
        if (!more)
            return false;
        list->entries = more;
        list->room = room;
    }
    list->entries[list->count++] = buffer;
    return true;
}

static bool list_remove_entry(struct gpu_buffer_list *list, const void *memory, uint64_t *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].memory == memory) {
            *id = list->entries[i].id;
            list->entries[i] = list->entries[--list->count];
            return true;
        }
    return false;
}

static uint64_t find_id(const struct gpu_ops *ops, const void *memory)
{
    struct gpu_range range;
    return ops->find_range((uintptr_t)memory, &range) && range.start == (uintptr_t)memory ? range.id : 0;
}

static void buffer_free(struct gpu_buffers *b, const struct gpu_ops *ops, void *memory)
{
    uint64_t id;
    if (list_remove_entry(&b->unpinned, memory, &id))
        free(memory);
    else if (list_remove_entry(&b->pinned, memory, &id) && find_id(ops, memory) == id)
        ops->free_pinned(
            memory); /* else it went with its context; the address may be that of other memory now */
}

static void *buffer_alloc(struct gpu_buffers *b, const struct gpu_ops *ops, size_t size)
{
    void *memory = ops->alloc_pinned(size);
    if (memory && list_add(&b->pinned, (struct gpu_buffer){memory, find_id(ops, memory)}))
        return memory;
    if (memory)
        ops->free_pinned(memory);
    memory = malloc(size);
    if (memory && !list_add(&b->unpinned, (struct gpu_buffer){memory, 0})) {
        free(memory);
        memory = NULL;
    }
    return memory;
}

void *gpu_buffers_get(struct gpu_buffers *b, const struct gpu_ops *ops, size_t size)
{
    const int class = buffer_class(size);
    if (class < 0)
        return malloc(size);
    struct gpu_buffer_list *idle = &b->idle[class];
    if (idle->count == 0)
        return buffer_alloc(b, ops, GPU_STAGING_SIZE << class);
    b->idle_bytes -= GPU_STAGING_SIZE << class;
    return idle->entries[--idle->count].memory;
}

void gpu_buffers_put(struct gpu_buffers *b, const struct gpu_ops *ops, void *memory, size_t size)
{
    const int class = buffer_class(size);
    if (class < 0) {
        free(memory);
        return;
    }
    if ((class > 0 && b->idle_bytes + (GPU_STAGING_SIZE << class) > IDLE_BYTES_MOST) ||
        !list_add(&b->idle[class], (struct gpu_buffer){memory, 0})) {
        buffer_free(b, ops, memory);
        return;
    }
    b->idle_bytes += GPU_STAGING_SIZE << class;
}

void gpu_buffers_clear(struct gpu_buffers *b, const struct gpu_ops *ops)
{
    for (int i = 0; i < BUFFER_CLASSES; i++) {
        while (b->idle[i].count > 0)
            buffer_free(b, ops, b->idle[i].entries[--b->idle[i].count].memory);
        free(b->idle[i].entries);
    }
    free(b->unpinned.entries);
    free(b->pinned.entries);
    memset(b, 0, sizeof(*b));
}

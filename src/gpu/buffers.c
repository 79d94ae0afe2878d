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

static bool list_add(struct gpu_buffer_list *list, void *memory)
{
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 16;
        void **more = realloc(list->memory, room * sizeof(*more));
        if (!more)
            return false;
        list->memory = more;
        list->room = room;
    }
    list->memory[list->count++] = memory;
    return true;
}

static bool list_remove_entry(struct gpu_buffer_list *list, const void *memory)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->memory[i] == memory) {
            list->memory[i] = list->memory[--list->count];
            return true;
        }
    return false;
}

static void buffer_free(struct gpu_buffers *b, const struct gpu_ops *ops, void *memory)
{
    if (list_remove_entry(&b->unpinned, memory))
        free(memory);
    else
        ops->free_pinned(memory);
}

static void *buffer_alloc(struct gpu_buffers *b, const struct gpu_ops *ops, size_t size)
{
    void *memory = ops->alloc_pinned(size);
    if (memory)
        return memory;
    memory = malloc(size);
    if (memory && !list_add(&b->unpinned, memory)) {
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
    return idle->memory[--idle->count];
}

void gpu_buffers_put(struct gpu_buffers *b, const struct gpu_ops *ops, void *memory, size_t size)
{
    const int class = buffer_class(size);
    if (class < 0) {
        free(memory);
        return;
    }
    if ((class > 0 && b->idle_bytes + (GPU_STAGING_SIZE << class) > IDLE_BYTES_MOST) ||
        !list_add(&b->idle[class], memory)) {
        buffer_free(b, ops, memory);
        return;
    }
    b->idle_bytes += GPU_STAGING_SIZE << class;
}

void gpu_buffers_clear(struct gpu_buffers *b, const struct gpu_ops *ops)
{
    for (int i = 0; i < BUFFER_CLASSES; i++) {
        while (b->idle[i].count > 0)
            buffer_free(b, ops, b->idle[i].memory[--b->idle[i].count]);
        free(b->idle[i].memory);
    }
    free(b->unpinned.memory);
    memset(b, 0, sizeof(*b));
}

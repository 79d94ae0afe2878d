/* temporaries.c: finds, allocates and frees device memory of the library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/temporaries.h"

#include <string.h>

#include "base/counter.h"
#include "base/util.h"

#define GRANULARITY ((size_t)2 << 20) /* the driver's unit of device memory */
#define IDLE_PART   64                /* idle memory is limited to 1/IDLE_PART of a GPU's memory */

static COUNTER(allocations, "gpu_temporary_allocations",
               "Allocations of device memory for temporary data of collectives.");

static void remove_idle_entry(struct gpu_temporaries *t, int i)
{
    t->idle_bytes -= t->idle[i].size;
    memmove(&t->idle[i], &t->idle[i + 1], (size_t)(GPU_TEMPORARIES_MOST - 1 - i) * sizeof(*t->idle));
    t->idle[GPU_TEMPORARIES_MOST - 1].size = 0;
}

/* False: the program has destroyed the context of the memory; the address may be that of other memory now. */
static bool is_allocated(const struct gpu_ops *ops, const struct gpu_range *memory)
{
    struct gpu_range now;
    return ops->find_range(memory->start, &now) && now.start == memory->start && now.id == memory->id;
}

static void free_oldest(struct gpu_temporaries *t, const struct gpu_ops *ops)
{
    const struct gpu_range oldest = t->idle[0];
    remove_idle_entry(t, 0);
    if (is_allocated(ops, &oldest))
        ops->free_device((void *)oldest.start);
}

/* The smallest idle memory of this context that has `size` bytes, and at most twice as many; -1: there is
 * none. */
static int find_idle(const struct gpu_temporaries *t, const void *context, size_t size)
{
    int best = -1;
    for (int i = 0; i < GPU_TEMPORARIES_MOST && t->idle[i].size > 0; i++)
        if (t->idle[i].context == context && t->idle[i].size >= size && t->idle[i].size <= 2 * size &&
            (best < 0 || t->idle[i].size < t->idle[best].size))
            best = i;
    return best;
}

void *gpu_temporaries_get(struct gpu_temporaries *t, const struct gpu_ops *ops, size_t size, const void *near)
{
    void *const context = ops->find_context(near);
    size = ALIGN_UP(size, GRANULARITY);
    for (int found; (found = find_idle(t, context, size)) >= 0;) {
        const struct gpu_range range = t->idle[found];
        remove_idle_entry(t, found);
        if (is_allocated(ops, &range))
            return (void *)range.start;
    }
    void *memory = ops->alloc_device(near, size);
    while (!memory && t->idle_bytes > 0) {
        free_oldest(t, ops);
        memory = ops->alloc_device(near, size);
    }
    counter_add(&allocations, memory != NULL);
    return memory;
}

void gpu_temporaries_put(struct gpu_temporaries *t, const struct gpu_ops *ops, void *address)
{
    struct gpu_range range;
    struct gpu_device device = {0};
    if (!ops->find_range((uintptr_t)address, &range))
        return; /* its context was destroyed, and the memory with it */
    ops->describe_device(range.device, &device);
    if (range.size > device.bytes / IDLE_PART) {
        ops->free_device(address);
        return;
    }
    while (t->idle[GPU_TEMPORARIES_MOST - 1].size > 0 ||
           t->idle_bytes + range.size > device.bytes / IDLE_PART)
        free_oldest(t, ops);
    int end = 0;
    while (t->idle[end].size > 0)
        end++;
    t->idle[end] = range;
    t->idle_bytes += range.size;
}

void gpu_temporaries_clear(struct gpu_temporaries *t, const struct gpu_ops *ops)
{
    while (t->idle_bytes > 0)
        free_oldest(t, ops);
}

/* cuda_queue.c: a queue for each context of the program in which memory is copied.
 *
 * The streams are ordered behind the legacy default stream. A program's cuMemcpyHtoD from pageable memory
 * may return before the bytes have reached the device, and memory of cuMemAllocAsync may be usable only
 * behind the work of that stream: a stream that does not wait for it would read old bytes, or fault.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

static bool has_marker(const struct cuda_queue *q)
{
    struct gpu_range range;
    return q->marker && cuda_find_range((uintptr_t)q->marker, &range) && range.id == q->marker_id;
}

/* Frees the entry and returns false if the queue's stream, events and kernels no longer exist. The program
 * may have destroyed or reset the context, and another context may have the same address. The driver does
 * not report that: cuCtxPushCurrent succeeds for a primary context that was reset, and a call with an old
 * stream or event may crash (driver 580). */
static bool cuda_queue_check_usable(struct cuda_queue *q)
{
    if (q->context && q->marker && !has_marker(q))
        q->context = NULL;
    return q->context != NULL;
}

static struct cuda_queue *find_queue(cuda_context context)
{
    for (int i = 0; i < cuda.queue_count; i++)
        if (cuda.queues[i].context == context && cuda_queue_check_usable(&cuda.queues[i]))
            return &cuda.queues[i];
    return NULL;
}

static struct cuda_queue *find_free_entry(void)
{
    for (int i = 0; i < cuda.queue_count; i++)
        if (!cuda.queues[i].context)
            return &cuda.queues[i];
    return cuda.queue_count < CUDA_CONTEXTS_MOST ? &cuda.queues[cuda.queue_count++] : NULL;
}

/* Allocates the marker in the current context. Without a marker a reset of the context is not noticed. */
static void add_marker(struct cuda_queue *q)
{
    struct gpu_range range;
    if (cuda.call.host_alloc(&q->marker, 1, CUDA_HOST_PORTABLE) != CUDA_OK ||
        !cuda_find_range((uintptr_t)q->marker, &range))
        q->marker = NULL;
    else
        q->marker_id = range.id;
}

static struct cuda_queue *add_queue(cuda_context context, int retained_device)
{
    cuda_context previous;
    struct cuda_queue *q = find_free_entry();
    if (!q || cuda.call.context_push(context) != CUDA_OK)
        return NULL;
    *q = (struct cuda_queue){.device = retained_device};
    if (cuda.call.stream_create(&q->stream, CUDA_STREAM_DEFAULT) == CUDA_OK) {
        q->context = context;
        add_marker(q);
    }
    cuda.call.context_pop(&previous);
    return q->context ? q : NULL;
}

/* The caller holds cuda.lock. NULL: host memory, or a context that cannot be used. */
static struct cuda_queue *cuda_get_primary_queue(int device)
{
    for (int i = 0; i < cuda.queue_count; i++)
        if (cuda.queues[i].device == device && cuda_queue_check_usable(&cuda.queues[i]))
            return &cuda.queues[i];
    unsigned flags;
    int active = 0;
    cuda_context context;
    if (cuda.call.primary_state(device, &flags, &active) != CUDA_OK || !active ||
        cuda.call.primary_retain(&context, device) != CUDA_OK)
        return NULL;
    struct cuda_queue *q = add_queue(context, device);
    if (!q)
        cuda.call.primary_release(device);
    return q;
}

/* The queue of the memory at `address`; NULL: it is host memory, or its context cannot be used. */
static struct cuda_queue *get_queue(const void *address)
{
    struct gpu_range range;
    if (!cuda_find_range((uintptr_t)address, &range) || range.device < 0)
        return NULL;
    struct cuda_queue *q = range.context ? find_queue(range.context) : NULL;
    if (!q)
        q = range.context ? add_queue(range.context, -1) : cuda_get_primary_queue(range.device);
    return q;
}

struct cuda_queue *cuda_get_copy_queue(const void *to, const void *from)
{
    struct cuda_queue *q = get_queue(to);
    return q ? q : get_queue(from);
}

struct cuda_queue *cuda_get_any_queue(void)
{
    cuda_device current = 0;
    for (int i = 0; i < cuda.queue_count; i++)
        if (cuda_queue_check_usable(&cuda.queues[i]))
            return &cuda.queues[i];
    if (cuda.call.context_device(&current) != CUDA_OK) /* this thread has no context */
        current = 0;
    struct cuda_queue *q = cuda_get_primary_queue(current);
    const int devices = q ? 0 : cuda_count_devices();
    for (int i = 0; i < devices && !q; i++)
        q = cuda_get_primary_queue(i);
    return q;
}

/* Does not destroy streams, events and kernels: the driver destroys them with their contexts. */
void cuda_forget_queues(void)
{
    for (int i = 0; i < cuda.queue_count; i++)
        if (has_marker(&cuda.queues[i]))
            cuda.call.host_free(cuda.queues[i].marker);
    cuda.queue_count = 0;
}

cuda_result cuda_record_event(struct cuda_queue *q, struct gpu_transfer *out)
{
    cuda_event event;
    cuda_result rc = CUDA_OK;
    if (q->idle_count > 0)
        event = q->idle[--q->idle_count];
    else
        rc = cuda.call.event_create(&event, CUDA_EVENT_DISABLE_TIMING);
    if (rc == CUDA_OK && (rc = cuda.call.event_record(event, q->stream)) != CUDA_OK)
        cuda.call.event_destroy(event);
    if (rc == CUDA_OK)
        *out = (struct gpu_transfer){.queue = q, .event = event};
    return rc;
}

void cuda_put_event(struct gpu_transfer *transfer)
{
    struct cuda_queue *q = transfer->queue;
    pthread_mutex_lock(&cuda.lock);
    if (q->idle_count < CUDA_EVENTS_MOST)
        q->idle[q->idle_count++] = transfer->event;
    else
        cuda.call.event_destroy(transfer->event);
    pthread_mutex_unlock(&cuda.lock);
    transfer->event = NULL;
}

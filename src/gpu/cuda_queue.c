/* cuda_queue.c: a queue for each context of the program in which memory is copied.
 *
 * The streams are ordered behind the legacy default stream. A program's cuMemcpyHtoD from pageable memory may return before the
 * bytes have reached the device, and memory of cuMemAllocAsync may be usable only behind the work of that stream: a stream that
 * does not wait for it would read old bytes, or fault.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

static struct cuda_queue *find_queue(cuda_context context)
{
    for (int i = 0; i < cuda.queue_count; i++)
        if (cuda.queues[i].context == context)
            return &cuda.queues[i];
    return NULL;
}

static struct cuda_queue *add_queue(cuda_context context, int retained_device)
{
    cuda_context previous;
    if (cuda.queue_count == CUDA_CONTEXTS_MOST || cuda.call.context_push(context) != CUDA_OK)
        return NULL;
    struct cuda_queue *q = &cuda.queues[cuda.queue_count];
    *q = (struct cuda_queue){
        .context = context, .device = retained_device, .is_retained = retained_device >= 0};
    const cuda_result rc = cuda.call.stream_create(&q->stream, CUDA_STREAM_DEFAULT);
    cuda.call.context_pop(&previous);
    if (rc != CUDA_OK)
        return NULL;
    cuda.queue_count++;
    return q;
}

struct cuda_queue *cuda_get_primary_queue(int device)
{
    for (int i = 0; i < cuda.queue_count; i++)
        if (cuda.queues[i].is_retained && cuda.queues[i].device == device)
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
    if (cuda.queue_count > 0)
        return &cuda.queues[0];
    if (cuda.call.context_device(&current) != CUDA_OK) /* this thread has no context */
        current = 0;
    struct cuda_queue *q = cuda_get_primary_queue(current);
    const int devices = q ? 0 : cuda_count_devices();
    for (int i = 0; i < devices && !q; i++)
        q = cuda_get_primary_queue(i);
    return q;
}

/* Streams, events and kernels are left to their contexts. The program may have destroyed or reset a context before MPI_Finalize, which no
 * call reports reliably: cuCtxPushCurrent succeeds for a primary context that was reset, and destroying its events crashes
 * (driver 580). */
void cuda_forget_queues(void)
{
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

/* copy.c: streams, events and copies of softcuda. A stream is a queue of operations without a thread of
 * its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "softcuda.h"

struct operation {
    struct operation *next;
    cuda_event event;         /* not NULL: the operation records this event */
    struct cuda_copy_2d copy; /* event == NULL: the copy to execute */
    char source[];            /* source bytes of a copy that has returned to the program already */
};

/* Synchronous copies of pageable memory of at most this size return before the data has reached the device,
 * as with the real driver. */
#define EARLY_RETURN_BYTES ((size_t)64 << 10)

struct cuda_stream {
    struct cuda_stream *next_stream;
    struct operation *first, **end;
    uint64_t queries; /* number of queries since the first queued operation was issued */
    cuda_result result;
    unsigned flags;
    struct origin origin; /* all zero: the default stream */
};

struct cuda_event {
    cuda_stream stream; /* stream of the pending record; NULL: complete */
    cuda_result result;
    int pending; /* number of records in queues */
    struct origin origin;
    bool is_destroyed;
};

static struct cuda_stream legacy = {.end = &legacy.first}; /* the default stream */
static struct cuda_stream *streams = &legacy;

static struct cuda_stream *get_stream(cuda_stream stream)
{
    return stream ? stream : &legacy;
}

static cuda_result run_copy(const struct cuda_copy_2d *c)
{
    const uintptr_t from = c->source_type == CUDA_MEMORY_HOST ? (uintptr_t)c->source_host : c->source_device;
    const uintptr_t to = c->target_type == CUDA_MEMORY_HOST ? (uintptr_t)c->target_host : c->target_device;
    for (size_t row = 0; row < c->height; row++) {
        const uintptr_t source = from + (c->source_y + row) * c->source_pitch + c->source_x;
        const uintptr_t target = to + (c->target_y + row) * c->target_pitch + c->target_x;
        if (!softcuda_copy_memory(target, source, c->width))
            return CUDA_INVALID_VALUE;
    }
    return CUDA_OK;
}

/* Executes all operations of the stream, with the lock held. A stream first waits for the default stream
 * unless it is non-blocking. */
static cuda_result run_stream(struct cuda_stream *s)
{
    if (s != &legacy && !(s->flags & CUDA_STREAM_NON_BLOCKING))
        run_stream(&legacy);
    while (s->first) {
        struct operation *it = s->first;
        if (!(s->first = it->next))
            s->end = &s->first;
        if (it->event) {
            if (it->event->stream == s)
                it->event->stream = NULL;
            it->event->result = s->result;
            if (--it->event->pending == 0 && it->event->is_destroyed)
                free(it->event);
        } else if (s->result == CUDA_OK) {
            s->result = run_copy(&it->copy);
        }
        free(it);
    }
    s->queries = 0;
    return s->result;
}

void softcuda_run_default(void)
{
    pthread_mutex_lock(&softcuda_lock);
    for (struct cuda_stream *s = streams; s; s = s->next_stream)
        if (!(s->flags & CUDA_STREAM_NON_BLOCKING))
            run_stream(s);
    pthread_mutex_unlock(&softcuda_lock);
}

static struct operation *new_operation(const struct cuda_copy_2d *copy, cuda_event event, size_t size)
{
    struct operation *it = calloc(1, sizeof(*it) + size);
    if (it && copy)
        it->copy = *copy;
    if (it)
        it->event = event;
    return it;
}

static cuda_result append_operation(cuda_stream stream, struct operation *it)
{
    if (!it)
        return CUDA_OUT_OF_MEMORY;
    cuda_event event = it->event;
    struct cuda_stream *s = get_stream(stream);
    if (!softcuda_is_valid(&s->origin) || (event && !softcuda_is_valid(&event->origin))) {
        free(it);
        return CUDA_INVALID_HANDLE;
    }
    pthread_mutex_lock(&softcuda_lock);
    if (event) {
        event->stream = s;
        event->pending++;
    }
    *s->end = it;
    s->end = &it->next;
    pthread_mutex_unlock(&softcuda_lock);
    return CUDA_OK;
}

static cuda_result issue_operation(cuda_stream stream, const struct cuda_copy_2d *copy, cuda_event event)
{
    return append_operation(stream, new_operation(copy, event, 0));
}

/* Counts a query; query number SOFTCUDA_LAZY executes the stream's operations. True: all are executed. */
static bool query_stream(struct cuda_stream *s)
{
    if (s->first && ++s->queries >= softcuda_setting("SOFTCUDA_LAZY", 2))
        run_stream(s);
    return !s->first;
}

EXPORT cuda_result cuStreamCreate(cuda_stream *out, unsigned flags)
{
    if (!softcuda_current())
        return CUDA_INVALID_CONTEXT;
    struct cuda_stream *s = softcuda_must_fail(__func__) ? NULL : calloc(1, sizeof(*s));
    if (!s)
        return CUDA_OUT_OF_MEMORY;
    s->flags = flags;
    s->origin = softcuda_origin();
    s->end = &s->first;
    pthread_mutex_lock(&softcuda_lock);
    s->next_stream = streams->next_stream;
    streams->next_stream = s;
    pthread_mutex_unlock(&softcuda_lock);
    *out = s;
    return CUDA_OK;
}

EXPORT cuda_result cuStreamSynchronize(cuda_stream stream)
{
    struct cuda_stream *s = get_stream(stream);
    if (softcuda_must_fail(__func__))
        return CUDA_INVALID_VALUE;
    if (!softcuda_is_valid(&s->origin))
        return CUDA_INVALID_HANDLE;
    pthread_mutex_lock(&softcuda_lock);
    const cuda_result result = run_stream(s);
    s->result = CUDA_OK;
    pthread_mutex_unlock(&softcuda_lock);
    return result;
}

EXPORT cuda_result cuStreamQuery(cuda_stream stream)
{
    pthread_mutex_lock(&softcuda_lock);
    const bool done = query_stream(get_stream(stream));
    pthread_mutex_unlock(&softcuda_lock);
    return done ? CUDA_OK : CUDA_NOT_READY;
}

EXPORT cuda_result cuCtxSynchronize(void)
{
    pthread_mutex_lock(&softcuda_lock);
    for (struct cuda_stream *s = streams; s; s = s->next_stream)
        run_stream(s);
    pthread_mutex_unlock(&softcuda_lock);
    return CUDA_OK;
}

EXPORT cuda_result cuEventCreate(cuda_event *event, unsigned flags)
{
    (void)flags;
    if (softcuda_must_fail(__func__))
        return CUDA_OUT_OF_MEMORY;
    if (!(*event = calloc(1, sizeof(**event))))
        return CUDA_OUT_OF_MEMORY;
    (*event)->origin = softcuda_origin();
    return CUDA_OK;
}

/* The real call crashes too if the context was reset. */
EXPORT cuda_result cuEventDestroy_v2(cuda_event event)
{
    if (!softcuda_is_valid(&event->origin))
        abort();
    pthread_mutex_lock(&softcuda_lock);
    event->is_destroyed = true;
    const bool unused = event->pending == 0;
    pthread_mutex_unlock(&softcuda_lock);
    if (unused)
        free(event);
    return CUDA_OK;
}

EXPORT cuda_result cuEventRecord(cuda_event event, cuda_stream stream)
{
    return issue_operation(stream, NULL, event);
}

EXPORT cuda_result cuEventQuery(cuda_event event)
{
    if (softcuda_must_fail(__func__))
        return CUDA_INVALID_CONTEXT;
    pthread_mutex_lock(&softcuda_lock);
    const bool done = !event->stream || query_stream(event->stream);
    const cuda_result result = event->result;
    pthread_mutex_unlock(&softcuda_lock);
    return done ? result : CUDA_NOT_READY;
}

EXPORT cuda_result cuEventSynchronize(cuda_event event)
{
    pthread_mutex_lock(&softcuda_lock);
    if (event->stream)
        run_stream(event->stream);
    const cuda_result result = event->result;
    pthread_mutex_unlock(&softcuda_lock);
    return result;
}

/* Describes a copy of bytes. Addresses are unified: an unknown address is host memory. */
static struct cuda_copy_2d describe_copy(cuda_pointer to, cuda_pointer from, size_t size)
{
    return (struct cuda_copy_2d){
        .source_type = CUDA_MEMORY_DEVICE,
        .source_device = from,
        .target_type = CUDA_MEMORY_DEVICE,
        .target_device = to,
        .width = size,
        .height = 1,
    };
}

EXPORT cuda_result cuMemcpyAsync(cuda_pointer to, cuda_pointer from, size_t size, cuda_stream stream)
{
    if (!softcuda_current())
        return CUDA_INVALID_CONTEXT;
    if (softcuda_must_fail(__func__))
        return CUDA_INVALID_VALUE;
    const struct cuda_copy_2d copy = describe_copy(to, from, size);
    return issue_operation(stream, &copy, NULL);
}

EXPORT cuda_result cuMemcpy2DAsync_v2(const struct cuda_copy_2d *copy, cuda_stream stream)
{
    if (!softcuda_current())
        return CUDA_INVALID_CONTEXT;
    if (softcuda_must_fail(__func__) || (copy->source_pitch && copy->width > copy->source_pitch) ||
        (copy->target_pitch && copy->width > copy->target_pitch))
        return CUDA_INVALID_VALUE;
    return issue_operation(stream, copy, NULL);
}

/* A synchronous copy waits for the streams that synchronise with the default stream. */
EXPORT cuda_result cuMemcpy(cuda_pointer to, cuda_pointer from, size_t size)
{
    const struct cuda_copy_2d copy = describe_copy(to, from, size);
    softcuda_run_default();
    pthread_mutex_lock(&softcuda_lock);
    const cuda_result result = run_copy(&copy);
    pthread_mutex_unlock(&softcuda_lock);
    return result;
}

EXPORT cuda_result cuMemcpyDtoH_v2(void *to, cuda_pointer from, size_t size)
{
    return cuMemcpy((cuda_pointer)to, from, size);
}

EXPORT cuda_result cuMemcpyHtoD_v2(cuda_pointer to, const void *from, size_t size)
{
    pthread_mutex_lock(&softcuda_lock);
    const struct allocation *target = softcuda_find(to, size);
    const bool early = size <= EARLY_RETURN_BYTES && target && target->fd >= 0 && !target->sync_memops &&
                       !softcuda_find((cuda_pointer)from, 1);
    pthread_mutex_unlock(&softcuda_lock);
    if (!early)
        return cuMemcpy(to, (cuda_pointer)from, size);
    softcuda_run_default();
    struct operation *it = new_operation(NULL, NULL, size);
    if (it) {
        it->copy = describe_copy(to, (cuda_pointer)it->source, size);
        memcpy(it->source, from, size);
    }
    return append_operation(NULL, it);
}

EXPORT cuda_result cuMemcpyDtoD_v2(cuda_pointer to, cuda_pointer from, size_t size)
{
    return cuMemcpy(to, from, size);
}

EXPORT cuda_result cuMemsetD8_v2(cuda_pointer to, unsigned char value, size_t size)
{
    softcuda_run_default();
    pthread_mutex_lock(&softcuda_lock);
    char *target = softcuda_translate(to, size);
    if (target)
        memset(target, value, size);
    pthread_mutex_unlock(&softcuda_lock);
    return target ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* cuda_copy.c: copies between memory of any kinds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

#include "base/err.h"

int cuda_start_copy(void *to, const void *from, size_t size, struct gpu_transfer *out)
{
    cuda_context previous;
    pthread_mutex_lock(&cuda.lock);
    struct cuda_queue *q = cuda_get_copy_queue(to, from);
    cuda_result rc = q ? cuda.call.context_push(q->context) : CUDA_INVALID_CONTEXT;
    if (rc == CUDA_OK) {
        rc = cuda.call.copy_async((cuda_pointer)to, (cuda_pointer)from, size, q->stream);
        if (rc == CUDA_OK && (rc = cuda_record_event(q, out)) != CUDA_OK)
            cuda.call.stream_wait(q->stream);
        cuda.call.context_pop(&previous);
    }
    pthread_mutex_unlock(&cuda.lock);
    return rc == CUDA_OK ? 0 : cuda_report_error(rc, "copy GPU memory");
}

int cuda_poll_copy(struct gpu_transfer *transfer)
{
    const cuda_result rc = cuda.call.event_query(transfer->event);
    if (rc == CUDA_NOT_READY)
        return ERR_AGAIN;
    cuda_put_event(transfer);
    return rc == CUDA_OK ? 0 : cuda_report_error(rc, "complete a copy of GPU memory");
}

int cuda_wait_copy(struct gpu_transfer *transfer)
{
    struct cuda_queue *q = transfer->queue;
    const cuda_result rc = cuda.call.stream_wait(q->stream);
    cuda_put_event(transfer);
    return rc == CUDA_OK ? 0 : cuda_report_error(rc, "complete a copy of GPU memory");
}

/* The driver is to be given the kind of memory of each side, and takes "device" for any address that it knows. */
int cuda_copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows)
{
    const bool to_known = cuda_knows_address(to), from_known = cuda_knows_address(from);
    struct cuda_copy_2d copy = {
        .source_type = from_known ? CUDA_MEMORY_DEVICE : CUDA_MEMORY_HOST,
        .source_host = from_known ? NULL : from,
        .source_device = from_known ? (cuda_pointer)from : 0,
        .source_pitch = from_pitch,
        .target_type = to_known ? CUDA_MEMORY_DEVICE : CUDA_MEMORY_HOST,
        .target_host = to_known ? NULL : to,
        .target_device = to_known ? (cuda_pointer)to : 0,
        .target_pitch = to_pitch,
        .width = width,
        .height = rows,
    };
    cuda_context previous;
    pthread_mutex_lock(&cuda.lock);
    struct cuda_queue *q = cuda_get_copy_queue(to, from);
    cuda_result rc = q ? cuda.call.context_push(q->context) : CUDA_INVALID_CONTEXT;
    if (rc == CUDA_OK) {
        rc = cuda.call.copy_2d_async(&copy, q->stream);
        if (rc == CUDA_OK)
            rc = cuda.call.stream_wait(q->stream);
        cuda.call.context_pop(&previous);
    }
    pthread_mutex_unlock(&cuda.lock);
    return rc == CUDA_OK ? 0 : cuda_report_error(rc, "copy rows of GPU memory");
}

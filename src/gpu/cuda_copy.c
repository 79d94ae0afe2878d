/* cuda_copy.c: copies between memory of any kinds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

#include "base/err.h"

/* For copies of fewer bytes than this from host memory to a device, the driver uses the compute engine. Two
 * processes that use that engine in turns wait 140 us each time (H200, docs/gpu.md). A copy of rows uses a
 * copy engine instead and avoids the wait. */
#define ROWS_BELOW ((size_t)32 << 10)

static bool is_copied_in_rows(const void *to, const void *from, size_t size)
{
    struct gpu_range range;
    return size > 1 && size < ROWS_BELOW && cuda_find_range((uintptr_t)to, &range) &&
           range.kind == GPU_MEMORY_DEVICE &&
           (!cuda_find_range((uintptr_t)from, &range) || range.kind == GPU_MEMORY_HOST);
}

static cuda_result copy_two_rows(void *to, const void *from, size_t width, cuda_stream stream)
{
    const struct cuda_copy_2d copy = {
        .source_type = CUDA_MEMORY_HOST,
        .source_host = from,
        .source_pitch = width,
        .target_type = CUDA_MEMORY_DEVICE,
        .target_device = (cuda_pointer)to,
        .target_pitch = width,
        .width = width,
        .height = 2,
    };
    return cuda.call.copy_2d_async(&copy, stream);
}

/* Copies as rows of two bytes, so that a copy engine is used (docs/gpu.md). An odd last byte is copied
 * together with the byte before it. */
static cuda_result copy_in_rows(char *to, const char *from, size_t size, cuda_stream stream)
{
    const cuda_result rc = copy_two_rows(to, from, size / 2, stream);
    return rc == CUDA_OK && size % 2 ? copy_two_rows(to + size - 2, from + size - 2, 1, stream) : rc;
}

int cuda_start_copy(void *to, const void *from, size_t size, struct gpu_transfer *out)
{
    cuda_context previous;
    pthread_mutex_lock(&cuda.lock);
    struct cuda_queue *q = cuda_get_copy_queue(to, from);
    cuda_result rc = q ? cuda.call.context_push(q->context) : CUDA_INVALID_CONTEXT;
    if (rc == CUDA_OK) {
        rc = is_copied_in_rows(to, from, size)
                 ? copy_in_rows(to, from, size, q->stream)
                 : cuda.call.copy_async((cuda_pointer)to, (cuda_pointer)from, size, q->stream);
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

/* Copies rows. The driver requires the kind of memory of each side, and accepts "device" for any address
 * that it knows. */
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

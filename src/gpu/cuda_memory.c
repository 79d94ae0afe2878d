/* cuda_memory.c: pinned host memory, and device memory for adapters.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

#include "base/err.h"

/* Allocates host memory that is pinned for all contexts, in any active context. NULL: no memory can be
 * pinned. */
void *cuda_alloc_pinned(size_t size)
{
    void *memory = NULL;
    cuda_context previous;
    pthread_mutex_lock(&cuda.lock);
    struct cuda_queue *q = cuda_get_any_queue();
    if (q && cuda.call.context_push(q->context) == CUDA_OK) {
        if (cuda.call.host_alloc(&memory, size, CUDA_HOST_PORTABLE) != CUDA_OK)
            memory = NULL;
        cuda.call.context_pop(&previous);
    }
    pthread_mutex_unlock(&cuda.lock);
    return memory;
}

void cuda_free_pinned(void *memory)
{
    if (cuda_knows_address(memory)) /* otherwise the driver has freed the memory with its context */
        cuda.call.host_free(memory);
}

void *cuda_find_context(const void *memory)
{
    pthread_mutex_lock(&cuda.lock);
    const struct cuda_queue *q = cuda_get_copy_queue(memory, memory);
    pthread_mutex_unlock(&cuda.lock);
    return q ? q->context : NULL;
}

void *cuda_alloc_device(const void *near, size_t size)
{
    cuda_pointer memory = 0;
    cuda_context previous;
    pthread_mutex_lock(&cuda.lock);
    const struct cuda_queue *q = cuda_get_copy_queue(near, near);
    if (q && cuda.call.context_push(q->context) == CUDA_OK) {
        if (cuda.call.device_alloc(&memory, size) != CUDA_OK)
            memory = 0;
        cuda.call.context_pop(&previous);
    }
    pthread_mutex_unlock(&cuda.lock);
    return (void *)memory;
}

void cuda_free_device(void *memory)
{
    cuda.call.device_free((cuda_pointer)memory);
}

int cuda_open_dmabuf(uintptr_t start, size_t size, int *fd)
{
    return cuda.call.range_handle(fd, start, size, CUDA_RANGE_DMA_BUF_FD, 0) == CUDA_OK ? 0 : ERR_AGAIN;
}

/* Makes the program's synchronous copies to this allocation return only when they are complete. Earlier
 * copies may still be in the legacy default stream, for which this function waits. */
int cuda_synchronize_copies(uintptr_t address, bool *lasts)
{
    const unsigned on = 1;
    cuda_context previous;
    *lasts = cuda.call.pointer_set(&on, CUDA_POINTER_SYNC_MEMOPS, address) == CUDA_OK;
    pthread_mutex_lock(&cuda.lock);
    struct cuda_queue *q = cuda_get_copy_queue((void *)address, (void *)address);
    cuda_result rc = q ? cuda.call.context_push(q->context) : CUDA_INVALID_CONTEXT;
    if (rc == CUDA_OK) {
        rc = cuda.call.stream_wait(NULL);
        cuda.call.context_pop(&previous);
    }
    pthread_mutex_unlock(&cuda.lock);
    return rc == CUDA_OK
               ? 0
               : cuda_report_error(rc, "complete copies to a buffer before another device accesses it");
}

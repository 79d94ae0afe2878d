/* cuda_kernel.c: runs the library's own kernels (kernels.cu). Their PTX is part of the library; the driver
 * compiles it for its GPU when a context first needs one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "gpu/cuda.h"
#include "gpu/kernels.h"

#define BLOCKS_MOST 4096 /* kernels loop if they have more elements than threads */

/* Loads the kernels into the queue's context. Returns 0 or an error of the driver. */
static cuda_result load_kernels(struct cuda_queue *q)
{
    return q->kernels ? CUDA_OK : cuda.call.module_load(&q->kernels, gpu_kernels_ptx);
}

int cuda_run_kernel(const char *name, const void *memory, void **arguments, uint64_t blocks, unsigned threads)
{
    cuda_context previous;
    cuda_function function;
    pthread_mutex_lock(&cuda.lock);
    struct cuda_queue *q = cuda_get_copy_queue(memory, memory);
    cuda_result rc = q ? cuda.call.context_push(q->context) : CUDA_INVALID_CONTEXT;
    if (rc == CUDA_OK) {
        rc = load_kernels(q) == CUDA_OK ? CUDA_OK
                                        : CUDA_NOT_FOUND; /* PTX too new for the driver, or out of memory */
        if (rc == CUDA_OK)
            rc = cuda.call.module_function(&function, q->kernels, name);
        if (rc == CUDA_OK)
            rc = cuda.call.launch(function, (unsigned)(blocks < BLOCKS_MOST ? blocks : BLOCKS_MOST), 1, 1,
                                  threads, 1, 1, 0, q->stream, arguments, NULL);
        if (rc == CUDA_OK)
            rc = cuda.call.stream_wait(q->stream);
        cuda.call.context_pop(&previous);
    }
    pthread_mutex_unlock(&cuda.lock);
    if (rc == CUDA_NOT_FOUND)
        return ERR_AGAIN;
    return rc == CUDA_OK ? 0 : cuda_report_error(rc, "run a kernel");
}

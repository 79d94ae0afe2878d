/* buffers.h: pinned host memory, in buffers of 512 KiB, 1 MiB and so on up to 64 MiB. To pin 64 MiB takes milliseconds, so that they are
 * kept for later. If no more memory can be pinned, ordinary memory is used. Nothing is stored in idle buffers: the program may
 * destroy its contexts, and pinned memory with them, before MPI_Finalize.
 *
 * The caller holds the lock of gpu.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_BUFFERS_H
#define FP_GPU_BUFFERS_H

#include "gpu/ops.h"

enum { BUFFER_CLASSES = 8 };

struct gpu_buffer {
    void *memory;
    uint64_t id; /* of pinned memory: differs if the address is used again */
};

struct gpu_buffer_list {
    struct gpu_buffer *entries;
    size_t count, room;
};

struct gpu_buffers {
    struct gpu_buffer_list idle[BUFFER_CLASSES];
    struct gpu_buffer_list unpinned, pinned; /* idle or in use */
    size_t idle_bytes;
};

void *gpu_buffers_get(struct gpu_buffers *buffers, const struct gpu_ops *ops, size_t size);
void gpu_buffers_put(struct gpu_buffers *buffers, const struct gpu_ops *ops, void *memory, size_t size);
void gpu_buffers_clear(struct gpu_buffers *buffers, const struct gpu_ops *ops);

#endif

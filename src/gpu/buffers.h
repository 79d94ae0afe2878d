/* buffers.h: pinned host memory, in buffers of 512 KiB, 1 MiB and so on up to 64 MiB. Pinning 64 MiB takes
 * milliseconds, so idle buffers are cached, up to 256 MiB; the least recently used ones are freed first.
 * If no more memory can be pinned, ordinary memory is used. Nothing is stored in idle buffers: the program
 * may destroy its contexts, and pinned memory with them.
 *
 * The caller holds the lock of gpu.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_BUFFERS_H
#define FP_GPU_BUFFERS_H

#include "gpu/ops.h"

struct gpu_buffer {
    void *memory;
    uint64_t id; /* buffer id of pinned memory: differs if the address is used again */
    uint64_t last_use;
    size_t size;
    bool is_pinned;
    bool is_idle;
};

struct gpu_buffers {
    struct gpu_buffer *entries;
    size_t count, room;
    size_t idle_bytes;
    uint64_t uses;
};

void *gpu_buffers_get(struct gpu_buffers *buffers, const struct gpu_ops *ops, size_t size);
void gpu_buffers_put(struct gpu_buffers *buffers, const struct gpu_ops *ops, void *memory, size_t size);
void gpu_buffers_clear(struct gpu_buffers *buffers, const struct gpu_ops *ops);

#endif

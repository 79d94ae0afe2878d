/* gpu_move.h: an asynchronous copy between memory of any kinds. Host memory that the GPU library has not pinned
 * is copied through two staging buffers: while the GPU fills or empties one, the processor copies the other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_GPU_MOVE_H
#define FP_GPU_GPU_MOVE_H

#include "gpu/gpu.h"

enum gpu_move_path { GPU_MOVE_DIRECT, GPU_MOVE_TO_HOST, GPU_MOVE_FROM_HOST };

struct gpu_move {
    char *to;
    const char *from;
    size_t size;
    size_t started, finished; /* bytes whose copy has been started; bytes that have arrived */
    enum gpu_move_path path;
    void *stage[2];
    struct gpu_transfer transfer[2];
};

/* Starts to copy `size` bytes, at least 1. 0 or an error class; nothing is to be released after an error. */
int gpu_move_start(struct gpu_move *move, void *to, const void *from, size_t size);
/* 0: all bytes have arrived; ERR_AGAIN: in progress; else an error class. The move has ended unless ERR_AGAIN
 * is returned. */
int gpu_move_poll(struct gpu_move *move);

#endif

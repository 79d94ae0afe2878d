/* kernels.c: calls of the kernels of kernels.cu, and their PTX as part of the library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/kernels.h"

#include <stdio.h>

#include "base/err.h"
#include "gpu/gpu.h"
#include "gpu/run.h"

#define THREADS 256

/* The assembler includes the file; FP_GPU_PTX is its path. */
__asm__(".pushsection .rodata\n"
        ".global gpu_kernels_ptx\n"
        ".hidden gpu_kernels_ptx\n"
        ".type gpu_kernels_ptx, %object\n"
        "gpu_kernels_ptx:\n"
        ".incbin \"" FP_GPU_PTX "\"\n"
        ".byte 0\n"
        ".size gpu_kernels_ptx, . - gpu_kernels_ptx\n"
        ".popsection\n");

int gpu_reduce(const char *kernel, const void *left, const void *right, void *out, size_t count,
               size_t alignment)
{
    char name[48];
    uint64_t n = count;
    void *arguments[] = {&left, &right, &out, &n};
    if (((uintptr_t)left | (uintptr_t)right | (uintptr_t)out) % alignment != 0)
        return ERR_AGAIN;
    snprintf(name, sizeof(name), "fp_%s", kernel);
    return count ? gpu_run_kernel(name, out, arguments, (count + THREADS - 1) / THREADS, THREADS) : 0;
}

static int move_segments(const char *name, void *to, const void *from, const void *device,
                         const struct gpu_segment *segments, uint64_t count)
{
    void *arguments[] = {&to, &from, &segments, &count};
    /* A block of threads for each segment: short segments need few threads. */
    const unsigned threads = count && segments[0].length <= 512 ? 32 : THREADS;
    struct gpu_range range;
    if (gpu_find_range(segments, &range) != 0)
        return ERR_AGAIN;
    return count ? gpu_run_kernel(name, device, arguments, count, threads) : 0;
}

/* The kernels take (device memory, dense memory): the first is the target of a scatter and the source of a
 * gather. */
int gpu_gather(void *dense, const void *base, const struct gpu_segment *segments, size_t count)
{
    return move_segments("fp_gather", (void *)(uintptr_t)base, dense, base, segments, count);
}

int gpu_scatter(void *base, const void *dense, const struct gpu_segment *segments, size_t count)
{
    return move_segments("fp_scatter", base, dense, base, segments, count);
}

/* kernels.h: what the host and the GPU's kernels (kernels.cu) share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_KERNELS_H
#define FP_GPU_KERNELS_H

#include <stdint.h>

/* A block of a derived datatype: `length` bytes at base + offset correspond to the bytes at dense + start. */
struct gpu_segment {
    int64_t offset;
    uint64_t start, length;
};

#ifndef __CUDACC__
/* kernels.ptx, with a final zero byte (kernels.c). */
extern const char gpu_kernels_ptx[];
#endif

#endif

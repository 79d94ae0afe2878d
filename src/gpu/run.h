/* run.h: runs a kernel of the GPU library in use; for kernels.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_RUN_H
#define FP_GPU_RUN_H

#include <stdint.h>

int gpu_run_kernel(const char *name, const void *memory, void **arguments, uint64_t blocks, unsigned threads);

#endif

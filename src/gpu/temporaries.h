/* temporaries.h: device memory of the library itself, for collectives that compute on a GPU. Memory that is
 * no longer used is retained for later calls: an allocation, and its mapping in other processes, takes as
 * long as a collective on a few MiB.
 *
 * The caller holds the lock of gpu.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_TEMPORARIES_H
#define FP_GPU_TEMPORARIES_H

#include "gpu/ops.h"

#define GPU_TEMPORARIES_MOST 16

struct gpu_temporaries {
    struct gpu_range idle[GPU_TEMPORARIES_MOST]; /* in the order of their last use; size 0 ends the list */
    size_t idle_bytes;
};

/* Returns temporary device memory; NULL if the GPU has none left. */
void *gpu_temporaries_get(struct gpu_temporaries *t, const struct gpu_ops *ops, size_t size,
                          const void *near);
void gpu_temporaries_put(struct gpu_temporaries *t, const struct gpu_ops *ops, void *address);
void gpu_temporaries_clear(struct gpu_temporaries *t, const struct gpu_ops *ops);

#endif

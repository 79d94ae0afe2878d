/* ops.h: the operations of a GPU library that src/gpu uses; cuda.c has the only table. Every function
 * returns 0 or an error class, with a sentence in err_detail, unless its comment states otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_OPS_H
#define FP_GPU_OPS_H

#include "gpu/gpu.h"

struct gpu_ops {
    /* Loads the functions if the process has the library, or in any case if `required`. False: *why names the
     * missing part. */
    bool (*open)(bool required, const char **why);
    void (*close)(void);
    /* False: the library does not know the address (host memory). */
    bool (*find_range)(uintptr_t address, struct gpu_range *out);
    int (*start_copy)(void *to, const void *from, size_t size, struct gpu_transfer *out);
    int (*poll_copy)(struct gpu_transfer *transfer);
    int (*wait_copy)(struct gpu_transfer *transfer);
    int (*copy_rows)(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t rows);
    void *(*alloc_pinned)(size_t size); /* NULL: no memory can be pinned */
    void (*free_pinned)(void *memory);
    /* the context that copies `memory`; NULL: unusable */
    void *(*find_context)(const void *memory);
    void *(*alloc_device)(const void *near, size_t size); /* in the context of `near`; NULL: none left */
    void (*free_device)(void *memory);
    /* Sets out->handle or out->fd. ERR_AGAIN: memory of this kind cannot be exported. */
    int (*export_range)(const struct gpu_range *range, struct gpu_export *out);
    int (*map_export)(const struct gpu_export *exported, void **out);
    void (*unmap_export)(const struct gpu_export *exported, void *address);
    int (*open_dmabuf)(uintptr_t start, size_t size, int *fd); /* ERR_AGAIN: no dma-buf support */
    int (*synchronize_copies)(uintptr_t address,
                              bool *lasts); /* see gpu_synchronize_copies; *lasts: no need to call again */
    /* Runs kernel `name` in the context of `memory` and waits for it. ERR_AGAIN: there is no kernel of that
     * name. */
    int (*run_kernel)(const char *name, const void *memory, void **arguments, uint64_t blocks,
                      unsigned threads);
    bool (*find_current)(char pci[16]); /* of the current context's device; false: no context */
    int (*count_devices)(void);
    int (*describe_device)(int index, struct gpu_device *out);
    int (*driver_version)(void);
};

extern const struct gpu_ops gpu_cuda_ops;

#endif

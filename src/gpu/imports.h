/* imports.h: the cache of GPU memory of other processes that is mapped here. Mapping takes 250 us, so
 * mappings are cached. A mapping keeps freed memory of its owner allocated: the number of mappings is
 * bounded, and a mapping is closed when its owner exports another allocation at an overlapping address.
 * The control variable GPU_IMPORT_BYTES bounds the bytes of mappings without users; the most recently used
 * mapping stays in any case.
 *
 * The caller holds the lock of gpu.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_IMPORTS_H
#define FP_GPU_IMPORTS_H

#include "gpu/ops.h"

#define GPU_IMPORTS_MOST 32

struct gpu_import {
    struct gpu_export of;
    void *address;       /* NULL: this entry is free */
    uint64_t mapping_id; /* buffer id of `address`: differs after the program has reset its context */
    uint64_t last_use;
    uint32_t users;
};

struct gpu_imports {
    struct gpu_import entries[GPU_IMPORTS_MOST];
    uint64_t uses;
    uint64_t idle_bytes; /* of mappings without users */
};

/* Maps exported memory or finds its mapping. ERR_AGAIN: all entries are in use. */
int gpu_imports_get(struct gpu_imports *imports, const struct gpu_ops *ops, const struct gpu_export *exported,
                    void **out);
void gpu_imports_put(struct gpu_imports *imports, const struct gpu_ops *ops, const void *address);
void gpu_imports_clear(struct gpu_imports *imports, const struct gpu_ops *ops);

#endif

/* gpu.h: memory of CUDA devices as registered memory. An adapter reads and writes it over the bus; here
 * the CUDA driver library copies. Other members of the machine map the memory by CUDA IPC; a member that
 * has not loaded the driver library loads it for that.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_GPU_H
#define SOFTIB_GPU_H

#include "base/base.h"
#include <sys/uio.h>

/* What other members need to map a region, in the owner's arena. */
struct gpu_handle {
    unsigned char ipc[64];
    uint64_t offset; /* of the region in the allocation */
    int device;
};

/* This process has registered or mapped device memory: copies must look at addresses. */
extern atomic_bool gpu_used;

/* True if the driver library of this process knows `addr` as device memory. A process without that library
 * pays one dlopen. */
bool gpu_is_device_memory(uint64_t addr);
/* 0, or an error number: the memory cannot be shared, or the driver is too old. */
int gpu_export(uint64_t addr, uint64_t len, struct gpu_handle *out);
/* NULL: it cannot be mapped. *map is for gpu_unmap. */
char *gpu_map(const struct gpu_handle *handle, void **map);
void gpu_unmap(void *map);

/* One of the addresses is device memory. */
bool gpu_involved(const char *to, const char *from);
/* memmove between memory of any kind. False: the driver refused. */
bool gpu_move(char *to, const char *from, size_t n);
/* memcpy from registered memory of any kind to ordinary memory. */
static inline void gpu_read(char *to, const char *from, size_t n)
{
    if (LIKELY(!atomic_load_explicit(&gpu_used, memory_order_relaxed)))
        memcpy(to, from, n);
    else
        gpu_move(to, from, n);
}

/* One of the pieces is device memory. */
bool gpu_list_has_device_memory(const struct iovec *iov, unsigned long n);

#endif

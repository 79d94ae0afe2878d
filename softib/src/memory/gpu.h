/* gpu.h: memory of CUDA devices as registered memory. An adapter reads and writes it over the bus; here
 * the CUDA driver library copies. Other members of the machine map the memory by CUDA IPC; a member that
 * has not loaded the driver library loads it for that.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_GPU_H
#define SOFTIB_GPU_H

#include "base/base.h"
#include <sys/uio.h>

/* Data that other members need to map a region of device memory, in the owner's arena. */
struct gpu_handle {
    unsigned char ipc[64];
    uint64_t offset; /* offset of the region in its allocation */
    int device;
};

/* True if this process has registered or mapped device memory: copies must check the kind of each address. */
extern atomic_bool gpu_used;

/* True if the CUDA driver in this process knows `addr` as device memory. In a process without the driver the
 * check costs one dlopen. */
bool gpu_is_device_memory(uint64_t addr);
/* Exports device memory. Returns 0, or an error number: it cannot be shared, or the driver is too old. */
int gpu_export(uint64_t addr, uint64_t len, struct gpu_handle *out);
/* Maps exported device memory of another member; NULL: impossible. *map: the argument for gpu_unmap. */
char *gpu_map(const struct gpu_handle *handle, void **map);
void gpu_unmap(void *map);

/* True if one of the addresses is device memory. */
bool gpu_involved(const char *to, const char *from);
/* memmove between memory of any kind. Returns false if the driver reports an error. */
bool gpu_move(char *to, const char *from, size_t n);
/* memcpy from registered memory of any kind to ordinary memory. */
static inline void gpu_read(char *to, const char *from, size_t n)
{
    if (LIKELY(!atomic_load_explicit(&gpu_used, memory_order_relaxed)))
        memcpy(to, from, n);
    else
        gpu_move(to, from, n);
}

/* True if one of the pieces is device memory. */
bool gpu_list_has_device_memory(const struct iovec *iov, unsigned long n);

#endif

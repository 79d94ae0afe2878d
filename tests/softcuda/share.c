/* share.c: softcuda memory that other processes map: IPC handles, VMM allocations as file descriptors,
 * dma-buf.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softcuda.h"

/* Contents of the 64 bytes of an IPC handle. */
struct exported {
    uint64_t magic, id, size;
    int pid, fd, device;
};

#define EXPORT_MAGIC 0x736f667463756461u

EXPORT cuda_result cuIpcGetMemHandle(struct cuda_ipc_handle *handle, cuda_pointer pointer)
{
    if (softcuda_must_fail(__func__))
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&softcuda_lock);
    const struct allocation *it = softcuda_find(pointer, 1);
    const bool good = it && it->kind == MEMORY_DEVICE;
    memset(handle, 0, sizeof(*handle));
    if (good) {
        const struct exported e = {EXPORT_MAGIC, it->id, it->size, getpid(), it->fd, it->device};
        memcpy(handle, &e, sizeof(e));
    }
    pthread_mutex_unlock(&softcuda_lock);
    return good ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* As with the real driver, the exporting process cannot open its own handle. */
EXPORT cuda_result cuIpcOpenMemHandle_v2(cuda_pointer *pointer, struct cuda_ipc_handle handle, unsigned flags)
{
    struct exported e;
    struct allocation it = {.kind = MEMORY_IMPORTED};
    char path[64];
    memcpy(&e, &handle, sizeof(e));
    if (!softcuda_current() || e.pid == getpid())
        return CUDA_INVALID_CONTEXT;
    if (flags != CUDA_IPC_LAZY_PEER_ACCESS || e.magic != EXPORT_MAGIC || softcuda_must_fail(__func__))
        return CUDA_INVALID_VALUE;
    if (!softcuda_are_peers(softcuda_current()->device, e.device))
        return CUDA_PEERS_UNSUPPORTED;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", e.pid, e.fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return CUDA_INVALID_HANDLE;
    it.device = e.device;
    it.opened_by = softcuda_current()->device;
    pthread_mutex_lock(&softcuda_lock);
    const bool good = softcuda_map(fd, e.size, &it) && softcuda_add(&it);
    pthread_mutex_unlock(&softcuda_lock);
    if (!good)
        close(fd);
    *pointer = good ? it.address : 0;
    return good ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

/* Opens a descriptor of the memory from `address` on: with SOFTCUDA_OPAQUE one that cannot be mapped, like
 * the driver's; else the file of the whole allocation with `address` as its file position, which softib
 * reads. */
static int open_range(const struct allocation *it, uintptr_t address)
{
    char path[64];
    if (softcuda_setting("SOFTCUDA_OPAQUE", 0))
        return eventfd(0, EFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", it->fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        lseek(fd, (off_t)(address - it->address + it->offset), SEEK_SET);
    return fd;
}

EXPORT cuda_result cuMemGetHandleForAddressRange(void *handle, cuda_pointer pointer, size_t size, int type,
                                                 unsigned long long flags)
{
    if (type != CUDA_RANGE_DMA_BUF_FD || flags != 0 || pointer % 4096 || size % 4096)
        return CUDA_INVALID_VALUE;
    if (softcuda_must_fail(__func__))
        return CUDA_NOT_SUPPORTED;
    pthread_mutex_lock(&softcuda_lock);
    const struct allocation *it = softcuda_find(pointer, 1);
    const bool whole = it && size <= it->mapped - (pointer - it->address);
    const int fd = whole && it->fd >= 0 ? open_range(it, pointer) : -1;
    pthread_mutex_unlock(&softcuda_lock);
    if (fd < 0)
        return CUDA_INVALID_VALUE;
    *(int *)handle = fd;
    return CUDA_OK;
}

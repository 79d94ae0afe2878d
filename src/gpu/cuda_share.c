/* cuda_share.c: device memory for other processes. Memory of cuMemAlloc has IPC handles of the driver;
 * memory that the program has mapped itself (VMM) has a file descriptor, which the other process
 * duplicates. Memory of pools has neither.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

#define VMM_UNIT ((size_t)2 << 20) /* the driver's granularity */

static int export_descriptor(uintptr_t start, int *fd)
{
    cuda_vmm_handle handle;
    if (cuda.call.vmm_retain(&handle, (void *)start) != CUDA_OK)
        return ERR_AGAIN;
    const cuda_result rc = cuda.call.vmm_export(fd, handle, CUDA_HANDLE_POSIX_FD, 0);
    cuda.call.vmm_release(handle);
    return rc == CUDA_OK ? 0 : ERR_AGAIN;
}

int cuda_export_range(const struct gpu_range *range, struct gpu_export *out)
{
    struct cuda_ipc_handle handle;
    out->fd = -1;
    if (range->by_descriptor)
        return export_descriptor(range->start, &out->fd);
    if (cuda.call.ipc_export(&handle, range->start) != CUDA_OK)
        return ERR_AGAIN;
    memcpy(out->handle, &handle, sizeof(handle));
    return 0;
}

/* Duplicates a descriptor of another process; -1: failed. The system requires the same right as for copies
 * from the memory of that process. */
static int duplicate_descriptor(int pid, int fd)
{
#ifdef SYS_pidfd_getfd
    const int process = (int)syscall(SYS_pidfd_open, pid, 0);
    const int mine = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    if (process >= 0)
        close(process);
    return mine;
#else
    return (void)pid, (void)fd, -1;
#endif
}

static cuda_result map_handle(cuda_vmm_handle handle, size_t size, cuda_pointer *out)
{
    cuda_device device = 0;
    cuda_result rc = cuda.call.context_device(&device);
    const struct cuda_vmm_access access = {
        .location = {.type = CUDA_LOCATION_DEVICE, .id = device},
        .flags = CUDA_VMM_READ_WRITE,
    };
    if (rc == CUDA_OK)
        rc = cuda.call.vmm_reserve(out, size, VMM_UNIT, 0, 0);
    if (rc != CUDA_OK)
        return rc;
    rc = cuda.call.vmm_map(*out, size, 0, handle, 0);
    if (rc == CUDA_OK && (rc = cuda.call.vmm_access(*out, size, &access, 1)) != CUDA_OK)
        cuda.call.vmm_unmap(*out, size);
    if (rc != CUDA_OK)
        cuda.call.vmm_unreserve(*out, size);
    return rc;
}

static cuda_result map_descriptor(const struct gpu_export *exported, cuda_pointer *out)
{
    cuda_vmm_handle handle;
    const int fd = duplicate_descriptor(exported->pid, exported->fd);
    if (fd < 0)
        return CUDA_INVALID_HANDLE;
    cuda_result rc = cuda.call.vmm_import(&handle, (void *)(intptr_t)fd, CUDA_HANDLE_POSIX_FD);
    close(fd);
    if (rc != CUDA_OK)
        return rc;
    rc = map_handle(handle, exported->size, out);
    cuda.call.vmm_release(handle); /* the mapping holds a reference to the memory */
    return rc;
}

int cuda_map_export(const struct gpu_export *exported, void **out)
{
    struct cuda_ipc_handle handle;
    cuda_pointer address = 0;
    cuda_context previous;
    memcpy(&handle, exported->handle, sizeof(handle));
    pthread_mutex_lock(&cuda.lock);
    struct cuda_queue *q = cuda_get_any_queue();
    cuda_result rc = q ? cuda.call.context_push(q->context) : CUDA_INVALID_CONTEXT;
    if (rc == CUDA_OK) {
        rc = exported->fd >= 0 ? map_descriptor(exported, &address)
                               : cuda.call.ipc_open(&address, handle, CUDA_IPC_LAZY_PEER_ACCESS);
        cuda.call.context_pop(&previous);
    }
    pthread_mutex_unlock(&cuda.lock);
    if (rc != CUDA_OK)
        return cuda_report_error(rc, "map GPU memory of another process");
    *out = (void *)address;
    return 0;
}

void cuda_unmap_export(const struct gpu_export *exported, void *address)
{
    if (exported->fd < 0) {
        cuda.call.ipc_close((cuda_pointer)address);
        return;
    }
    cuda.call.vmm_unmap((cuda_pointer)address, exported->size);
    cuda.call.vmm_unreserve((cuda_pointer)address, exported->size);
}

/* vmm.c: memory that programs map themselves (cuMemCreate, cuMemAddressReserve, cuMemMap), and its
 * descriptors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softcuda.h"

/* A handle is a descriptor number plus 1; the size of an allocation is the size of its file. */
static int handle_descriptor(cuda_vmm_handle handle)
{
    return (int)handle - 1;
}

/* The name of the memory file ends with the number of the device. */
#define VMM_NAME "softcuda vmm "
static int descriptor_device(int fd)
{
    char path[64], name[64] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, name, sizeof(name) - 1);
    const char *number = length > 0 ? strstr(name, VMM_NAME) : NULL;
    return number ? atoi(number + strlen(VMM_NAME)) : 0;
}

static size_t descriptor_size(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? (size_t)status.st_size : 0;
}

EXPORT cuda_result cuMemGetAllocationGranularity(size_t *out, const struct cuda_vmm_properties *properties,
                                                 unsigned option)
{
    (void)properties;
    (void)option;
    *out = UNIT;
    return CUDA_OK;
}

EXPORT cuda_result cuMemCreate(cuda_vmm_handle *out, size_t size,
                               const struct cuda_vmm_properties *properties, unsigned long long flags)
{
    if (size == 0 || size % UNIT || flags != 0 || properties->location.id >= softcuda_device_count())
        return CUDA_INVALID_VALUE;
    char name[32];
    snprintf(name, sizeof(name), VMM_NAME "%d", properties->location.id);
    const int fd = softcuda_must_fail(__func__) ? -1 : memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
        return CUDA_OUT_OF_MEMORY;
    *out = (cuda_vmm_handle)fd + 1;
    return CUDA_OK;
}

EXPORT cuda_result cuMemRelease(cuda_vmm_handle handle)
{
    return close(handle_descriptor(handle)) == 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

#define RESERVATIONS_MOST 4096
static struct {
    uintptr_t start;
    size_t size; /* 0: a free entry */
} reservations[RESERVATIONS_MOST];

static bool add_reservation(uintptr_t start, size_t size)
{
    bool added = false;
    pthread_mutex_lock(&softcuda_lock);
    for (size_t i = 0; i < RESERVATIONS_MOST && !added; i++)
        if (reservations[i].size == 0) {
            reservations[i].start = start;
            reservations[i].size = size;
            added = true;
        }
    pthread_mutex_unlock(&softcuda_lock);
    return added;
}

static bool remove_reservation(uintptr_t start, size_t size)
{
    bool removed = false;
    pthread_mutex_lock(&softcuda_lock);
    for (size_t i = 0; i < RESERVATIONS_MOST && !removed; i++)
        if (reservations[i].start == start && reservations[i].size == size) {
            reservations[i].size = 0;
            removed = true;
        }
    pthread_mutex_unlock(&softcuda_lock);
    return removed;
}

bool softcuda_find_reservation(uintptr_t address, uintptr_t *start, size_t *size)
{
    for (size_t i = 0; i < RESERVATIONS_MOST; i++)
        if (address - reservations[i].start < reservations[i].size) {
            *start = reservations[i].start;
            *size = reservations[i].size;
            return true;
        }
    return false;
}

/* The end of the reservation is aligned too, as memory of cuMemAlloc is. */
EXPORT cuda_result cuMemAddressReserve(cuda_pointer *out, size_t size, size_t alignment, cuda_pointer wanted,
                                       unsigned long long flags)
{
    (void)wanted;
    if (size == 0 || size % UNIT || alignment > UNIT || flags != 0)
        return CUDA_INVALID_VALUE;
    char *reserved = softcuda_reserve(size);
    *out = (cuda_pointer)reserved;
    return reserved && add_reservation(*out, size) ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

EXPORT cuda_result cuMemAddressFree(cuda_pointer address, size_t size)
{
    return remove_reservation(address, size) && munmap((void *)address, size) == 0 ? CUDA_OK
                                                                                   : CUDA_INVALID_VALUE;
}

EXPORT cuda_result cuMemMap(cuda_pointer address, size_t size, size_t offset, cuda_vmm_handle handle,
                            unsigned long long flags)
{
    struct allocation it = {.kind = MEMORY_VMM, .address = address, .size = size, .mapped = size};
    if (offset != 0 || flags != 0 || size > descriptor_size(handle_descriptor(handle)) ||
        softcuda_must_fail(__func__))
        return CUDA_INVALID_VALUE;
    it.fd = fcntl(handle_descriptor(handle), F_DUPFD_CLOEXEC, 0);
    it.alias = it.fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, it.fd, 0);
    it.is_locked = true;
    pthread_mutex_lock(&softcuda_lock);
    const bool added = it.alias != MAP_FAILED && !softcuda_find(address, 1) && softcuda_add(&it);
    pthread_mutex_unlock(&softcuda_lock);
    return added ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

EXPORT cuda_result cuMemSetAccess(cuda_pointer address, size_t size, const struct cuda_vmm_access *access,
                                  size_t count)
{
    cuda_result rc = CUDA_OK;
    if (count != 1 || access->location.id >= softcuda_device_count() || softcuda_must_fail(__func__))
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&softcuda_lock);
    for (size_t at = 0; at < size && rc == CUDA_OK;) {
        struct allocation *it = softcuda_find(address + at, 1);
        if (it && it->kind == MEMORY_VMM) {
            if (!softcuda_are_peers(descriptor_device(it->fd), access->location.id))
                rc = CUDA_INVALID_DEVICE;
            it->is_locked = rc != CUDA_OK || access->flags == 0;
            it->device = access->location.id;
            at += it->size;
        } else {
            rc = CUDA_INVALID_VALUE;
        }
    }
    pthread_mutex_unlock(&softcuda_lock);
    return rc;
}

EXPORT cuda_result cuMemUnmap(cuda_pointer address, size_t size)
{
    for (size_t at = 0; at < size;) {
        const size_t part = softcuda_unmap(address + at);
        if (part == 0)
            return CUDA_INVALID_VALUE;
        at += part;
    }
    return CUDA_OK;
}

EXPORT cuda_result cuMemRetainAllocationHandle(cuda_vmm_handle *out, void *address)
{
    pthread_mutex_lock(&softcuda_lock);
    const struct allocation *it = softcuda_find((cuda_pointer)address, 1);
    const int fd = it && it->kind == MEMORY_VMM ? fcntl(it->fd, F_DUPFD_CLOEXEC, 0) : -1;
    pthread_mutex_unlock(&softcuda_lock);
    *out = (cuda_vmm_handle)fd + 1;
    return fd >= 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

EXPORT cuda_result cuMemExportToShareableHandle(void *out, cuda_vmm_handle handle, int type,
                                                unsigned long long flags)
{
    if (type != CUDA_HANDLE_POSIX_FD || flags != 0 || softcuda_must_fail(__func__))
        return CUDA_NOT_SUPPORTED;
    const int fd = fcntl(handle_descriptor(handle), F_DUPFD_CLOEXEC, 0);
    *(int *)out = fd;
    return fd >= 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

EXPORT cuda_result cuMemImportFromShareableHandle(cuda_vmm_handle *out, void *shared, int type)
{
    if (type != CUDA_HANDLE_POSIX_FD || softcuda_must_fail(__func__))
        return CUDA_NOT_SUPPORTED;
    const int fd = fcntl((int)(intptr_t)shared, F_DUPFD_CLOEXEC, 0);
    *out = (cuda_vmm_handle)fd + 1;
    return fd >= 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

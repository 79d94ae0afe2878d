/* memory.c: allocations of softcuda and the attributes of addresses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softcuda.h"

#define ALLOCATIONS_MOST 65536

static struct allocation *table; /* sorted by address */
static size_t count;
static uint64_t last_id;
static size_t used[DEVICES_MOST]; /* allocated bytes of device memory */

/* Returns the index of the first allocation above `address`. */
static size_t upper_bound(uintptr_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (table[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct allocation *softcuda_find(uintptr_t address, size_t size)
{
    const size_t above = upper_bound(address);
    if (above == 0)
        return NULL;
    struct allocation *it = &table[above - 1];
    return address - it->address < it->size && size <= it->size - (address - it->address) ? it : NULL;
}

bool softcuda_add(const struct allocation *it)
{
    if (!table && !(table = calloc(ALLOCATIONS_MOST, sizeof(*table))))
        return false;
    if (count == ALLOCATIONS_MOST)
        return false;
    const size_t at = upper_bound(it->address);
    memmove(&table[at + 1], &table[at], (count - at) * sizeof(*table));
    table[at] = *it;
    table[at].id = ++last_id;
    count++;
    return true;
}

char *softcuda_translate(uintptr_t address, size_t size)
{
    struct allocation *it = softcuda_find(address, size);
    if (it)
        return it->is_locked ? NULL : it->alias + (address - it->address);
    /* A range that begins inside an allocation and exceeds it is an error of the caller; other addresses
     * are host memory. */
    return softcuda_find(address, 1) || softcuda_find_reservation(address, &(uintptr_t){0}, &(size_t){0})
               ? NULL
               : (char *)address;
}

/* Returns how many of `size` bytes at `address` lie in one mapping of cuMemMap; other memory is never
 * divided. */
static size_t bytes_in_mapping(uintptr_t address, size_t size)
{
    const struct allocation *it = softcuda_find(address, 1);
    const size_t rest = it ? it->size - (address - it->address) : size;
    return it && it->kind == MEMORY_VMM && rest < size ? rest : size;
}

bool softcuda_copy_memory(uintptr_t to, uintptr_t from, size_t size)
{
    while (size > 0) {
        const size_t n = bytes_in_mapping(to, bytes_in_mapping(from, size));
        char *target = softcuda_translate(to, n);
        const char *source = softcuda_translate(from, n);
        if (!target || !source)
            return false;
        memmove(target, source, n);
        to += n;
        from += n;
        size -= n;
    }
    return true;
}

size_t softcuda_unmap(uintptr_t address)
{
    pthread_mutex_lock(&softcuda_lock);
    struct allocation *it = softcuda_find(address, 1);
    const bool good = it && it->kind == MEMORY_VMM && it->address == address;
    const struct allocation released = good ? *it : (struct allocation){.size = 0};
    if (good) {
        memmove(it, it + 1, (size_t)(&table[count] - (it + 1)) * sizeof(*it));
        count--;
        munmap(released.alias - released.offset, released.size + released.offset);
        close(released.fd);
    }
    pthread_mutex_unlock(&softcuda_lock);
    return released.size;
}

char *softcuda_reserve(size_t size)
{
    char *reserved = mmap(NULL, size + UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return NULL;
    char *aligned = (char *)(((uintptr_t)reserved + UNIT - 1) / UNIT * UNIT);
    if (aligned > reserved)
        munmap(reserved, (size_t)(aligned - reserved));
    munmap(aligned + size, (size_t)(reserved + UNIT - aligned));
    return aligned;
}

bool softcuda_map(int fd, size_t size, struct allocation *out)
{
    const size_t offset = softcuda_setting("SOFTCUDA_OFFSET", 0);
    const size_t mapped = (size + offset + UNIT - 1) / UNIT * UNIT;
    char *aligned = softcuda_reserve(mapped);
    if (!aligned)
        return false;
    char *alias = mmap(NULL, size + offset, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (alias == MAP_FAILED) {
        munmap(aligned, mapped);
        return false;
    }
    out->address = (uintptr_t)aligned + offset;
    out->mapped = mapped;
    out->offset = offset;
    out->alias = alias + offset;
    out->size = size;
    out->fd = fd;
    return true;
}

static cuda_result alloc_device(cuda_pointer *out, size_t size, enum memory_kind kind)
{
    struct allocation it = {.kind = kind, .fd = -1};
    cuda_context context = softcuda_current();
    cuda_result rc = CUDA_OUT_OF_MEMORY;
    if (!context)
        return CUDA_INVALID_CONTEXT;
    if (size == 0)
        return CUDA_INVALID_VALUE;
    it.device = context->device;
    pthread_mutex_lock(&softcuda_lock);
    size_t total;
    cuDeviceTotalMem_v2(&total, it.device);
    const int fd = used[it.device] + size <= total ? memfd_create("softcuda", MFD_CLOEXEC) : -1;
    if (fd >= 0 && ftruncate(fd, (off_t)(size + softcuda_setting("SOFTCUDA_OFFSET", 0))) == 0 &&
        softcuda_map(fd, size, &it) && softcuda_add(&it)) {
        used[it.device] += size;
        *out = it.address;
        rc = CUDA_OK;
    } else if (fd >= 0) {
        close(fd);
    }
    pthread_mutex_unlock(&softcuda_lock);
    return rc;
}

static cuda_result alloc_host(void **out, size_t size, enum memory_kind kind)
{
    struct allocation it = {
        .kind = kind, .fd = -1, .device = softcuda_current() ? softcuda_current()->device : -1};
    if (!softcuda_current())
        return CUDA_INVALID_CONTEXT;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    it.address = (uintptr_t)memory;
    it.alias = memory;
    it.size = it.mapped = size;
    pthread_mutex_lock(&softcuda_lock);
    const bool added = softcuda_add(&it);
    pthread_mutex_unlock(&softcuda_lock);
    if (!added)
        munmap(memory, size);
    *out = added ? memory : NULL;
    return added ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

/* Frees an allocation after copies in flight have completed, except for memory of pools. `kinds`: bit mask of
 * the kinds of memory that the calling function may free. */
static cuda_result free_allocation(uintptr_t address, unsigned kinds)
{
    pthread_mutex_lock(&softcuda_lock);
    struct allocation *it = softcuda_find(address, 1);
    const bool waits = it && it->kind != MEMORY_POOL;
    pthread_mutex_unlock(&softcuda_lock);
    if (waits)
        softcuda_run_default();
    pthread_mutex_lock(&softcuda_lock);
    it = softcuda_find(address, 1);
    if (!it || it->address != address || !(kinds & 1u << it->kind)) {
        pthread_mutex_unlock(&softcuda_lock);
        return CUDA_INVALID_VALUE;
    }
    const struct allocation released = *it;
    memmove(it, it + 1, (size_t)(&table[count] - (it + 1)) * sizeof(*it));
    count--;
    if (released.kind == MEMORY_DEVICE || released.kind == MEMORY_POOL)
        used[released.device] -= released.size;
    pthread_mutex_unlock(&softcuda_lock);
    if (released.kind == MEMORY_REGISTERED)
        return CUDA_OK;
    if (released.fd >= 0) {
        if (released.kind != MEMORY_IMPORTED)
            memset(released.alias, 0xDD, released.size); /* makes stale mappings in other processes visible */
        munmap(released.alias - released.offset, released.size + released.offset);
        close(released.fd);
    }
    if (!softcuda_setting("SOFTCUDA_KEEP_ADDRESSES", 0))
        munmap((void *)(released.address - released.offset), released.mapped);
    return CUDA_OK;
}

void softcuda_release_all(int device)
{
    const unsigned kinds =
        1u << MEMORY_DEVICE | 1u << MEMORY_MANAGED | 1u << MEMORY_HOST | 1u << MEMORY_IMPORTED;
    for (size_t i = 0; i < count;)
        if ((table[i].kind == MEMORY_IMPORTED ? table[i].opened_by : table[i].device) != device ||
            free_allocation(table[i].address, kinds) != CUDA_OK)
            i++;
}

EXPORT cuda_result cuMemAlloc_v2(cuda_pointer *out, size_t size)
{
    return softcuda_must_fail(__func__) ? CUDA_OUT_OF_MEMORY : alloc_device(out, size, MEMORY_DEVICE);
}

EXPORT cuda_result cuMemAllocAsync(cuda_pointer *out, size_t size, cuda_stream stream)
{
    (void)stream;
    return softcuda_must_fail(__func__) ? CUDA_OUT_OF_MEMORY : alloc_device(out, size, MEMORY_POOL);
}

EXPORT cuda_result cuMemAllocManaged(cuda_pointer *out, size_t size, unsigned flags)
{
    (void)flags;
    void *memory = NULL;
    const cuda_result rc = alloc_host(&memory, size, MEMORY_MANAGED);
    *out = (uintptr_t)memory;
    return rc;
}

EXPORT cuda_result cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    (void)flags;
    return softcuda_must_fail(__func__) ? CUDA_OUT_OF_MEMORY : alloc_host(out, size, MEMORY_HOST);
}

EXPORT cuda_result cuMemAllocHost_v2(void **out, size_t size)
{
    return cuMemHostAlloc(out, size, 0);
}

EXPORT cuda_result cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
    (void)flags;
    struct allocation it = {.kind = MEMORY_REGISTERED,
                            .fd = -1,
                            .address = (uintptr_t)memory,
                            .alias = memory,
                            .size = size,
                            .mapped = size};
    pthread_mutex_lock(&softcuda_lock);
    const bool added = softcuda_add(&it);
    pthread_mutex_unlock(&softcuda_lock);
    return added ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

EXPORT cuda_result cuMemHostUnregister(void *memory)
{
    return free_allocation((uintptr_t)memory, 1u << MEMORY_REGISTERED);
}

EXPORT cuda_result cuMemFree_v2(cuda_pointer address)
{
    return free_allocation(address, 1u << MEMORY_DEVICE | 1u << MEMORY_MANAGED | 1u << MEMORY_POOL);
}

EXPORT cuda_result cuMemFreeAsync(cuda_pointer address, cuda_stream stream)
{
    (void)stream;
    softcuda_run_default(); /* the stream's operations are executed before the release */
    return free_allocation(address, 1u << MEMORY_POOL);
}

EXPORT cuda_result cuMemFreeHost(void *memory)
{
    return free_allocation((uintptr_t)memory, 1u << MEMORY_HOST);
}

EXPORT cuda_result cuIpcCloseMemHandle(cuda_pointer address)
{
    return free_allocation(address, 1u << MEMORY_IMPORTED);
}

/* ---- attributes ---- */

static bool is_device_memory(const struct allocation *it)
{
    return it->kind != MEMORY_HOST && it->kind != MEMORY_REGISTERED;
}

static cuda_context allocation_context(const struct allocation *it)
{
    const int device = it->kind == MEMORY_IMPORTED ? it->opened_by : it->device;
    cuda_context context = NULL;
    if (it->kind == MEMORY_POOL || it->kind == MEMORY_VMM || it->kind == MEMORY_REGISTERED)
        return NULL;
    if (cuDevicePrimaryCtxRetain(&context, device) == CUDA_OK)
        cuDevicePrimaryCtxRelease_v2(device);
    return context;
}

/* For unknown addresses all attributes are 0, without an error, as in the real driver. */
EXPORT cuda_result cuPointerGetAttributes(unsigned n, enum cuda_pointer_attribute *attributes, void **values,
                                          cuda_pointer pointer)
{
    if (!softcuda_is_initialised())
        return CUDA_NOT_INITIALIZED;
    pthread_mutex_lock(&softcuda_lock);
    const struct allocation *found = softcuda_find(pointer, 1);
    struct allocation it = found ? *found : (struct allocation){.device = -2};
    uintptr_t start = it.address;
    size_t size = it.size;
    if ((!found || it.kind == MEMORY_VMM) && softcuda_find_reservation(pointer, &start, &size)) {
        it.kind = MEMORY_VMM;
        it.device = found ? it.device : 0;
        found = &it; /* a reserved address is known even if nothing is mapped there */
    }
    pthread_mutex_unlock(&softcuda_lock);
    for (unsigned i = 0; i < n; i++)
        switch (attributes[i]) {
        case CUDA_POINTER_CONTEXT:
            *(cuda_context *)values[i] = found ? allocation_context(&it) : NULL;
            break;
        case CUDA_POINTER_MEMORY_TYPE:
            *(unsigned *)values[i] = !found                  ? CUDA_MEMORY_UNKNOWN
                                     : is_device_memory(&it) ? CUDA_MEMORY_DEVICE
                                                             : CUDA_MEMORY_HOST;
            break;
        case CUDA_POINTER_SYNC_MEMOPS:
            *(unsigned *)values[i] = it.sync_memops;
            break;
        case CUDA_POINTER_BUFFER_ID:
            *(unsigned long long *)values[i] = it.id;
            break;
        case CUDA_POINTER_IS_MANAGED:
            *(unsigned *)values[i] = found && it.kind == MEMORY_MANAGED;
            break;
        case CUDA_POINTER_DEVICE_ORDINAL:
            *(int *)values[i] = it.device;
            break;
        case CUDA_POINTER_IS_IPC_CAPABLE:
            *(int *)values[i] = found && it.kind == MEMORY_DEVICE;
            break;
        case CUDA_POINTER_RANGE_START:
            *(uintptr_t *)values[i] = start;
            break;
        case CUDA_POINTER_RANGE_SIZE:
            *(size_t *)values[i] = size;
            break;
        case CUDA_POINTER_MAPPING_START:
            *(uintptr_t *)values[i] = it.address;
            break;
        case CUDA_POINTER_MAPPING_SIZE:
            *(size_t *)values[i] = it.size;
            break;
        case CUDA_POINTER_POOL:
            *(void **)values[i] = found && it.kind == MEMORY_POOL ? (void *)1 : NULL;
            break;
        case CUDA_POINTER_HANDLE_TYPES:
            *(unsigned *)values[i] = found && it.kind == MEMORY_VMM ? CUDA_HANDLE_POSIX_FD : 0;
            break;
        default:
            return CUDA_INVALID_VALUE;
        }
    return CUDA_OK;
}

EXPORT cuda_result cuPointerGetAttribute(void *value, enum cuda_pointer_attribute attribute,
                                         cuda_pointer pointer)
{
    pthread_mutex_lock(&softcuda_lock);
    const bool known = softcuda_find(pointer, 1) != NULL;
    pthread_mutex_unlock(&softcuda_lock);
    return known ? cuPointerGetAttributes(1, &attribute, &value, pointer) : CUDA_INVALID_VALUE;
}

EXPORT cuda_result cuPointerSetAttribute(const void *value, enum cuda_pointer_attribute attribute,
                                         cuda_pointer pointer)
{
    pthread_mutex_lock(&softcuda_lock);
    struct allocation *it = softcuda_find(pointer, 1);
    const bool good = it && attribute == CUDA_POINTER_SYNC_MEMOPS;
    if (good)
        it->sync_memops = *(const unsigned *)value != 0;
    pthread_mutex_unlock(&softcuda_lock);
    return good ? CUDA_OK : CUDA_INVALID_VALUE;
}

EXPORT cuda_result cuMemGetAddressRange_v2(cuda_pointer *start, size_t *size, cuda_pointer pointer)
{
    pthread_mutex_lock(&softcuda_lock);
    struct allocation *it = softcuda_find(pointer, 1);
    if (it && start)
        *start = it->address;
    if (it && size)
        *size = it->size;
    pthread_mutex_unlock(&softcuda_lock);
    return it ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* gpu.c: registers, maps and copies memory of CUDA devices. Copies run in the primary context of the memory's
 * device, which the program uses too, on a stream that does not wait for the program's streams.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory/gpu.h"
#include <dlfcn.h>

#define DEVICES_MOST 16
#define PAGE         4096u

/* The part of the CUDA driver's binary interface that softib uses. */
typedef uintptr_t address_t; /* CUdeviceptr */
struct ipc_handle {
    unsigned char bytes[64];
};
enum {
    TYPE = 2,
    BUFFER_ID = 7,
    MANAGED = 8,
    ORDINAL = 9,
    START = 11,
    SIZE = 12
}; /* CU_POINTER_ATTRIBUTE_* */
enum { TYPE_DEVICE = 2, STREAM_NON_BLOCKING = 1, LAZY_PEER_ACCESS = 1, HOST_PORTABLE = 1 };

static struct {
    int (*init)(unsigned);
    int (*attributes)(unsigned n, int *which, void **values, address_t at);
    int (*retain)(void **context, int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*host_alloc)(void **memory, size_t n, unsigned flags);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*copy)(address_t to, address_t from, size_t n, void *stream);
    int (*ipc_get)(struct ipc_handle *out, address_t at);
    int (*ipc_open)(address_t *out, struct ipc_handle handle, unsigned flags);
    int (*ipc_close)(address_t at);
} cuda;

static struct gpu_context {
    void *context, *stream;
    void *marker; /* pinned memory that exists until the program resets the context; or NULL */
    unsigned long long marker_id; /* its buffer id, which differs if the address is used again */
} devices[DEVICES_MOST];

static struct lock gpu_lock; /* protects the loading of the driver and `devices` */
static bool is_loaded;
atomic_bool gpu_used;

/* Loads the CUDA driver library. With RTLD_NOLOAD: only if the program has loaded it. gpu_lock is held. */
static bool load_cuda(int flags)
{
    static const struct {
        void *where;
        const char *name;
    } wanted[] = {
        {&cuda.init, "cuInit"},
        {&cuda.attributes, "cuPointerGetAttributes"},
        {&cuda.retain, "cuDevicePrimaryCtxRetain"},
        {&cuda.push, "cuCtxPushCurrent_v2"},
        {&cuda.pop, "cuCtxPopCurrent_v2"},
        {&cuda.host_alloc, "cuMemHostAlloc"},
        {&cuda.stream_create, "cuStreamCreate"},
        {&cuda.stream_wait, "cuStreamSynchronize"},
        {&cuda.copy, "cuMemcpyAsync"},
        {&cuda.ipc_get, "cuIpcGetMemHandle"},
        {&cuda.ipc_open, "cuIpcOpenMemHandle_v2"},
        {&cuda.ipc_close, "cuIpcCloseMemHandle"},
    };
    void *library = is_loaded ? NULL : dlopen("libcuda.so.1", RTLD_NOW | flags);
    if (!library)
        return is_loaded;
    is_loaded = true;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!(*(void **)wanted[i].where = dlsym(library, wanted[i].name)))
            is_loaded = false;
    if (!is_loaded)
        dlclose(library);
    return is_loaded;
}

static bool gpu_load(int flags)
{
    spinlock_acquire(&gpu_lock);
    const bool loaded = load_cuda(flags);
    spinlock_release(&gpu_lock);
    return loaded;
}

/* Returns the device of device memory, else -1. If `start` is not NULL, stores the memory's allocation. */
static int find_device(uint64_t addr, address_t *start, size_t *size)
{
    unsigned type = 0, managed = 0;
    int device = -1;
    address_t from = 0;
    size_t bytes = 0;
    int which[] = {TYPE, MANAGED, ORDINAL, START, SIZE};
    void *values[] = {&type, &managed, &device, &from, &bytes};
    if (cuda.attributes((unsigned)ARRAY_LEN(which), which, values, (address_t)addr) || type != TYPE_DEVICE ||
        managed)
        return -1;
    if (start) {
        *start = from;
        *size = bytes;
    }
    return device >= 0 && device < DEVICES_MOST ? device : -1;
}

bool gpu_is_device_memory(uint64_t addr)
{
    return gpu_load(RTLD_NOLOAD) && find_device(addr, NULL, NULL) >= 0;
}

/* Returns the driver's buffer id of the memory; 0: the driver does not know the memory. */
static unsigned long long find_buffer_id(const void *memory)
{
    unsigned type = 0;
    unsigned long long id = 0;
    int which[] = {TYPE, BUFFER_ID};
    void *values[] = {&type, &id};
    return cuda.attributes((unsigned)ARRAY_LEN(which), which, values, (address_t)memory) || type == 0 ? 0
                                                                                                      : id;
}

/* Opens a stream in the current context and allocates a marker, which shows whether the context still exists:
 * when the program resets the context, the driver ends its streams and does not report it. */
static void open_stream(struct gpu_context *c)
{
    if (cuda.stream_create(&c->stream, STREAM_NON_BLOCKING) != 0)
        c->stream = NULL;
    else if (cuda.host_alloc(&c->marker, 1, HOST_PORTABLE) != 0)
        c->marker = NULL;
    else
        c->marker_id = find_buffer_id(c->marker);
}

/* Makes the device's context current; the caller pops it. NULL: the context cannot be used. */
static void *push_context(int device)
{
    void *previous;
    struct gpu_context *c = &devices[device];
    spinlock_acquire(&gpu_lock);
    if (c->marker && find_buffer_id(c->marker) != c->marker_id)
        *c = (struct gpu_context){0};
    bool good = c->context || cuda.retain(&c->context, device) == 0;
    good = good && cuda.push(c->context) == 0;
    if (good && !c->stream)
        open_stream(c);
    if (good && !c->stream) {
        cuda.pop(&previous);
        good = false;
    }
    spinlock_release(&gpu_lock);
    return good ? c->stream : NULL;
}

static void pop_context(void)
{
    void *previous;
    cuda.pop(&previous);
}

int gpu_export(uint64_t addr, uint64_t len, struct gpu_handle *out)
{
    address_t start;
    size_t size;
    struct ipc_handle handle;
    const int device = find_device(addr, &start, &size);
    /* Programs register whole pages: a region may extend to the end of the allocation's last page. */
    if (device < 0 || len > (size + PAGE - 1) / PAGE * PAGE - (addr - start))
        return EFAULT;
    if (cuda.ipc_get(&handle, start))
        return EOPNOTSUPP;
    memcpy(out->ipc, &handle, sizeof(handle));
    out->offset = addr - start;
    out->device = device;
    atomic_store(&gpu_used, true);
    return 0;
}

char *gpu_map(const struct gpu_handle *shared, void **map)
{
    struct ipc_handle handle;
    address_t at = 0;
    if (shared->device < 0 || shared->device >= DEVICES_MOST || !gpu_load(0) || cuda.init(0) ||
        !push_context(shared->device))
        return NULL;
    memcpy(&handle, shared->ipc, sizeof(handle));
    const bool good = cuda.ipc_open(&at, handle, LAZY_PEER_ACCESS) == 0;
    pop_context();
    if (!good)
        return NULL;
    atomic_store(&gpu_used, true);
    *map = (void *)at;
    return (char *)at + shared->offset;
}

void gpu_unmap(void *map)
{
    const int device = find_device((uintptr_t)map, NULL, NULL);
    if (device >= 0 && push_context(device)) {
        cuda.ipc_close((address_t)map);
        pop_context();
    }
}

bool gpu_involved(const char *to, const char *from)
{
    return find_device((uintptr_t)to, NULL, NULL) >= 0 || find_device((uintptr_t)from, NULL, NULL) >= 0;
}

bool gpu_move(char *to, const char *from, size_t n)
{
    int device = find_device((uintptr_t)to, NULL, NULL);
    if (device < 0)
        device = find_device((uintptr_t)from, NULL, NULL);
    if (device < 0) {
        memmove(to, from, n);
        return true;
    }
    void *stream = push_context(device);
    if (!stream)
        return false;
    const bool good =
        cuda.copy((address_t)to, (address_t)from, n, stream) == 0 && cuda.stream_wait(stream) == 0;
    pop_context();
    return good;
}

bool gpu_list_has_device_memory(const struct iovec *iov, unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        if (iov[i].iov_len && find_device((uintptr_t)iov[i].iov_base, NULL, NULL) >= 0)
            return true;
    return false;
}

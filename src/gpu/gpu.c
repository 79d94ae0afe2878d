/* gpu.c: decides whether GPU memory is in use, and forwards to the table of the GPU library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/err.h"
#include "base/tunable.h"
#include "gpu/buffers.h"
#include "gpu/host_cache.h"
#include "gpu/imports.h"
#include "gpu/library_watch.h"
#include "gpu/ops.h"
#include "gpu/run.h"
#include "gpu/temporaries.h"

enum gpu_mode { GPU_AUTO, GPU_OFF, GPU_CUDA };

static TUNABLE_CHOICE(
    gpu_mode, "GPU", GPU_AUTO, "auto|off|cuda",
    "Whether MPI calls accept GPU memory: if the program has loaded the CUDA driver library, at any time "
    "(auto), "
    "never (off), or always, where MPI_Init loads the library and fails without it (cuda).");

static COUNTER(queries, "gpu_address_queries",
               "Addresses whose kind of memory was queried from the GPU library.");
static COUNTER(copied, "gpu_copied_bytes", "Bytes copied from or to GPU memory.");

/* Values of `gpu_watched` if no library list is watched: `never`: no GPU memory is possible; `always`: a GPU
 * library is in use. */
static void *const never = NULL, *const always = (void *)&always;

void *const *gpu_watched = &never;

#define ALLOCATIONS_CACHED 64

/* Global: the GPU library, its contexts and allocations belong to the process. */
static struct {
    pthread_mutex_t lock;      /* protects all members below except `host` */
    const struct gpu_ops *ops; /* NULL: inactive */
    const char *reason;
    void (*on_activate)(void);
    uint64_t hooks;  /* nonzero: gpu_set_hooks_active was called */
    uint64_t opened; /* CLOCK_MONOTONIC in ns; with the pid it identifies this process to importers */
    struct host_cache host;
    struct gpu_imports imports;
    /* allocations whose copies were synchronised, by id modulo the length */
    uint64_t ordered[ALLOCATIONS_CACHED];
    struct gpu_export exports[ALLOCATIONS_CACHED]; /* exports of allocations, by id modulo the length */
    struct gpu_buffers buffers;
    struct gpu_temporaries temporaries;
} gpu = {.lock = PTHREAD_MUTEX_INITIALIZER, .reason = "MPI is not initialised"};

static void gpu_watch_libraries(void *const *what)
{
    __atomic_store_n(&gpu_watched, what, __ATOMIC_RELEASE);
}

static const struct gpu_ops *get_active_ops(void)
{
    return __atomic_load_n(&gpu.ops, __ATOMIC_ACQUIRE);
}

/* Uses the GPU library if the process has loaded it; else watches for libraries that are loaded from now
 * on. */
static bool gpu_activate(bool required)
{
    for (int turn = 0; turn < 8; turn++) {
        void *const *end = required ? &never : library_watch_get_list_end();
        if (gpu_cuda_ops.open(required, &gpu.reason)) {
            gpu.reason = "";
            if (gpu.on_activate)
                gpu.on_activate();
            __atomic_store_n(&gpu.ops, &gpu_cuda_ops, __ATOMIC_RELEASE);
            gpu_watch_libraries(&always);
            return true;
        }
        gpu_watch_libraries(end ? end : &never);
        if (required || (end && __atomic_load_n(end, __ATOMIC_ACQUIRE) == NULL))
            return false;
    }
    return false; /* gives up: other threads load and unload libraries continuously */
}

int gpu_open(void)
{
    bool active = true;
    pthread_mutex_lock(&gpu.lock);
    gpu.opened = clock_ns();
    if (gpu_mode.value == GPU_OFF)
        gpu.reason = "FISHPLATE_GPU=off";
    else if (!gpu.ops)
        active = gpu_activate(gpu_mode.value == GPU_CUDA);
    pthread_mutex_unlock(&gpu.lock);
    if (!active && gpu_mode.value == GPU_CUDA)
        return err_set(
            MPI_ERR_OTHER,
            "FISHPLATE_GPU=cuda is set, but CUDA cannot be used on this host: %s. Install the driver, or set "
            "FISHPLATE_GPU=auto.",
            gpu.reason);
    return 0;
}

void gpu_close(void)
{
    pthread_mutex_lock(&gpu.lock);
    gpu_watch_libraries(&never);
    if (gpu.ops) {
        gpu_imports_clear(&gpu.imports, gpu.ops);
        gpu_temporaries_clear(&gpu.temporaries, gpu.ops);
        gpu_buffers_clear(&gpu.buffers, gpu.ops);
        gpu.ops->close();
    }
    memset(gpu.ordered, 0, sizeof(gpu.ordered));
    memset(gpu.exports, 0, sizeof(gpu.exports));
    __atomic_store_n(&gpu.ops, NULL, __ATOMIC_RELEASE);
    host_cache_forget(&gpu.host, 0, SIZE_MAX);
    gpu.reason = "MPI is finalised";
    pthread_mutex_unlock(&gpu.lock);
}

bool gpu_is_active(void)
{
    return get_active_ops() != NULL;
}

bool gpu_is_off(void)
{
    return gpu_mode.value == GPU_OFF;
}

const char *gpu_reason_inactive(void)
{
    return gpu.reason;
}

void gpu_set_activation_callback(void (*fn)(void))
{
    gpu.on_activate = fn;
}

void gpu_set_hooks_active(void)
{
    __atomic_store_n(&gpu.hooks, 1, __ATOMIC_RELEASE);
}

void gpu_forget_range(void *unused, uintptr_t start, size_t size)
{
    (void)unused;
    host_cache_forget(&gpu.host, start, size);
}

enum gpu_memory_kind gpu_classify_address(const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    if (host_cache_unit(at) == 0 || host_cache_has(&gpu.host, at))
        return GPU_MEMORY_HOST;
    const struct gpu_ops *ops = get_active_ops();
    if (!ops) { /* the program has loaded a library, which may be the GPU library */
        pthread_mutex_lock(&gpu.lock);
        if (!gpu.ops)
            gpu_activate(false);
        pthread_mutex_unlock(&gpu.lock);
        if (!(ops = get_active_ops()))
            return GPU_MEMORY_HOST;
    }
    struct gpu_range range;
    const uint64_t ticket = host_cache_begin(&gpu.host);
    const enum gpu_memory_kind kind = ops->find_range(at, &range) ? range.kind : GPU_MEMORY_HOST;
    counter_add(&queries, 1);
    if (kind == GPU_MEMORY_HOST && __atomic_load_n(&gpu.hooks, __ATOMIC_ACQUIRE))
        host_cache_add(&gpu.host, at, ticket);
    return kind;
}

int gpu_find_range(const void *address, struct gpu_range *out)
{
    const struct gpu_ops *ops = get_active_ops();
    if (!ops || !ops->find_range((uintptr_t)address, out))
        return err_set(MPI_ERR_BUFFER, "%p is not GPU memory", address);
    return 0;
}

bool gpu_is_accessible(const void *address)
{
    struct gpu_range range;
    const struct gpu_ops *ops = get_active_ops();
    return ops && ops->find_range((uintptr_t)address, &range);
}

int gpu_check_buffer(const void *address, size_t size)
{
    struct gpu_range range;
    const struct gpu_ops *ops = get_active_ops();
    const uintptr_t end = (uintptr_t)address + size;
    uintptr_t at = (uintptr_t)address;
    if (!ops || !ops->find_range(at, &range))
        return 0;
    /* Memory without a context: a buffer may extend over neighbouring mappings. */
    while (end - range.start > range.size && !range.context && range.size > 0) {
        at = range.start + range.size;
        if (!ops->find_range(at, &range))
            break;
    }
    if (end - range.start <= range.size && at >= range.start)
        return 0;
    return err_set(MPI_ERR_BUFFER,
                   "The buffer of %zu bytes at %p does not end within its GPU allocation of %zu bytes at %p. "
                   "A buffer in GPU "
                   "memory must lie within one allocation.",
                   size, address, range.size, (void *)range.start);
}

int gpu_start_copy(void *to, const void *from, size_t size, struct gpu_transfer *out)
{
    counter_add(&copied, size);
    return gpu.ops->start_copy(to, from, size, out);
}

int gpu_poll_copy(struct gpu_transfer *transfer)
{
    return gpu.ops->poll_copy(transfer);
}

int gpu_copy(void *to, const void *from, size_t size)
{
    struct gpu_transfer transfer;
    if (size == 0)
        return 0;
    if (!gpu_memory_is_device(to) && !gpu_memory_is_device(from)) {
        memmove(to, from, size);
        return 0;
    }
    int rc = gpu_start_copy(to, from, size, &transfer);
    return rc ? rc : gpu.ops->wait_copy(&transfer);
}

int gpu_copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows)
{
    counter_add(&copied, width * rows);
    return width && rows ? gpu.ops->copy_rows(to, to_pitch, from, from_pitch, width, rows) : 0;
}

void *gpu_get_buffer(size_t size)
{
    pthread_mutex_lock(&gpu.lock);
    void *buffer = gpu_buffers_get(&gpu.buffers, gpu.ops, size);
    pthread_mutex_unlock(&gpu.lock);
    return buffer;
}

void gpu_put_buffer(void *buffer, size_t size)
{
    pthread_mutex_lock(&gpu.lock);
    gpu_buffers_put(&gpu.buffers, gpu.ops, buffer, size);
    pthread_mutex_unlock(&gpu.lock);
}

void *gpu_get_staging(void)
{
    return gpu_get_buffer(GPU_STAGING_SIZE);
}

void gpu_put_staging(void *buffer)
{
    gpu_put_buffer(buffer, GPU_STAGING_SIZE);
}

void *gpu_get_temporary(size_t size, const void *near)
{
    pthread_mutex_lock(&gpu.lock);
    void *const memory = gpu_temporaries_get(&gpu.temporaries, gpu.ops, size, near);
    pthread_mutex_unlock(&gpu.lock);
    return memory;
}

void gpu_put_temporary(void *memory)
{
    pthread_mutex_lock(&gpu.lock);
    gpu_temporaries_put(&gpu.temporaries, gpu.ops, memory);
    pthread_mutex_unlock(&gpu.lock);
}

int gpu_export_range(const struct gpu_range *range, struct gpu_export *out)
{
    if (!range->is_exportable)
        return ERR_AGAIN;
    struct gpu_export exported = {.id = range->id,
                                  .start = range->start,
                                  .size = range->size,
                                  .pid = (int32_t)getpid(),
                                  .device = range->device,
                                  .opened = gpu.opened,
                                  .fd = -1};
    int rc = 0;
    pthread_mutex_lock(&gpu.lock);
    struct gpu_export *cached = &gpu.exports[range->id % ALLOCATIONS_CACHED];
    if (cached->id == exported.id && cached->start == exported.start && cached->pid == exported.pid) {
        *out = *cached;
    } else if ((rc = gpu.ops->export_range(range, &exported)) == 0) {
        *out = exported;
        if (exported.fd < 0) /* not cached: a descriptor would keep freed memory allocated */
            *cached = exported;
    }
    pthread_mutex_unlock(&gpu.lock);
    return rc;
}

int gpu_import_range(const struct gpu_export *exported, void **out)
{
    pthread_mutex_lock(&gpu.lock);
    int rc = gpu_imports_get(&gpu.imports, gpu.ops, exported, out);
    pthread_mutex_unlock(&gpu.lock);
    return rc;
}

void gpu_release_import(void *address)
{
    pthread_mutex_lock(&gpu.lock);
    gpu_imports_put(&gpu.imports, gpu.ops, address);
    pthread_mutex_unlock(&gpu.lock);
}

/* The range of a dma-buf descriptor is extended to whole pages of the host. */
int gpu_open_dmabuf(const void *address, size_t size, int *fd, uint64_t *offset)
{
    const uintptr_t page = 4096, start = (uintptr_t)address & ~(page - 1);
    const uintptr_t end = ((uintptr_t)address + size + page - 1) & ~(page - 1);
    int rc = gpu.ops->open_dmabuf(start, end - start, fd);
    if (rc == 0)
        *offset = (uintptr_t)address - start;
    return rc;
}

int gpu_synchronize_copies(const void *address)
{
    struct gpu_range range;
    const struct gpu_ops *ops = get_active_ops();
    if (!ops || !ops->find_range((uintptr_t)address, &range))
        return 0;
    uint64_t *ordered = &gpu.ordered[range.id % ALLOCATIONS_CACHED];
    if (__atomic_load_n(ordered, __ATOMIC_RELAXED) == range.id)
        return 0;
    bool lasts;
    const int rc = ops->synchronize_copies(range.start, &lasts);
    if (rc == 0 && lasts)
        __atomic_store_n(ordered, range.id, __ATOMIC_RELAXED);
    return rc;
}

bool gpu_find_current(char pci[16])
{
    const struct gpu_ops *ops = get_active_ops();
    return ops && ops->find_current(pci);
}

bool gpu_serializes_kernels(void)
{
    /* -1: not queried yet; the value cannot change after the first context is created */
    static int takes_turns = -1;
    struct gpu_device device;
    int known = __atomic_load_n(&takes_turns, __ATOMIC_RELAXED);
    if (known < 0) {
        known = gpu.ops->describe_device(0, &device) != 0 || !device.has_mps;
        __atomic_store_n(&takes_turns, known, __ATOMIC_RELAXED);
    }
    return known;
}

static int list_devices(const struct gpu_ops *ops, struct gpu_device **devices, size_t *count, int *driver,
                        const char **why)
{
    const int found = ops->count_devices();
    *devices = calloc((size_t)found + 1, sizeof(**devices));
    if (!*devices) {
        *why = "out of memory";
        return MPI_ERR_NO_MEM;
    }
    for (int i = 0; i < found; i++)
        ops->describe_device(i, &(*devices)[i]);
    *count = (size_t)found;
    *driver = ops->driver_version();
    return 0;
}

int gpu_list_devices(struct gpu_device **devices, size_t *count, int *driver, const char **why)
{
    int rc = MPI_ERR_OTHER;
    *devices = NULL;
    *count = 0;
    *driver = 0;
    pthread_mutex_lock(&gpu.lock);
    if (gpu_mode.value == GPU_OFF) {
        *why = "FISHPLATE_GPU=off";
    } else if (gpu.ops) {
        rc = list_devices(gpu.ops, devices, count, driver, why);
    } else if (gpu_cuda_ops.open(true, why)) {
        rc = list_devices(&gpu_cuda_ops, devices, count, driver, why);
        gpu_cuda_ops.close();
    }
    pthread_mutex_unlock(&gpu.lock);
    return rc;
}

int gpu_run_kernel(const char *name, const void *memory, void **arguments, uint64_t blocks, unsigned threads)
{
    return gpu.ops->run_kernel(name, memory, arguments, blocks, threads);
}

/* cuda.c: GPU memory by the CUDA driver library, which is loaded at run time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

#include <dlfcn.h>
#include <mpi.h>

#include "base/err.h"
#include "base/util.h"

struct cuda_state cuda = {.lock = PTHREAD_MUTEX_INITIALIZER};

int cuda_report_error(cuda_result result, const char *what)
{
    const char *name = NULL, *text = NULL;
    cuda.call.error_name(result, &name);
    cuda.call.error_string(result, &text);
    return err_set(result == CUDA_OUT_OF_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER,
                   "CUDA could not %s: %s (%s)", what, text ? text : "unknown error", name ? name : "?");
}

static bool load_functions(const char **why)
{
#define CUDA_LOAD(member, name, parameters)                   \
    *(void **)&cuda.call.member = dlsym(cuda.library, #name); \
    if (!cuda.call.member) {                                  \
        *why = "libcuda.so.1 is too old: it has no " #name;   \
        return false;                                         \
    }
    CUDA_FUNCTIONS(CUDA_LOAD)
#undef CUDA_LOAD
    return true;
}

/* Does not unload libcuda: contexts of the program still contain the streams. */
static void cuda_close(void)
{
    cuda_forget_queues();
    cuda.library = NULL;
}

static void unload_library(void)
{
    dlclose(cuda.library);
    cuda.library = NULL;
}

static bool cuda_open(bool required, const char **why)
{
    cuda.library = dlopen("libcuda.so.1", RTLD_NOW | (required ? 0 : RTLD_NOLOAD));
    if (!cuda.library) {
        *why = required ? "libcuda.so.1 cannot be loaded" : "the program has not loaded libcuda.so.1";
        return false;
    }
    int count = 0;
    if (!load_functions(why)) {
        unload_library();
        return false;
    }
    /* Without `required` the program initialises CUDA itself when it uses it; until then there is no GPU
     * memory. */
    if (required &&
        (cuda.call.init(0) != CUDA_OK || cuda.call.device_count(&count) != CUDA_OK || count == 0)) {
        *why = "the driver finds no GPU";
        unload_library();
        return false;
    }
    return true;
}

/* Limits *range to one mapping. For memory of cuMemCreate the driver reports the whole reservation; parts of
 * a reservation may be mapped, each from its own allocation. The buffer id is that of the allocation (on an
 * H200, driver 580), so another allocation mapped at the same address has another id. */
static void limit_range_to_mapping(uintptr_t address, struct gpu_range *range)
{
    void *pool = NULL;
    uintptr_t start = 0;
    size_t size = 0;
    enum cuda_pointer_attribute attributes[] = {CUDA_POINTER_POOL, CUDA_POINTER_MAPPING_START,
                                                CUDA_POINTER_MAPPING_SIZE};
    void *values[] = {&pool, &start, &size};
    const cuda_result rc = cuda.call.pointer_attributes(COUNT_OF(attributes), attributes, values, address);
    if (rc != CUDA_OK) {
        range->is_exportable = false; /* an older driver does not report the allocations */
    } else if (!pool) {
        range->start = size > 0 ? start : address; /* size 0: a part of the reservation that is not mapped */
        range->size = size;
    }
}

bool cuda_find_range(uintptr_t address, struct gpu_range *out)
{
    unsigned type = 0, managed = 0, handle_types = 0;
    int device = -1, ipc = 0;
    unsigned long long id = 0;
    cuda_context context = NULL;
    uintptr_t start = 0;
    size_t size = 0;
    enum cuda_pointer_attribute attributes[] = {
        CUDA_POINTER_MEMORY_TYPE, CUDA_POINTER_IS_MANAGED,     CUDA_POINTER_DEVICE_ORDINAL,
        CUDA_POINTER_BUFFER_ID,   CUDA_POINTER_CONTEXT,        CUDA_POINTER_RANGE_START,
        CUDA_POINTER_RANGE_SIZE,  CUDA_POINTER_IS_IPC_CAPABLE, CUDA_POINTER_HANDLE_TYPES,
    };
    void *values[] = {&type, &managed, &device, &id, &context, &start, &size, &ipc, &handle_types};
    if (cuda.call.pointer_attributes(COUNT_OF(attributes), attributes, values, address) != CUDA_OK ||
        type == CUDA_MEMORY_UNKNOWN)
        return false;
    *out = (struct gpu_range){
        .start = start,
        .size = size,
        .id = id,
        .context = context,
        .device = device,
        .kind = managed                      ? GPU_MEMORY_MANAGED
                : type == CUDA_MEMORY_DEVICE ? GPU_MEMORY_DEVICE
                                             : GPU_MEMORY_HOST,
        .is_exportable = ipc != 0 || handle_types & CUDA_HANDLE_POSIX_FD,
        .by_descriptor = ipc == 0,
    };
    if (out->kind == GPU_MEMORY_DEVICE && ipc == 0)
        limit_range_to_mapping(address, out);
    return true;
}

bool cuda_knows_address(const void *address)
{
    struct gpu_range range;
    return cuda_find_range((uintptr_t)address, &range);
}

const struct gpu_ops gpu_cuda_ops = {
    .open = cuda_open,
    .close = cuda_close,
    .find_range = cuda_find_range,
    .start_copy = cuda_start_copy,
    .poll_copy = cuda_poll_copy,
    .wait_copy = cuda_wait_copy,
    .copy_rows = cuda_copy_rows,
    .alloc_pinned = cuda_alloc_pinned,
    .free_pinned = cuda_free_pinned,
    .find_context = cuda_find_context,
    .alloc_device = cuda_alloc_device,
    .free_device = cuda_free_device,
    .export_range = cuda_export_range,
    .map_export = cuda_map_export,
    .unmap_export = cuda_unmap_export,
    .open_dmabuf = cuda_open_dmabuf,
    .synchronize_copies = cuda_synchronize_copies,
    .run_kernel = cuda_run_kernel,
    .find_current = cuda_find_current,
    .count_devices = cuda_count_devices,
    .describe_device = cuda_describe_device,
    .driver_version = cuda_driver_version,
};

/* cuda_abi.h: the part of the CUDA driver's binary interface that this library uses: types, constants and
 * the functions of libcuda.so.1 by their exported names. Building needs no CUDA headers. tests/gpu/abi.c
 * compares this file with the vendor's cuda.h where that is installed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_CUDA_ABI_H
#define FP_GPU_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int cuda_result;
typedef int cuda_device;
typedef uintptr_t cuda_pointer; /* CUdeviceptr: an address, of host memory too (unified addressing) */
typedef struct cuda_context *cuda_context;
typedef struct cuda_stream *cuda_stream;
typedef struct cuda_event *cuda_event;
typedef struct cuda_module *cuda_module;
typedef struct cuda_function *cuda_function;
typedef unsigned long long cuda_vmm_handle; /* CUmemGenericAllocationHandle */

enum {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_DEINITIALIZED = 4,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_PEERS_UNSUPPORTED = 217, /* CUDA_ERROR_PEER_ACCESS_UNSUPPORTED */
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500, /* a module has no such function */
    CUDA_NOT_READY = 600,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_NOT_SUPPORTED = 801,
};

enum cuda_pointer_attribute {
    CUDA_POINTER_CONTEXT = 1,
    CUDA_POINTER_MEMORY_TYPE = 2, /* enum cuda_memory_type as unsigned; 0: memory that CUDA does not know */
    CUDA_POINTER_SYNC_MEMOPS =
        6, /* settable: synchronous copies of this memory return only when they are complete */
    CUDA_POINTER_BUFFER_ID = 7, /* unsigned long long; differs for each allocation of a process */
    CUDA_POINTER_IS_MANAGED = 8,
    CUDA_POINTER_DEVICE_ORDINAL = 9,
    CUDA_POINTER_IS_IPC_CAPABLE = 10, /* exportable by cuIpcGetMemHandle */
    CUDA_POINTER_RANGE_START = 11,    /* of the allocation, or of the reservation of cuMemAddressReserve */
    CUDA_POINTER_RANGE_SIZE = 12,
    CUDA_POINTER_HANDLE_TYPES = 14, /* bits of enum cuda_handle_type: how VMM memory can be exported */
    CUDA_POINTER_POOL = 17,         /* pool of memory of cuMemAllocAsync; NULL for other memory */
    /* size of one cuMemMap mapping; RANGE_* describe the reservation that contains it */
    CUDA_POINTER_MAPPING_SIZE = 18,
    CUDA_POINTER_MAPPING_START = 19,
};

enum cuda_memory_type { CUDA_MEMORY_UNKNOWN = 0, CUDA_MEMORY_HOST = 1, CUDA_MEMORY_DEVICE = 2 };
enum cuda_handle_type { CUDA_HANDLE_POSIX_FD = 1 };

enum cuda_device_attribute {
    CUDA_DEVICE_PCI_BUS = 33,
    CUDA_DEVICE_PCI_DEVICE = 34,
    CUDA_DEVICE_PCI_DOMAIN = 50,
    CUDA_DEVICE_COMPUTE_MAJOR = 75,
    CUDA_DEVICE_COMPUTE_MINOR = 76,
    CUDA_DEVICE_GPU_DIRECT_RDMA = 116,
    CUDA_DEVICE_DMA_BUF = 124,
    CUDA_DEVICE_MPS =
        133, /* contexts are shared with other processes by MPS; drivers before 12.2 do not know it */
};

/* A default stream waits for the work of the legacy default stream that was issued before; a non-blocking
 * one does not. */
enum { CUDA_STREAM_DEFAULT = 0, CUDA_STREAM_NON_BLOCKING = 1 };
enum { CUDA_EVENT_DISABLE_TIMING = 2 };
enum { CUDA_IPC_LAZY_PEER_ACCESS = 1 };
enum { CUDA_RANGE_DMA_BUF_FD = 1 };
enum { CUDA_HOST_PORTABLE = 1 };

struct cuda_ipc_handle {
    unsigned char opaque[64];
};

/* CUmemLocation, CUmemAllocationProp, CUmemAccessDesc. */
enum { CUDA_LOCATION_DEVICE = 1, CUDA_VMM_PINNED = 1, CUDA_VMM_READ_WRITE = 3 };
struct cuda_vmm_location {
    int type, id;
};
struct cuda_vmm_properties {
    int type;         /* CUDA_VMM_PINNED */
    int handle_types; /* bits of enum cuda_handle_type */
    struct cuda_vmm_location location;
    void *windows;
    struct {
        unsigned char compression, direct_rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};
struct cuda_vmm_access {
    struct cuda_vmm_location location;
    int flags; /* CUDA_VMM_READ_WRITE */
};

/* CUDA_MEMCPY2D, version 2 of the interface. */
struct cuda_copy_2d {
    size_t source_x, source_y;
    unsigned source_type; /* enum cuda_memory_type */
    const void *source_host;
    cuda_pointer source_device;
    void *source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    unsigned target_type;
    void *target_host;
    cuda_pointer target_device;
    void *target_array;
    size_t target_pitch;
    size_t width, height;
};

/* X(member of struct cuda_functions, exported name, parameters). A libcuda.so.1 that lacks one of these
 * functions is not used; the message names the function. */
#define CUDA_FUNCTIONS(X)                                                                                   \
    X(init, cuInit, (unsigned flags))                                                                       \
    X(driver_version, cuDriverGetVersion, (int *version))                                                   \
    X(error_name, cuGetErrorName, (cuda_result result, const char **name))                                  \
    X(error_string, cuGetErrorString, (cuda_result result, const char **text))                              \
    X(device_count, cuDeviceGetCount, (int *count))                                                         \
    X(device_get, cuDeviceGet, (cuda_device * device, int ordinal))                                         \
    X(device_name, cuDeviceGetName, (char *name, int size, cuda_device device))                             \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, cuda_device device))              \
    X(device_memory, cuDeviceTotalMem_v2, (size_t * bytes, cuda_device device))                             \
    X(primary_state, cuDevicePrimaryCtxGetState, (cuda_device device, unsigned *flags, int *active))        \
    X(primary_retain, cuDevicePrimaryCtxRetain, (cuda_context * context, cuda_device device))               \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (cuda_device device))                                  \
    X(context_push, cuCtxPushCurrent_v2, (cuda_context context))                                            \
    X(context_pop, cuCtxPopCurrent_v2, (cuda_context * context))                                            \
    X(pointer_attributes, cuPointerGetAttributes,                                                           \
      (unsigned count, enum cuda_pointer_attribute *attributes, void **values, cuda_pointer pointer))       \
    X(pointer_set, cuPointerSetAttribute,                                                                   \
      (const void *value, enum cuda_pointer_attribute attribute, cuda_pointer pointer))                     \
    X(host_alloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                            \
    X(host_free, cuMemFreeHost, (void *memory))                                                             \
    X(device_alloc, cuMemAlloc_v2, (cuda_pointer * memory, size_t bytes))                                   \
    X(device_free, cuMemFree_v2, (cuda_pointer memory))                                                     \
    X(copy_async, cuMemcpyAsync,                                                                            \
      (cuda_pointer target, cuda_pointer source, size_t bytes, cuda_stream stream))                         \
    X(copy_2d_async, cuMemcpy2DAsync_v2, (const struct cuda_copy_2d *copy, cuda_stream stream))             \
    X(stream_create, cuStreamCreate, (cuda_stream * stream, unsigned flags))                                \
    X(stream_wait, cuStreamSynchronize, (cuda_stream stream))                                               \
    X(event_create, cuEventCreate, (cuda_event * event, unsigned flags))                                    \
    X(event_destroy, cuEventDestroy_v2, (cuda_event event))                                                 \
    X(event_record, cuEventRecord, (cuda_event event, cuda_stream stream))                                  \
    X(event_query, cuEventQuery, (cuda_event event))                                                        \
    X(ipc_export, cuIpcGetMemHandle, (struct cuda_ipc_handle * handle, cuda_pointer pointer))               \
    X(ipc_open, cuIpcOpenMemHandle_v2,                                                                      \
      (cuda_pointer * pointer, struct cuda_ipc_handle handle, unsigned flags))                              \
    X(ipc_close, cuIpcCloseMemHandle, (cuda_pointer pointer))                                               \
    X(module_load, cuModuleLoadData, (cuda_module * module, const void *image))                             \
    X(module_function, cuModuleGetFunction,                                                                 \
      (cuda_function * function, cuda_module module, const char *name))                                     \
    X(launch, cuLaunchKernel,                                                                               \
      (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,         \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **arguments,     \
       void **extra))                                                                                       \
    X(context_device, cuCtxGetDevice, (cuda_device * device))                                               \
    X(vmm_retain, cuMemRetainAllocationHandle, (cuda_vmm_handle * handle, void *address))                   \
    X(vmm_release, cuMemRelease, (cuda_vmm_handle handle))                                                  \
    X(vmm_export, cuMemExportToShareableHandle,                                                             \
      (void *shared, cuda_vmm_handle handle, int type, unsigned long long flags))                           \
    X(vmm_import, cuMemImportFromShareableHandle, (cuda_vmm_handle * handle, void *shared, int type))       \
    X(vmm_reserve, cuMemAddressReserve,                                                                     \
      (cuda_pointer * address, size_t size, size_t alignment, cuda_pointer wanted,                          \
       unsigned long long flags))                                                                           \
    X(vmm_unreserve, cuMemAddressFree, (cuda_pointer address, size_t size))                                 \
    X(vmm_map, cuMemMap,                                                                                    \
      (cuda_pointer address, size_t size, size_t offset, cuda_vmm_handle handle, unsigned long long flags)) \
    X(vmm_unmap, cuMemUnmap, (cuda_pointer address, size_t size))                                           \
    X(vmm_access, cuMemSetAccess,                                                                           \
      (cuda_pointer address, size_t size, const struct cuda_vmm_access *access, size_t count))              \
    X(range_handle, cuMemGetHandleForAddressRange,                                                          \
      (void *handle, cuda_pointer pointer, size_t bytes, int handle_type, unsigned long long flags))

struct cuda_functions {
#define CUDA_MEMBER(member, name, parameters) cuda_result(*member) parameters;
    CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

#endif

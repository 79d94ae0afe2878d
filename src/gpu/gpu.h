/* gpu.h: GPU memory as the rest of the library sees it: which memory an address belongs to, copies to and
 * from it, memory shared with other processes, and descriptors for adapters. CUDA is the only
 * implementation (cuda.c); nothing outside src/gpu names it.
 *
 * A process without a GPU library pays one load and one predictable branch for each buffer
 * (gpu_memory_is_device).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_GPU_H
#define FP_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpu_memory_kind {
    GPU_MEMORY_HOST,    /* host memory, including memory that the GPU library has pinned */
    GPU_MEMORY_MANAGED, /* processors and GPUs can access it; pages migrate */
    GPU_MEMORY_DEVICE,  /* only a GPU can access the memory */
};

/* An allocation of device memory. */
struct gpu_range {
    uintptr_t start;
    size_t size; /* 0: a reserved address that is not mapped */
    uint64_t id; /* differs for each allocation of this process, also if the address is used again */
    void *context;
    int device;
    enum gpu_memory_kind kind;
    bool is_exportable; /* gpu_export_range can export it */
    bool by_descriptor; /* exported as a file descriptor */
};

/* Identifies memory that another process of the same node may map; sent without conversion. */
struct gpu_export {
    uint8_t handle[64];
    uint64_t id, start, size;
    int32_t pid, device;
    uint64_t opened; /* CLOCK_MONOTONIC of gpu_open: differs for a later process with the same pid */
    int32_t fd;      /* descriptor in the exporting process, if the memory is exported as one; else -1 */
    int32_t unused;
};

/* *gpu_watched is NULL if this process cannot have GPU memory. gpu_watched points to a constant or to the end
 * of the dynamic linker's list of libraries, which becomes non-NULL when the program loads a library
 * (library_watch.h). Written under a lock of gpu.c. */
extern void *const *gpu_watched;

/* Reads FISHPLATE_GPU. Returns 0, or an error class if `cuda` was required and cannot be used. */
int gpu_open(void);
void gpu_close(void);

/* True if the GPU library is in use in this process. */
bool gpu_is_active(void);

/* False if this process cannot have GPU memory. */
static inline bool gpu_may_have_memory(void)
{
    return __builtin_expect(
        __atomic_load_n(__atomic_load_n(&gpu_watched, __ATOMIC_RELAXED), __ATOMIC_RELAXED) != NULL, 0);
}

/* The kind of memory at `address`. Costs a GPU library call unless the address is in the cache of host
 * memory. */
enum gpu_memory_kind gpu_classify_address(const void *address);

/* True if processors must not touch the memory at `address`. */
static inline bool gpu_memory_is_device(const void *address)
{
    return gpu_may_have_memory() && gpu_classify_address(address) == GPU_MEMORY_DEVICE;
}

/* Finds the allocation that contains `address`. Returns 0, or MPI_ERR_BUFFER if there is none. */
int gpu_find_range(const void *address, struct gpu_range *out);

/* True if the GPU library knows the memory: GPUs copy it without the help of a processor. */
bool gpu_is_accessible(const void *address);

/* MPI_ERR_BUFFER unless all `size` bytes of device memory belong to one allocation, or to neighbouring
 * ones that the program has mapped itself. */
int gpu_check_buffer(const void *address, size_t size);

/* Copies between memory of any kinds; returns after the last byte has arrived. */
int gpu_copy(void *to, const void *from, size_t size);

/* Copies `rows` rows of `width` bytes, which start every `to_pitch` and `from_pitch` bytes. */
int gpu_copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows);

/* A copy in progress. */
struct gpu_transfer {
    void *queue, *event;
};

int gpu_start_copy(void *to, const void *from, size_t size, struct gpu_transfer *out);
/* 0: complete; ERR_AGAIN: in progress; else an error class. The transfer has ended unless ERR_AGAIN is
 * returned. */
int gpu_poll_copy(struct gpu_transfer *transfer);

/* A buffer of pinned host memory for copies in pieces; ordinary memory if the GPU library has none left.
 * NULL: out of memory. */
void *gpu_get_staging(void);
void gpu_put_staging(void *buffer);
#define GPU_STAGING_SIZE ((size_t)512 << 10)

/* Host memory for a copy of a whole GPU buffer: pinned up to 64 MiB. NULL: out of memory. */
void *gpu_get_buffer(size_t size);
void gpu_put_buffer(void *buffer, size_t size);

/* Device memory on the GPU of `near` for temporary data. NULL: none left. */
void *gpu_get_temporary(size_t size, const void *near);
void gpu_put_temporary(void *memory);

/* out[i] = left[i] op right[i] by a GPU, for `count` elements of `size` bytes that lie in device or pinned
 * memory; `kernel` names operator and type, "sum_I32". ERR_AGAIN: no such kernel, or an operand that is
 * not aligned to `alignment`. */
int gpu_reduce(const char *kernel, const void *left, const void *right, void *out, size_t count,
               size_t alignment);

/* Copies `count` blocks between the device memory at `base` and dense memory (device or staging).
 * `segments` lies in a staging buffer. ERR_AGAIN: the staging buffer is not pinned. */
struct gpu_segment;
int gpu_gather(void *dense, const void *base, const struct gpu_segment *segments, size_t count);
int gpu_scatter(void *base, const void *dense, const struct gpu_segment *segments, size_t count);

/* Exports memory to other processes of this node. ERR_AGAIN: this kind of memory cannot be exported; copy it
 * through host memory. The caller closes out->fd, unless it is -1, after the other process has mapped the
 * memory. */
int gpu_export_range(const struct gpu_range *range, struct gpu_export *out);
/* Maps exported memory; mappings are cached and bounded in number. Each call needs a gpu_release_import. */
int gpu_import_range(const struct gpu_export *exported, void **out);
void gpu_release_import(void *address);

/* Opens a dma-buf descriptor of whole pages around [address, address + size), for ibv_reg_dmabuf_mr. *offset:
 * offset of `address` in the descriptor. ERR_AGAIN: the device does not support dma-buf. The caller closes
 * *fd. */
int gpu_open_dmabuf(const void *address, size_t size, int *fd, uint64_t *offset);

/* Waits for copies to the allocation that the program has issued by synchronous functions of the GPU library,
 * which may return before the copy is complete, and makes later synchronous copies wait for their completion.
 * For memory that another process or an adapter is about to read; costs GPU calls once for each
 * allocation. */
int gpu_synchronize_copies(const void *address);

/* Called by the memory hooks for ranges that are unmapped: removes them from the cache of host memory.
 * Without hooks (gpu_set_hooks_active was not called) nothing is cached. Async-signal-safe. */
void gpu_forget_range(void *unused, uintptr_t start, size_t size);
void gpu_set_hooks_active(void);
/* `fn` is called once, when GPU memory comes into use, which may be long after gpu_open. NULL: no
 * callback. */
void gpu_set_activation_callback(void (*fn)(void));

/* True for FISHPLATE_GPU=off: all buffers are treated as host memory. False before MPI_Init. */
bool gpu_is_off(void);

/* The PCI address ("0000:18:00.0") of the device whose context is current in this thread. False: there is
 * none. */
bool gpu_find_current(char pci[16]);

/* False if kernels of several processes run at the same time on the GPUs of this node (CUDA's MPS):
 * otherwise two processes that use the compute engine of a GPU in turns wait 140 us for each turn. */
bool gpu_serializes_kernels(void);

/* Properties of a GPU that `fishplate info` prints. */
struct gpu_device {
    char name[96], pci[16]; /* "0000:18:00.0" */
    uint64_t bytes;
    int compute_major, compute_minor;
    bool has_dmabuf, has_direct_rdma;
    bool has_mps; /* CUDA's Multi-Process Service runs: kernels of several processes run at the same time */
};
/* The devices of this machine, also if the program does not use GPU memory: the GPU library is loaded for the
 * call. *driver is the CUDA version that the driver supports, 13000 for 13.0. Returns 0, or an MPI error
 * class with the reason in *why. The caller frees *devices. */
int gpu_list_devices(struct gpu_device **devices, size_t *count, int *driver, const char **why);
/* The reason why GPU memory is not in use ("FISHPLATE_GPU=off"), or "" if it is. */
const char *gpu_reason_inactive(void);

#endif

/* cuda.h: what the files of the CUDA implementation share: the loaded functions and the queues, one for
 * each context. Contexts are those of the program: memory that belongs to a context is copied in that
 * context, other memory (pools, VMM) in the primary context of its device, which the program uses too. No
 * context is created.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_GPU_CUDA_H
#define FP_GPU_CUDA_H

#include <pthread.h>

#include "gpu/cuda_abi.h"
#include "gpu/ops.h"

#define CUDA_CONTEXTS_MOST 64
#define CUDA_EVENTS_MOST   64 /* idle events that a queue caches */

/* A context and the stream, events and kernels that this library uses in it. The stream does not wait for
 * streams that the program created: the program synchronises before it passes a buffer to MPI. */
struct cuda_queue {
    cuda_context context; /* NULL: this entry is free */
    cuda_stream stream;
    cuda_module kernels; /* NULL: not loaded yet */
    void *marker;        /* pinned memory that exists until the context is reset or destroyed; or NULL */
    uint64_t marker_id;  /* buffer id of `marker` */
    cuda_event idle[CUDA_EVENTS_MOST];
    int idle_count;
    int device; /* device whose primary context was retained, or -1 */
};

/* Global: the CUDA library and its contexts belong to the process. */
struct cuda_state {
    void *library;
    struct cuda_functions call;
    pthread_mutex_t lock; /* protects `queues` */
    struct cuda_queue queues[CUDA_CONTEXTS_MOST];
    int queue_count; /* entries that are or were in use */
};
extern struct cuda_state cuda;

/* Defined in cuda.c. */
int cuda_report_error(cuda_result result, const char *what);
bool cuda_find_range(uintptr_t address, struct gpu_range *out);
/* True if the driver knows the address: device memory, or host memory that it pinned or registered. */
bool cuda_knows_address(const void *address);

/* Defined in cuda_queue.c; the caller holds cuda.lock. */
struct cuda_queue *cuda_get_copy_queue(const void *to, const void *from);
/* Any queue: that of a context that was used before, else of the current device or another one that the
 * program uses. */
struct cuda_queue *cuda_get_any_queue(void);
void cuda_forget_queues(void);
/* Records an event that completes when all work issued so far to the queue's stream is complete. */
cuda_result cuda_record_event(struct cuda_queue *queue, struct gpu_transfer *out);
void cuda_put_event(struct gpu_transfer *transfer); /* the caller does not hold cuda.lock */

/* Defined in cuda_copy.c. */
int cuda_start_copy(void *to, const void *from, size_t size, struct gpu_transfer *out);
int cuda_poll_copy(struct gpu_transfer *transfer);
int cuda_wait_copy(struct gpu_transfer *transfer);
int cuda_copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows);

/* Defined in cuda_memory.c. */
void *cuda_alloc_pinned(size_t size);
void cuda_free_pinned(void *memory);
void *cuda_find_context(const void *memory);
void *cuda_alloc_device(const void *near, size_t size);
void cuda_free_device(void *memory);
int cuda_open_dmabuf(uintptr_t start, size_t size, int *fd);
int cuda_synchronize_copies(uintptr_t address, bool *lasts);

/* Defined in cuda_share.c. */
int cuda_export_range(const struct gpu_range *range, struct gpu_export *out);
int cuda_map_export(const struct gpu_export *exported, void **out);
void cuda_unmap_export(const struct gpu_export *exported, void *address);

/* Defined in cuda_kernel.c. */
int cuda_run_kernel(const char *name, const void *memory, void **arguments, uint64_t blocks,
                    unsigned threads);

/* Defined in cuda_device.c. */
bool cuda_find_current(char pci[16]);
int cuda_count_devices(void);
int cuda_describe_device(int index, struct gpu_device *out);
int cuda_driver_version(void);

#endif

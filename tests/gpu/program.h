/* program.h: use of CUDA by a test program that looks up the driver's functions by name, so that it is not
 * linked with a driver. The program exits with status 77 if there is no driver or no GPU.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_GPU_PROGRAM_H
#define FP_TESTS_GPU_PROGRAM_H

#include "cuda_program.h"

struct program_cuda {
    cuda_result (*init)(unsigned);
    cuda_result (*get)(cuda_device *, int);
    cuda_result (*retain)(cuda_context *, cuda_device);
    cuda_result (*release)(cuda_device);
    cuda_result (*reset)(cuda_device);
    cuda_result (*set_current)(cuda_context);
    cuda_result (*alloc)(cuda_pointer *, size_t);
    cuda_result (*alloc_async)(cuda_pointer *, size_t, cuda_stream);
    cuda_result (*alloc_managed)(cuda_pointer *, size_t, unsigned);
    cuda_result (*alloc_host)(void **, size_t);
    cuda_result (*free)(cuda_pointer);
    cuda_result (*free_host)(void *);
    cuda_result (*host_register)(void *, size_t, unsigned);
    cuda_result (*host_unregister)(void *);
    cuda_result (*to_device)(cuda_pointer, const void *, size_t);
    cuda_result (*to_host)(void *, cuda_pointer, size_t);
    cuda_result (*synchronize)(void);
    cuda_result (*create)(cuda_vmm_handle *, size_t, const struct cuda_vmm_properties *, unsigned long long);
    cuda_result (*release_handle)(cuda_vmm_handle);
    cuda_result (*reserve)(cuda_pointer *, size_t, size_t, cuda_pointer, unsigned long long);
    cuda_result (*unreserve)(cuda_pointer, size_t);
    cuda_result (*map)(cuda_pointer, size_t, size_t, cuda_vmm_handle, unsigned long long);
    cuda_result (*unmap)(cuda_pointer, size_t);
    cuda_result (*set_access)(cuda_pointer, size_t, const struct cuda_vmm_access *, size_t);
};
extern struct program_cuda cu;

/* Loads the driver library. */
void program_load(void);
/* Makes the primary context of device 0 current, or of the device that PROGRAM_DEVICE names; "rank": the device
 * whose number is the rank on this node. */
cuda_context program_start(void);
/* Calls program_load and program_start, and gpu_open with the settings of the environment. */
void program_open(void);
/* Allocates device memory; ends the program if there is none. */
cuda_pointer program_alloc(size_t size);
void program_free(cuda_pointer address);

/* Maps memory of whole units in pieces of `piece` bytes. `handle_types`: the kinds of handles for export. */
#define PROGRAM_UNIT ((size_t)2 << 20)
cuda_pointer program_map(size_t size, size_t piece, int handle_types);
void program_unmap(cuda_pointer address, size_t size);

#endif

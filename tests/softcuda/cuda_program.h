/* cuda_program.h: declarations for test programs that use CUDA memory, without the vendor's headers: the
 * functions of src/gpu/cuda_abi.h and those that only programs call. They work with the real driver as
 * well.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDA_PROGRAM_H
#define CUDA_PROGRAM_H

#include "gpu/cuda_abi.h"

#define CUDA_DECLARE(member, name, parameters) cuda_result name parameters;
CUDA_FUNCTIONS(CUDA_DECLARE)
#undef CUDA_DECLARE

cuda_result cuMemCreate(cuda_vmm_handle *handle, size_t size, const struct cuda_vmm_properties *properties,
                        unsigned long long flags);
cuda_result cuMemGetAllocationGranularity(size_t *out, const struct cuda_vmm_properties *properties,
                                          unsigned option);
cuda_result cuCtxSetCurrent(cuda_context context);
cuda_result cuCtxGetCurrent(cuda_context *context);
cuda_result cuCtxSynchronize(void);
cuda_result cuMemAlloc_v2(cuda_pointer *out, size_t size);
cuda_result cuMemAllocAsync(cuda_pointer *out, size_t size, cuda_stream stream);
cuda_result cuMemAllocManaged(cuda_pointer *out, size_t size, unsigned flags);
cuda_result cuMemAllocHost_v2(void **out, size_t size);
cuda_result cuMemFree_v2(cuda_pointer address);
cuda_result cuMemFreeAsync(cuda_pointer address, cuda_stream stream);
cuda_result cuMemHostRegister_v2(void *memory, size_t size, unsigned flags);
cuda_result cuMemHostUnregister(void *memory);
cuda_result cuMemGetAddressRange_v2(cuda_pointer *start, size_t *size, cuda_pointer pointer);
cuda_result cuPointerGetAttribute(void *value, enum cuda_pointer_attribute attribute, cuda_pointer pointer);
cuda_result cuStreamQuery(cuda_stream stream);
cuda_result cuEventSynchronize(cuda_event event);
cuda_result cuMemcpy(cuda_pointer to, cuda_pointer from, size_t size);
cuda_result cuMemcpyDtoH_v2(void *to, cuda_pointer from, size_t size);
cuda_result cuMemcpyHtoD_v2(cuda_pointer to, const void *from, size_t size);
cuda_result cuMemcpyDtoD_v2(cuda_pointer to, cuda_pointer from, size_t size);
cuda_result cuMemsetD8_v2(cuda_pointer to, unsigned char value, size_t size);

#endif

/* program.c: looks up the driver's functions, and allocates.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct program_cuda cu;

static void program_require(cuda_result result, const char *what)
{
    if (result != CUDA_OK) {
        printf("%s returned %d\n", what, result);
        exit(1);
    }
}

void program_load(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        printf("no libcuda.so.1: %s\n", dlerror());
        exit(77);
    }
    static const struct {
        void *where;
        const char *name;
    } wanted[] = {
        {&cu.init, "cuInit"},
        {&cu.get, "cuDeviceGet"},
        {&cu.retain, "cuDevicePrimaryCtxRetain"},
        {&cu.release, "cuDevicePrimaryCtxRelease_v2"},
        {&cu.reset, "cuDevicePrimaryCtxReset_v2"},
        {&cu.set_current, "cuCtxSetCurrent"},
        {&cu.alloc, "cuMemAlloc_v2"},
        {&cu.alloc_async, "cuMemAllocAsync"},
        {&cu.alloc_managed, "cuMemAllocManaged"},
        {&cu.alloc_host, "cuMemAllocHost_v2"},
        {&cu.free, "cuMemFree_v2"},
        {&cu.free_host, "cuMemFreeHost"},
        {&cu.host_register, "cuMemHostRegister_v2"},
        {&cu.host_unregister, "cuMemHostUnregister"},
        {&cu.to_device, "cuMemcpyHtoD_v2"},
        {&cu.to_host, "cuMemcpyDtoH_v2"},
        {&cu.synchronize, "cuCtxSynchronize"},
        {&cu.create, "cuMemCreate"},
        {&cu.release_handle, "cuMemRelease"},
        {&cu.reserve, "cuMemAddressReserve"},
        {&cu.unreserve, "cuMemAddressFree"},
        {&cu.map, "cuMemMap"},
        {&cu.unmap, "cuMemUnmap"},
        {&cu.set_access, "cuMemSetAccess"},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        if (!(*(void **)wanted[i].where = dlsym(driver, wanted[i].name))) {
            printf("the driver has no %s\n", wanted[i].name);
            exit(1);
        }
}

static cuda_device program_device(void)
{
    const char *number = getenv("PROGRAM_DEVICE");
    return number ? atoi(number) : 0;
}

cuda_context program_start(void)
{
    cuda_context context = NULL;
    cuda_device device;
    if (cu.init(0) != CUDA_OK) {
        printf("no GPU\n");
        exit(77);
    }
    program_require(cu.get(&device, program_device()), "cu.get");
    program_require(cu.retain(&context, device), "cu.retain");
    program_require(cu.set_current(context), "cu.set_current");
    return context;
}

cuda_pointer program_alloc(size_t size)
{
    cuda_pointer p = 0;
    program_require(cu.alloc(&p, size), "cuMemAlloc");
    return p;
}

void program_free(cuda_pointer address)
{
    program_require(cu.free(address), "cuMemFree");
}

cuda_pointer program_map(size_t size, size_t piece, int handle_types)
{
    const struct cuda_vmm_location location = {.type = CUDA_LOCATION_DEVICE, .id = program_device()};
    const struct cuda_vmm_properties properties = {
        .type = CUDA_VMM_PINNED, .handle_types = handle_types, .location = location};
    const struct cuda_vmm_access access = {.location = location, .flags = CUDA_VMM_READ_WRITE};
    cuda_pointer address = 0;
    program_require(cu.reserve(&address, size, PROGRAM_UNIT, 0, 0), "cuMemAddressReserve");
    for (size_t at = 0; at < size; at += piece) {
        const size_t n = size - at < piece ? size - at : piece;
        cuda_vmm_handle handle;
        program_require(cu.create(&handle, n, &properties, 0), "cuMemCreate");
        program_require(cu.map(address + at, n, 0, handle, 0), "cuMemMap");
        program_require(cu.release_handle(handle), "cuMemRelease");
    }
    program_require(cu.set_access(address, size, &access, 1), "cuMemSetAccess");
    return address;
}

void program_unmap(cuda_pointer address, size_t size)
{
    program_require(cu.unmap(address, size), "cuMemUnmap");
    program_require(cu.unreserve(address, size), "cuMemAddressFree");
}

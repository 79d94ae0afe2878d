/* program.c: loads the CUDA driver library, and allocates and maps device memory (program.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program_cuda cu;

static void require_success(cuda_result result, const char *what)
{
    if (result != CUDA_OK) {
        printf("%s returned error %d\n", what, result);
        exit(1);
    }
}

void program_load(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        printf("cannot load libcuda.so.1: %s\n", dlerror());
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
            printf("the driver has no function %s\n", wanted[i].name);
            exit(1);
        }
}

static cuda_device find_device(void)
{
    const char *number = getenv("PROGRAM_DEVICE"), *rank = getenv("MPI_LOCALRANKID");
    if (number && strcmp(number, "rank") == 0)
        number = rank;
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
    require_success(cu.get(&device, find_device()), "cu.get");
    require_success(cu.retain(&context, device), "cu.retain");
    require_success(cu.set_current(context), "cu.set_current");
    return context;
}

cuda_pointer program_alloc(size_t size)
{
    cuda_pointer p = 0;
    require_success(cu.alloc(&p, size), "cuMemAlloc");
    return p;
}

void program_free(cuda_pointer address)
{
    require_success(cu.free(address), "cuMemFree");
}

cuda_pointer program_map(size_t size, size_t piece, int handle_types)
{
    const struct cuda_vmm_location location = {.type = CUDA_LOCATION_DEVICE, .id = find_device()};
    const struct cuda_vmm_properties properties = {
        .type = CUDA_VMM_PINNED, .handle_types = handle_types, .location = location};
    const struct cuda_vmm_access access = {.location = location, .flags = CUDA_VMM_READ_WRITE};
    cuda_pointer address = 0;
    require_success(cu.reserve(&address, size, PROGRAM_UNIT, 0, 0), "cuMemAddressReserve");
    for (size_t at = 0; at < size; at += piece) {
        const size_t n = size - at < piece ? size - at : piece;
        cuda_vmm_handle handle;
        require_success(cu.create(&handle, n, &properties, 0), "cuMemCreate");
        require_success(cu.map(address + at, n, 0, handle, 0), "cuMemMap");
        require_success(cu.release_handle(handle), "cuMemRelease");
    }
    require_success(cu.set_access(address, size, &access, 1), "cuMemSetAccess");
    return address;
}

void program_unmap(cuda_pointer address, size_t size)
{
    require_success(cu.unmap(address, size), "cuMemUnmap");
    require_success(cu.unreserve(address, size), "cuMemAddressFree");
}

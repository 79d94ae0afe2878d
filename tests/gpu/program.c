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
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        if (!(*(void **)wanted[i].where = dlsym(driver, wanted[i].name))) {
            printf("the driver has no %s\n", wanted[i].name);
            exit(1);
        }
}

cuda_context program_start(void)
{
    cuda_context context = NULL;
    cuda_device device;
    if (cu.init(0) != CUDA_OK) {
        printf("no GPU\n");
        exit(77);
    }
    program_require(cu.get(&device, 0), "cu.get");
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

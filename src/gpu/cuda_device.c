/* cuda_device.c: describes the devices for users.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cuda.h"

#include <stdio.h>

int cuda_count_devices(void)
{
    int count = 0;
    return cuda.call.device_count(&count) == CUDA_OK ? count : 0;
}

static int get_attribute(cuda_device device, enum cuda_device_attribute which)
{
    int value = 0;
    return cuda.call.device_attribute(&value, which, device) == CUDA_OK ? value : 0;
}

static void print_pci(cuda_device device, char out[16])
{
    snprintf(out, 16, "%04x:%02x:%02x.0", (unsigned)get_attribute(device, CUDA_DEVICE_PCI_DOMAIN) & 0xffff,
             (unsigned)get_attribute(device, CUDA_DEVICE_PCI_BUS) & 0xff,
             (unsigned)get_attribute(device, CUDA_DEVICE_PCI_DEVICE) & 0xff);
}

bool cuda_find_current(char pci[16])
{
    cuda_device device;
    if (cuda.call.context_device(&device) != CUDA_OK)
        return false;
    print_pci(device, pci);
    return true;
}

int cuda_describe_device(int index, struct gpu_device *out)
{
    cuda_device device;
    size_t bytes = 0;
    *out = (struct gpu_device){0};
    const cuda_result rc = cuda.call.device_get(&device, index);
    if (rc != CUDA_OK)
        return cuda_report_error(rc, "describe a device");
    cuda.call.device_name(out->name, (int)sizeof(out->name), device);
    cuda.call.device_memory(&bytes, device);
    print_pci(device, out->pci);
    out->bytes = bytes;
    out->compute_major = get_attribute(device, CUDA_DEVICE_COMPUTE_MAJOR);
    out->compute_minor = get_attribute(device, CUDA_DEVICE_COMPUTE_MINOR);
    out->has_dmabuf = get_attribute(device, CUDA_DEVICE_DMA_BUF) != 0;
    out->has_direct_rdma = get_attribute(device, CUDA_DEVICE_GPU_DIRECT_RDMA) != 0;
    out->has_mps = get_attribute(device, CUDA_DEVICE_MPS) != 0;
    return 0;
}

int cuda_driver_version(void)
{
    int version = 0;
    return cuda.call.driver_version(&version) == CUDA_OK ? version : 0;
}

/* near.c: computes the distance between adapters and GPUs. The distance of two devices is the number of PCI
 * bridges between them. In sysfs both are folders, and the folder of a device lies in the folder of its
 * bridge.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/device/near.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static uint32_t count_folders(const char *path)
{
    uint32_t n = 0;
    for (; *path; path++)
        n += *path == '/';
    return n;
}

/* Returns the number of folders that the two paths do not share; UINT32_MAX if a path does not exist. */
static uint32_t measure_distance(const char *gpu_path, const char *adapter_path)
{
    char gpu[PATH_MAX], adapter[PATH_MAX];
    if (!realpath(gpu_path, gpu) || !realpath(adapter_path, adapter))
        return UINT32_MAX;
    size_t shared = 0;
    for (size_t i = 0; gpu[i] && gpu[i] == adapter[i]; i++)
        if (gpu[i] == '/')
            shared = i;
    return count_folders(gpu + shared) + count_folders(adapter + shared);
}

static uint32_t port_gpu_distance(const struct net_port *p, const char *sysfs, const char *gpu)
{
    char gpu_path[PATH_MAX], adapter_path[PATH_MAX];
    snprintf(gpu_path, sizeof(gpu_path), "%s/bus/pci/devices/%s", sysfs, gpu);
    snprintf(adapter_path, sizeof(adapter_path), "%s/class/infiniband/%s/device", sysfs, p->device);
    return measure_distance(gpu_path, adapter_path);
}

void ib_mark_ports_near_gpu(struct net_port *ports, uint32_t count, const char *sysfs, const char *gpu)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t distance = port_gpu_distance(&ports[i], sysfs, gpu);
        if (distance == UINT32_MAX)
            return;
        least = MIN(least, distance);
    }
    for (uint32_t i = 0; i < count; i++)
        ports[i].near = port_gpu_distance(&ports[i], sysfs, gpu) == least;
}

/* hardware.c: reads /sys/devices/system/cpu for every processor this process may run on. A process that may
 * run on several packages (NUMA nodes, caches, cores) is not bound to any of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "obj/hardware.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "boot/boot.h"

/* limit for resource numbers in a node; separates the numbers of different nodes */
#define IDS_PER_NODE 4096

static const struct {
    const char *name;
    int level;
} names[] = {
    /* hardware_level_name() returns the first name of a level, a URI for MPI_Get_hw_resource_info. */
    {"mpi://mpi_shared_memory", HARDWARE_NODE},
    {"hwloc://Package", HARDWARE_PACKAGE},
    {"hwloc://NUMANode", HARDWARE_NUMA},
    {"hwloc://L3Cache", HARDWARE_L3},
    {"hwloc://Core", HARDWARE_CORE},
    {"mpi_shared_memory", HARDWARE_NODE},
    {"hwloc://Machine", HARDWARE_NODE},
    {"hwloc://Socket", HARDWARE_PACKAGE},
    {"hwloc://NUMA", HARDWARE_NUMA},
    {"hwloc://L3", HARDWARE_L3},
};

int hardware_level(const char *type)
{
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcasecmp(type, names[i].name) == 0)
            return names[i].level;
    return -1;
}

const char *hardware_level_name(int level)
{
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].level == level)
            return names[i].name;
    return NULL;
}

/* Reads the first number in a file: an id, or the first processor of a list, which identifies the resource
 * as well. */
static int read_number(int cpu, const char *file)
{
    char path[128];
    int number = -1;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    FILE *f = fopen(path, "r");
    if (!f)
        return -1;
    if (fscanf(f, "%d", &number) != 1)
        number = -1;
    fclose(f);
    return number;
}

/* The NUMA node of a processor: its directory in sysfs has a link named node<N>. */
static int numa_node(int cpu)
{
    char path[64];
    int number = -1;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL && number < 0;)
        if (sscanf(entry->d_name, "node%d", &number) != 1)
            number = -1;
    closedir(folder);
    return number;
}

static int resource_of_cpu(int cpu, int level)
{
    switch (level) {
    case HARDWARE_PACKAGE:
        return read_number(cpu, "topology/physical_package_id");
    case HARDWARE_NUMA:
        return numa_node(cpu);
    case HARDWARE_L3:
        return read_number(cpu, "cache/index3/shared_cpu_list");
    default:
        return read_number(cpu, "topology/thread_siblings_list");
    }
}

/* The resource that contains all processors of the mask, or -1. */
static int find_common_resource(const cpu_set_t *mask, int level)
{
    int piece = -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, mask))
            continue;
        int here = resource_of_cpu(cpu, level);
        if (here < 0 || (piece >= 0 && here != piece))
            return -1;
        piece = here;
    }
    return piece;
}

void hardware_find_places(const struct boot *boot, int32_t place[HARDWARE_LEVELS])
{
    cpu_set_t mask;
    bool known = sched_getaffinity(0, sizeof(mask), &mask) == 0;
    place[HARDWARE_NODE] = (int32_t)boot->node;
    for (int level = HARDWARE_NODE + 1; level < HARDWARE_LEVELS; level++) {
        int piece = known ? find_common_resource(&mask, level) : -1;
        place[level] = piece < 0 ? -1 : (int32_t)(boot->node * IDS_PER_NODE + (uint32_t)piece % IDS_PER_NODE);
    }
}

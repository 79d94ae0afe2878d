/* hardware.h: the hardware resources, from the node down to the core, to which this process is bound, as the
 * kernel reports them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_HARDWARE_H
#define FP_OBJ_HARDWARE_H

#include <stdint.h>

struct boot;

/* Hardware levels, from the largest resource to the smallest. */
enum { HARDWARE_NODE, HARDWARE_PACKAGE, HARDWARE_NUMA, HARDWARE_L3, HARDWARE_CORE, HARDWARE_LEVELS };

/* Fills in the number of the resource of each level to which this process is bound, unique within the job;
 * -1 if its processors belong to several resources. */
void hardware_find_places(const struct boot *boot, int32_t place[HARDWARE_LEVELS]);

/* The level of a resource type ("mpi_shared_memory", "hwloc://NUMANode", ...), or -1. */
int hardware_level(const char *type);

/* Returns the preferred name of a level. */
const char *hardware_level_name(int level);

#endif

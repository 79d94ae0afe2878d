/* hardware.h: where this process runs in the machine, from the node down to the core, as the kernel reports
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_HARDWARE_H
#define FP_OBJ_HARDWARE_H

#include <stdint.h>

struct boot;

/* From large to small. */
enum { HARDWARE_NODE, HARDWARE_PACKAGE, HARDWARE_NUMA, HARDWARE_L3, HARDWARE_CORE, HARDWARE_LEVELS };

/* Fills in which resource of each kind this process is bound to, numbered over the whole job; -1 if its processors
 * belong to several. */
void hardware_find_places(const struct boot *boot, int32_t place[HARDWARE_LEVELS]);

/* The level of a resource type ("mpi_shared_memory", "hwloc://NUMANode", ...), or -1. */
int hardware_level(const char *type);

/* The names that hardware_level knows, one for each level. */
const char *hardware_level_name(int level);

#endif

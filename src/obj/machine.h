/* machine.h: where this process runs in the machine, from the node down to the core, as the kernel reports
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_MACHINE_H
#define FP_OBJ_MACHINE_H

#include <stdint.h>

struct boot;

/* From large to small. */
enum { MACHINE_NODE, MACHINE_PACKAGE, MACHINE_NUMA, MACHINE_L3, MACHINE_CORE, MACHINE_LEVELS };

/* Fills in which resource of each kind this process is bound to, numbered over the whole job; -1 if its processors
 * belong to several. */
void machine_find_places(const struct boot *boot, int32_t place[MACHINE_LEVELS]);

/* The level of a resource type ("mpi_shared_memory", "hwloc://NUMANode", ...), or -1. */
int machine_level(const char *type);

/* The names that machine_level knows, one for each level. */
const char *machine_level_name(int level);

#endif

/* mapping.h: finds the mapping of this process that contains a region, and its kind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_MEMORY_MAPPING_H
#define SOFTIB_MEMORY_MAPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum kind { MAP_OTHER, MAP_PRIVATE_ANON, MAP_SHARED_FILE };

struct mapping {
    uint64_t start, end, offset, ino;
    dev_t dev; /* with `ino`, identifies the file */
    enum kind kind;
};

/* Finds the writable mapping that contains [addr, addr+len); false if there is none. */
bool mapping_find(uint64_t addr, uint64_t len, struct mapping *m);

/* True if every page of [addr, addr+len) is mapped. */
bool mapping_is_present(uint64_t addr, uint64_t len);

/* The two methods of querying the kernel, declared for tests. mapping_query returns -1 if this kernel cannot
 * query a single mapping, else 0 or 1. */
int mapping_query(uint64_t addr, uint64_t len, struct mapping *m);
bool mapping_read(uint64_t addr, uint64_t len, struct mapping *m);

#endif

/* mapping.h: what kind of memory a region is: which mapping of this process holds it.
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
    dev_t dev; /* an inode's number says nothing without it */
    enum kind kind;
};

/* The one mapping that holds all of [addr, addr+len) and can be written to; false: there is none. */
bool mapping_find(uint64_t addr, uint64_t len, struct mapping *m);

/* Every page of [addr, addr+len) is in some mapping now. */
bool mapping_present(uint64_t addr, uint64_t len);

/* The two ways to ask the kernel, for a test. asked: -1 when this kernel cannot be asked for one mapping, else 0 or 1. */
int mapping_query(uint64_t addr, uint64_t len, struct mapping *m);
bool mapping_read(uint64_t addr, uint64_t len, struct mapping *m);

#endif

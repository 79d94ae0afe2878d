/*
 * See huge.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_HUGE_H
#define SOFTIB_HUGE_H

#include <stdint.h>

/* Asks malloc to take large blocks from the heap, where they lie in whole huge pages: a block that it
 * maps by itself mostly holds none. The program's buffers come after this. */
void huge_heap(void);
/* The region is in one private mapping [map_start, map_end). */
void huge_pages(uint64_t addr, uint64_t len, uint64_t map_start, uint64_t map_end);

#endif

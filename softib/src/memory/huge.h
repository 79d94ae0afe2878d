/* huge.h: see huge.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_HUGE_H
#define SOFTIB_HUGE_H

#include <stdbool.h>
#include <stdint.h>

/* Makes malloc take large blocks from the heap, where they cover whole huge pages; separately mapped blocks
 * mostly do not. Affects buffers allocated after this. */
void huge_heap(void);
/* Messages shorter than this are not worth it. */
#define HUGE_LEAST (64ull << 10)
/* huge_take_credit: true if a region of this length gets huge pages at registration; others get them when they are used
 * again. */
bool huge_take_credit(uint64_t len);
void huge_renew_credit(uint64_t len);
/* Moves a region, which lies in one private mapping [map_start, map_end), to huge pages. Returns false if part of it
 * was in use and another attempt is worthwhile. */
bool huge_pages(uint64_t addr, uint64_t len, uint64_t map_start, uint64_t map_end);

#endif

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
/* Whether a region of this length is worth it at once; and what makes others worth it: it was used again. */
bool huge_on_credit(uint64_t len);
void huge_renew(uint64_t len);
/* The region is in one private mapping [map_start, map_end). False: some of it was in use; worth another try. */
bool huge_pages(uint64_t addr, uint64_t len, uint64_t map_start, uint64_t map_end);

#endif

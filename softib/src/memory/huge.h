/* huge.h: see huge.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_HUGE_H
#define SOFTIB_HUGE_H

#include <stdbool.h>
#include <stdint.h>

/* Configures malloc to allocate large blocks from the heap, where they cover whole huge pages; separately
 * mapped blocks usually do not. Affects later allocations. */
void huge_configure_malloc(void);
/* Bytes of the shortest message that is counted as a use of its region. */
#define HUGE_LEAST (64ull << 10)
/* Takes credit and returns true if a new region of this length is to be moved to huge pages at registration.
 * Other regions are moved when large messages use them repeatedly. */
bool huge_take_credit(uint64_t len);
void huge_renew_credit(uint64_t len);
/* Moves a region in the private mapping [map_start, map_end) to huge pages. Returns false if a part of it
 * was in use, so that a later attempt may succeed. */
bool huge_collapse_pages(uint64_t addr, uint64_t len, uint64_t map_start, uint64_t map_end);

#endif

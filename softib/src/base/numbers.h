/* numbers.h: numbers of queue pairs and completion queues. A number is not reused soon after
 * its object is destroyed, so that a late packet or a stale key finds no object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_NUMBERS_H
#define SOFTIB_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* Allocates the next free number in [first, n), where `first` is at least 1; returns 0 if none is free. The
 * search begins at *hint. The caller holds the lock of the table. */
static inline uint32_t number_allocate(bool *taken, uint32_t first, uint32_t n, uint32_t *hint)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (*hint + i) % n;
        if (at < first || taken[at])
            continue;
        taken[at] = true;
        *hint = at + 1;
        return at;
    }
    return 0;
}

#endif

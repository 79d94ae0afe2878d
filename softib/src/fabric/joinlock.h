/* joinlock.h: see joinlock.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_JOINLOCK_H
#define SOFTIB_JOINLOCK_H

#include <stdint.h>

/* Holds the lock of fabric `key` until the descriptor is closed. -1 after a message that names the holder. */
int joinlock_acquire(uint64_t key);

#endif

/* joinlock.h: see joinlock.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_JOINLOCK_H
#define SOFTIB_JOINLOCK_H

#include <stdint.h>

/* Acquires the lock for joining the fabric `key`. Returns a descriptor whose close releases the lock; -1
 * after a message that names the holder. */
int joinlock_acquire(uint64_t key);

#endif

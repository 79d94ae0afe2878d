/* shlock.h: a lock in memory that several processes share. The lock stores its owner. When the owner is
 * killed while it holds the lock, another process notices and takes the lock over.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SHLOCK_H
#define SOFTIB_SHLOCK_H

#include "base/base.h"

/*
 * What it protects is published by one store at the end of the section, so that a
 * section abandoned half way leaves the old state: taking over from a dead owner is always safe.
 */
struct shlock {
    atomic_uint owner; /* 0 is free, else member slot */
};

void shlock_take_slow(struct shlock *l);
extern unsigned shlock_self; /* this process's member slot */

static inline void shlock_take(struct shlock *l)
{
    unsigned zero = 0;
    if (UNLIKELY(!atomic_compare_exchange_strong_explicit(&l->owner, &zero, shlock_self, memory_order_acquire,
                                                          memory_order_relaxed)))
        shlock_take_slow(l);
}

static inline void shlock_drop(struct shlock *l)
{
    atomic_store_explicit(&l->owner, 0, memory_order_release);
}

#endif

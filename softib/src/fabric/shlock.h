/* shlock.h: a lock in memory that several processes share. The lock stores its owner: the member slot with the slot's generation, since
 * the slot of a process that was killed is given to another one at once. When the owner is killed while it holds the lock, another
 * process takes the lock over.
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
    atomic_uint owner; /* 0 is free, else a member's shlock_self */
};

void shlock_lock_contended(struct shlock *l);
bool shlock_owner_alive(unsigned owner);
extern unsigned shlock_self; /* this process's member slot and the slot's generation (shlock_name) */

static inline unsigned shlock_name(unsigned slot, unsigned generation, unsigned slots)
{
    return generation % (UINT32_MAX / slots) * slots + slot;
}

static inline void shlock_lock(struct shlock *l)
{
    unsigned zero = 0;
    if (UNLIKELY(!atomic_compare_exchange_strong_explicit(&l->owner, &zero, shlock_self, memory_order_acquire,
                                                          memory_order_relaxed)))
        shlock_lock_contended(l);
}

static inline void shlock_unlock(struct shlock *l)
{
    atomic_store_explicit(&l->owner, 0, memory_order_release);
}

#endif

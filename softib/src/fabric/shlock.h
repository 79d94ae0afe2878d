/* shlock.h: a lock in memory that several processes share. The lock word contains the owner: its member
 * slot and the generation of the slot, since the slot of a process that was killed is reused. If a process
 * is killed while it holds the lock, another process takes the lock over.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SHLOCK_H
#define SOFTIB_SHLOCK_H

#include "base/base.h"

/*
 * A critical section publishes its changes by one store at its end, so that an incomplete section leaves
 * the former state: another process can always take over the lock of a dead owner.
 */
struct shlock {
    atomic_uint owner; /* shlock_self of the owner; 0: free */
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

/* shlock.h: a lock in memory that several processes share. It remains usable after the death of a process
 * that holds it. The lock word contains the number of the owner, so that one compare-and-swap acquires the
 * lock and records the owner. A waiter whose owner is declared dead acquires the lock by another
 * compare-and-swap. The dead owner may have left the data inconsistent: the new owner repairs the data or
 * marks the lock as broken for all processes permanently.
 *
 * "Declared dead" means that the launcher has reaped the process (net/lost.h). A number that was declared
 * dead never takes a lock again, so the compare and swap of a take-over cannot mistake a new acquisition
 * for the old one. Nothing depends on elapsed time: an owner that is stopped keeps its lock.
 *
 * Memory order: the acquiring compare and swap pairs with the releasing store of shlock_release. What a
 * dead owner stored before its last instruction is visible to the process that takes over, since the
 * kernel has ended that process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_SHLOCK_H
#define FP_BASE_SHLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/kill_point.h"

struct shlock {
    /* 0: free; number of the owner + 1; or SHLOCK_IS_BROKEN | number of the owner that died + 1 */
    _Atomic uint32_t word;
};

#define SHLOCK_IS_BROKEN ((uint32_t)1 << 31)

enum shlock_result {
    SHLOCK_ACQUIRED,
    SHLOCK_TAKEN_OVER, /* acquired from a dead owner: repair the data, or shlock_break */
    SHLOCK_BUSY,
    SHLOCK_BROKEN
};

struct shlock_user {
    uint32_t number; /* of this process, below 2^31 - 1; never reused for another process */
    bool (*is_dead)(void *arg, uint32_t number);
    void *arg;
};

/* Acquires a free lock. False: the lock is held or broken. */
static inline bool shlock_acquire_free(struct shlock *l, uint32_t number)
{
    uint32_t seen = 0;
    return atomic_compare_exchange_strong_explicit(&l->word, &seen, number + 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Makes one attempt to acquire the lock. *owner: the process that holds it or, if taken over or broken,
 * that died. */
static inline enum shlock_result shlock_try(struct shlock *l, const struct shlock_user *u, uint32_t *owner)
{
    uint32_t seen = 0;
    if (atomic_compare_exchange_strong_explicit(&l->word, &seen, u->number + 1, memory_order_acquire,
                                                memory_order_relaxed))
        return SHLOCK_ACQUIRED;
    KILL_POINT(shlock_seen_locked);
    *owner = (seen & ~SHLOCK_IS_BROKEN) - 1;
    if (seen & SHLOCK_IS_BROKEN)
        return SHLOCK_BROKEN;
    if (!u->is_dead(u->arg, *owner))
        return SHLOCK_BUSY;
    KILL_POINT(shlock_owner_dead);
    return atomic_compare_exchange_strong_explicit(&l->word, &seen, u->number + 1, memory_order_acquire,
                                                   memory_order_relaxed)
               ? SHLOCK_TAKEN_OVER
               : SHLOCK_BUSY;
}

static inline void shlock_release(struct shlock *l)
{
    atomic_store_explicit(&l->word, 0, memory_order_release);
}

/* Called by the owner if the data cannot be repaired after the death of `dead`. */
static inline void shlock_break(struct shlock *l, uint32_t dead)
{
    atomic_store_explicit(&l->word, SHLOCK_IS_BROKEN | (dead + 1), memory_order_release);
}

#endif

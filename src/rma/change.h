/* change.h: two kinds of changes to the elements of a rank's shared memory, which exclude each other. A
 * single element is changed by a processor atomic; many elements are changed by ordinary vector instructions
 * under the lock of the memory. So that fetch_and_op on a counter stays one atomic, the process that changes
 * a single element does not take the lock: it stores in its own word the number of the rank whose memory it
 * changes, and loads a flag of that memory [Dijkstra65, between one process and the owner of the lock]:
 *
 *     single: mine = number;  if (target.bulk) take the lock     ... atomic ...     mine = 0
 *     bulk:   lock; target.bulk = 1; wait while another process's word == number;
 *             ... change ...   target.bulk = 0; unlock
 *
 * Both the store and the load are sequentially consistent at both sides, so at least one of the two sees the
 * other's store. Single changes do not exclude one another, and never wait while the word is set, so the
 * owner of the lock waits for a few instructions of each.
 *
 * After a death: the word of a dead process is ignored, since an atomic is either complete or not begun.
 * `bulk` of a dead owner stays set, so that single changes take the lock too and learn that it is broken.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_RMA_CHANGE_H
#define FP_RMA_CHANGE_H

#include "base/shlock.h"

/* Synchronises changes of one rank's memory; initially zero. */
struct change {
    struct shlock lock;
    _Atomic uint32_t bulk; /* 1 while the owner of the lock changes many elements */
};

/* Each process also has a word (win_entry.single): 0, or the number + 1 of the memory in which the process
 * changes one element. */

/* Returns false if the caller must hold the target's lock while it changes the element. */
static inline bool change_single_begin(_Atomic uint32_t *mine, const struct change *target, uint32_t number)
{
    atomic_store(mine, number + 1);
    KILL_POINT(rma_single_announced);
    if (__builtin_expect(atomic_load(&target->bulk) == 0, 1))
        return true;
    atomic_store_explicit(mine, 0, memory_order_release);
    return false;
}

static inline void change_single_end(_Atomic uint32_t *mine)
{
    KILL_POINT(rma_single_changed);
    atomic_store_explicit(mine, 0, memory_order_release);
}

/* Called by the owner of the lock. From now on no process begins a single change. */
static inline void change_bulk_announce(struct change *target)
{
    KILL_POINT(rma_bulk_locked);
    atomic_store(&target->bulk, 1);
    KILL_POINT(rma_bulk_announced);
}

/* True if the process with the word `other` is inside a single change of memory `number`. */
static inline bool change_is_single(const _Atomic uint32_t *other, uint32_t number)
{
    return atomic_load(other) == number + 1;
}

static inline void change_bulk_end(struct change *target)
{
    KILL_POINT(rma_bulk_changed);
    atomic_store_explicit(&target->bulk, 0, memory_order_release);
    KILL_POINT(rma_bulk_ended);
}

#endif

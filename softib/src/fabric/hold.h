/* hold.h: makes sure that nothing touches a memory region after it was deregistered. A process that copies to
 * or from another member's region first writes the region's name into its row of the registry, then checks
 * the key. A process that deregisters a region first clears the key, then waits until no living process has
 * that name in its row. It does not wait for a process that has died, and it does wait for one that is only
 * stopped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_HOLD_H
#define SOFTIB_HOLD_H

#include "fabric/proc.h"

static inline _Atomic uint64_t *hold_take(uint32_t owner, uint32_t index)
{
    struct reg_hold *h = &proc.reg->hold[proc.slot];
    uint64_t name = (uint64_t)owner << 32 | index;
    for (unsigned i = 0; i < HOLDS; i++) {
        uint64_t none = 0;
        if (!atomic_load_explicit(&h->at[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong(&h->at[i], &none, name))
            return &h->at[i];
    }
    atomic_fetch_add(&h->more, 1);
    return &h->more;
}

static inline void hold_drop(_Atomic uint64_t *word)
{
    if (LIKELY(word != &proc.reg->hold[proc.slot].more))
        atomic_store_explicit(word, 0, memory_order_release);
    else
        atomic_fetch_sub_explicit(word, 1, memory_order_release);
}

/* Waits until no other living process holds our region. True: one died with it in its hands. */
bool hold_wait(uint32_t index);

#endif

/*
 * What keeps a deregistered region from being touched. Who copies to or from another member's region writes
 * its name into a row of the registry first, then looks at the key; who deregisters clears the key first, then
 * waits until no living process has the name in its row. A process that died holds nothing: nobody waits for
 * it, and nobody stops waiting for one that is only stopped.
 * SPDX-License-Identifier: Apache-2.0
 */
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

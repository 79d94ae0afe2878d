/* hold.h: prevents that another process accesses an object (memory region, QP, SRQ of an XRC domain) after
 * its owner destroyed it or changed its state. A process that uses another member's object first writes
 * the object's name to its row of the registry, then checks the key or the state. The owner first clears
 * the key or changes the state, then waits until no live process has the name in its row: also for a
 * process that is stopped, but not for one that has died. Threads of the owner do not write names to the
 * row: they cannot outlive the owner.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_HOLD_H
#define SOFTIB_HOLD_H

#include "fabric/proc.h"

/* First object index of QPs and of XRC SRQs in a hold; indexes of memory regions begin at 0. */
#define HOLD_QP  (1u << 24)
#define HOLD_XRC (1u << 25)

_Static_assert(MR_MAX <= HOLD_QP && QP_MAX <= HOLD_QP && SRQ_MAX <= HOLD_XRC, "names of objects are unique");

static inline _Atomic uint64_t *hold_acquire(uint32_t owner, uint32_t index)
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

static inline void hold_release(_Atomic uint64_t *word)
{
    if (LIKELY(word != &proc.reg->hold[proc.slot].more))
        atomic_store_explicit(word, 0, memory_order_release);
    else
        atomic_fetch_sub_explicit(word, 1, memory_order_release);
}

/* True if a thread of this process holds the object or may hold it (holds that did not fit in the row are
 * only counted). */
static inline bool hold_is_taken(uint32_t owner, uint32_t index)
{
    struct reg_hold *h = &proc.reg->hold[proc.slot];
    const uint64_t name = (uint64_t)owner << 32 | index;
    bool taken = atomic_load(&h->more) != 0;
    for (unsigned i = 0; i < HOLDS && !taken; i++)
        taken = atomic_load(&h->at[i]) == name;
    return taken;
}

/* Waits until no other live process holds the object, which this process owns. True: a process died while
 * it held the object. */
bool hold_wait(uint32_t index);

#endif

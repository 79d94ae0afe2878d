/* hold.c: waits until other processes release an object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/hold.h"

#define SAY_NS (2 * NS_S)

struct wait {
    uint64_t since;
    uint32_t index;
    bool said;
};

static bool hold_is_owner_dead(struct wait *w, uint32_t slot, unsigned turn)
{
    if (turn % 4096 != 4095)
        return false;
    if (!member_is_running(slot))
        return true;
    w->since = w->since ? w->since : now_ns();
    if (!w->said && now_ns() - w->since > SAY_NS) {
        softib_log(
            "%s waits for process %d, which is %s. If that process is stopped, continue it (kill -CONT) or "
            "end it",
            w->index < HOLD_QP ? "ibv_dereg_mr" : "A queue pair or shared receive queue",
            proc.reg->member[slot].pid,
            w->index < HOLD_QP ? "copying to or from the region" : "delivering a message to it");
        w->said = true;
    }
    return false;
}

/* Waits until *word differs from `name`, or until the counter *word is 0 if `name` is 0. Returns true if the
 * process in `slot` has ended. */
static bool wait_word_released(struct wait *w, uint32_t slot, _Atomic uint64_t *word, uint64_t name)
{
    for (unsigned turn = 0;;) {
        uint64_t v = atomic_load(word);
        if (LIKELY(name ? v != name : !v))
            return false;
        if (hold_is_owner_dead(w, slot, turn))
            return true;
        spin_wait(&turn);
    }
}

bool hold_wait(uint32_t index)
{
    uint64_t name = (uint64_t)proc.slot << 32 | index;
    uint32_t slots = atomic_load(&proc.reg->slots);
    struct wait w = {.index = index};
    bool died = false;
    for (uint32_t m = 1; m < slots; m++) {
        struct reg_hold *h = &proc.reg->hold[m];
        bool dead = m == proc.slot;
        for (unsigned i = 0; !dead && i < HOLDS; i++)
            dead = wait_word_released(&w, m, &h->at[i], name);
        dead = dead || wait_word_released(&w, m, &h->more, 0);
        died |= dead && m != proc.slot;
    }
    return died;
}

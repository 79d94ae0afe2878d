/* hub_logic.c: the hub of the barrier network as a pure state machine [Hoefler05 3.2]: see softib/barrier.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "softib/barrier.h"

#define WORDS (SOFTIB_SWITCH_PORTS / 64)

static void set_bit(uint64_t *bits, uint32_t n, bool v)
{
    bits[n / 64] = (bits[n / 64] & ~(1ull << (n % 64))) | (uint64_t)v << (n % 64);
}

/* An unplugged wire has no level. Unplugging completes no barrier: a host that leaves before a barrier is
 * complete has failed, and the others must not believe that it has entered the barrier. Unplugging the last
 * wire resets the hub. */
SOFTIB_API void softib_hub_wire(struct softib_hub *h, uint32_t port, bool plugged)
{
    uint64_t any = 0;
    set_bit(h->plugged, port, plugged);
    set_bit(h->arrive, port, false);
    for (unsigned w = 0; w < WORDS; w++)
        any |= h->plugged[w];
    if (any)
        return;
    h->job = 0;
    __atomic_store_n(&h->released, 0, __ATOMIC_RELEASE);
}

/* True if all plugged wires have the level `up`. */
static bool hub_all_wires_at_level(const struct softib_hub *h, bool up)
{
    for (unsigned w = 0; w < WORDS; w++)
        if ((up ? ~h->arrive[w] : h->arrive[w]) & h->plugged[w])
            return false;
    return true;
}

SOFTIB_API void softib_hub_level(struct softib_hub *h, uint32_t port, bool up)
{
    set_bit(h->arrive, port, up);
    if (hub_all_wires_at_level(h, up))
        __atomic_store_n(&h->released, up, __ATOMIC_RELEASE);
}

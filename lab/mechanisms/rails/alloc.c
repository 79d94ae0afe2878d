/* alloc.c: applies a policy and the striping ratio to the set of free rails (alloc.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/mechanisms/rails/alloc.h"

void alloc_open(struct alloc *a, enum alloc_policy policy, unsigned rails, double ratio, uint64_t shortest)
{
    *a = (struct alloc){
        .policy = policy, .rails = (uint8_t)rails, .last = RAIL_NONE, .ratio = ratio, .shortest = shortest};
}

/* Number of rails out of n that the striping ratio permits. */
static unsigned alloc_count_share(const struct alloc *a, unsigned n)
{
    unsigned more = (unsigned)(a->ratio * (n - 1) + 0.5);
    return 1 + MIN(more, n - 1);
}

uint32_t alloc_select(struct alloc *a, uint32_t available)
{
    uint32_t set = 0;
    if (available == 0)
        return 0;
    for (unsigned left = alloc_count_share(a, rail_set_count(available)); left > 0; left--) {
        a->last = (uint8_t)rail_after(available & ~set, a->last);
        set |= rail_bit(a->last);
    }
    return set;
}

static uint32_t alloc_next_rail(struct alloc *a, uint32_t set)
{
    a->last = (uint8_t)rail_after(set, a->last);
    return rail_bit(a->last);
}

static uint32_t alloc_binomial(unsigned n, unsigned k)
{
    uint64_t choices = 1;
    for (unsigned i = 1; i <= k; i++)
        choices = choices * (n - k + i) / i;
    return (uint32_t)choices;
}

uint32_t alloc_static_nodes(unsigned rails)
{
    return alloc_binomial(rails, rails / 2);
}

/* Returns the node-th subset of half of the rails; the loop includes or excludes one rail after the other. */
uint32_t alloc_static_rails(unsigned rails, uint32_t node)
{
    uint32_t set = 0;
    unsigned left = rails / 2;
    if (node >= alloc_static_nodes(rails))
        return 0;
    for (unsigned k = rails; k-- > 0 && left > 0;) {
        const uint32_t without = k >= left ? alloc_binomial(k, left) : 0;
        if (node < without)
            continue;
        node -= without;
        set |= rail_bit(k);
        left--;
    }
    return set;
}

enum alloc_verdict alloc_message(struct alloc *a, uint64_t bytes, uint32_t free, uint32_t *set)
{
    uint32_t all = rails_all(a->rails);
    switch (a->policy) {
    case ALLOC_BASIC:
        *set = alloc_next_rail(a, all);
        return ALLOC_SEND;
    case ALLOC_LOCAL:
    case ALLOC_STATIC: /* choose among the rails towards the peer */
        *set = alloc_select(a, free);
        return free ? ALLOC_SEND : ALLOC_WAIT;
    case ALLOC_HYBRID:
        if (bytes <= a->shortest) {
            *set = alloc_next_rail(a, free ? free : all); /* a short message never waits */
            return ALLOC_SEND;
        }
        /* fall through */
    default:
        *set = free;
        return free ? ALLOC_RESERVE : ALLOC_WAIT;
    }
}

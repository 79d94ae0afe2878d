/* epoch.c: retires context ids and frees them again with a higher epoch (epoch.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/epoch.h"

#include <stdlib.h>
#include <string.h>

#include "p2p/peer_death.h"

/* Retired ids become free again if fewer than FEW_SINGLE ids for one agreement at a time, or fewer than
 * FEW_SHARED other ids, are free. */
#define FEW_SINGLE (64 * CONTEXT_SINGLE_WORDS / 4)
#define FEW_SHARED (64 * (CONTEXT_WORDS - CONTEXT_SINGLE_WORDS) / 4)
#define MANY       256 /* retired ids to free at once, at least: every time uses up one epoch */

/* waiting: bit mask of retired ids. first[id]: lowest epoch in which this process may reuse the id. */
struct context_epochs {
    uint64_t waiting[CONTEXT_WORDS];
    uint32_t first[CONTEXT_IDS];
};

static uint32_t context_number_id(uint32_t number)
{
    return number % CONTEXT_IDS;
}

static uint32_t context_number_epoch(uint32_t number)
{
    return number / CONTEXT_IDS;
}

void context_retire(struct proc *p, uint32_t number)
{
    const uint32_t id = context_number_id(number);
    if (!p->context_epochs)
        p->context_epochs = calloc(1, sizeof(*p->context_epochs));
    if (!p->context_epochs)
        return; /* out of memory: this id is not used again */
    p->context_epochs->first[id] = MAX(p->context_epochs->first[id], context_number_epoch(number) + 1);
    p->context_epochs->waiting[id / 64] |= 1ull << id % 64;
}

static int epoch_count_bits(const uint64_t *mask, int from, int to)
{
    int n = 0;
    for (int i = from; i < to; i++)
        n += __builtin_popcountll(mask[i]);
    return n;
}

static bool must_free_retired_ids(const struct proc *p)
{
    return (epoch_count_bits(p->context_mask, 0, CONTEXT_SINGLE_WORDS) < FEW_SINGLE ||
            epoch_count_bits(p->context_mask, CONTEXT_SINGLE_WORDS, CONTEXT_WORDS) < FEW_SHARED) &&
           epoch_count_bits(p->context_epochs->waiting, 0, CONTEXT_WORDS) >= MANY;
}

void context_free_retired_ids(struct proc *p, bool needed)
{
    struct context_epochs *e = p->context_epochs;
    bool any = false;
    if (!e || !(needed || must_free_retired_ids(p)))
        return;
    for (uint32_t id = 0; id < CONTEXT_IDS; id++) {
        const uint64_t bit = 1ull << id % 64;
        if (!(e->waiting[id / 64] & bit) || e->first[id] >= CONTEXT_EPOCHS)
            continue;
        e->waiting[id / 64] &= ~bit;
        p->context_mask[id / 64] |= bit;
        p->context_epoch = MAX(p->context_epoch, e->first[id]);
        any = true;
    }
    if (any && p->p2p && p2p_has_faults(p->p2p))
        p2p_recheck_faults(p->p2p); /* discards the unreceived messages of these communicators */
}

bool context_is_retired(const struct proc *p, uint32_t context)
{
    const uint32_t number = context / 2;
    return p->context_epochs && number < CONTEXT_EPOCHS * CONTEXT_IDS && !context_is_current(p, number);
}

bool context_is_current(const struct proc *p, uint32_t number)
{
    return !p->context_epochs ||
           context_number_epoch(number) >= p->context_epochs->first[context_number_id(number)];
}

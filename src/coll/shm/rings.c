/* rings.c: the big slots of a shared block. The first call that needs big slots opens few of them. A
 * communicator whose calls continue to fill slots replaces them by many slots, so that each slot is reused
 * later (block.h). All ranks are in the same call when slots are opened, and synchronise there, so that no
 * rank still reads the old slots.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "coll/shm/block.h"

#define NONE UINT64_MAX

/* Slots that are being opened: argument of a wait for the other ranks. */
struct opening {
    struct shared_big *big;
    uint32_t ranks;
};

static bool is_offset_published(void *arg)
{
    const struct opening *o = arg;
    return atomic_load_explicit(&o->big->at, memory_order_acquire) != 0;
}

static bool all_have_arrived(void *arg)
{
    const struct opening *o = arg;
    return atomic_load_explicit(&o->big->arrived, memory_order_acquire) >= o->ranks;
}

static size_t ring_length(const struct shared *b, uint32_t depth)
{
    return (size_t)depth * b->head->big_size;
}

static size_t all_rings_length(const struct shared *b, uint32_t depth)
{
    return (size_t)b->comm->size * ring_length(b, depth);
}

/* Returns the number of slots for each rank: as many as fit while memory is left for other communicators;
 * SHARED_DEPTH_FEW means no more slots. Ranks that share processors share a cache, so they need no more
 * slots. */
static uint32_t opening_count_slots(const struct shared *b)
{
    const struct net *net = b->comm->proc->net;
    uint32_t depth = SHARED_DEPTH_FEW;
    while (!net->oversubscribed && net_area_has_free_pages(net) && depth < SHARED_DEPTH_BIG &&
           all_rings_length(b, 2 * depth) <= SHARED_AREA_DEEP)
        depth *= 2;
    return depth;
}

/* Called at rank 0: allocates `depth` slots for each rank if all together have at most `most` bytes, and
 * publishes the offset, or NONE. */
static void opening_publish_offset(struct shared *b, struct shared_big *big, uint32_t depth, size_t most)
{
    uint64_t offset;
    const bool got = depth > 0 && all_rings_length(b, depth) <= most &&
                     net_area_alloc_untouched(b->comm->proc->net, all_rings_length(b, depth), &offset) == 0;
    big->depth = depth;
    atomic_store_explicit(&big->at, got ? offset + 1 : NONE, memory_order_release);
    shared_wake(b, SHARED_EVERYONE);
}

/* True if this rank can read the memory of all other ranks. May block to connect. */
static bool can_read(struct comm *c)
{
    for (int r = 0; r < c->size; r++) {
        struct peer *peer;
        if (r != c->rank && (comm_get_peer(c, r, &peer) != 0 || !peer->caps.get || !peer->caps.cpu_moves))
            return false;
    }
    return true;
}

/* Waits until all ranks have arrived, then switches to the new slots. */
static void opening_switch_slots(struct shared *b, struct opening *o)
{
    if (atomic_fetch_add_explicit(&o->big->arrived, 1, memory_order_seq_cst) + 1 == o->ranks)
        shared_wake(b, SHARED_EVERYONE);
    shared_wait_until(b, all_have_arrived, o);
    b->big = b->comm->proc->net->area + atomic_load_explicit(&o->big->at, memory_order_relaxed) - 1;
    b->big_depth = o->big->depth;
    memset(b->slot_use, 0, sizeof(b->slot_use));
    /* larger slots raise the size limits of short calls: recompute them */
    memset(b->comm->coll->short_limit, 0, sizeof(b->comm->coll->short_limit));
}

static bool wait_memory_granted(struct shared *b, struct opening *o)
{
    shared_wait_until(b, is_offset_published, o);
    return atomic_load_explicit(&o->big->at, memory_order_acquire) != NONE;
}

bool shared_open_big(struct shared *b)
{
    struct opening o = {&b->head->few, (uint32_t)b->comm->size};
    if (likely(b->big != NULL))
        return true;
    if (b->no_big)
        return false;
    if (b->comm->rank == 0)
        opening_publish_offset(b, o.big, SHARED_DEPTH_FEW, SHARED_AREA_MAX);
    b->no_big = !wait_memory_granted(b, &o);
    if (b->no_big)
        return false;
    if (can_read(b->comm))
        atomic_fetch_add_explicit(&b->head->readers, 1, memory_order_relaxed);
    opening_switch_slots(b, &o);
    b->reads = atomic_load_explicit(&b->head->readers, memory_order_relaxed) == o.ranks;
    return true;
}

/* Populates this rank's slots, to avoid page faults in measurements; discards older measurements. */
static void opening_prepare_slots(struct shared *b, const struct opening *o)
{
    const size_t length = ring_length(b, o->big->depth);
    const uint64_t at = atomic_load_explicit(&o->big->at, memory_order_relaxed) - 1;
    net_area_populate(b->comm->proc->net, at + (size_t)b->comm->rank * length, length);
    shared_method_restart(b);
}

static void free_rings(struct shared *b, struct shared_big *big)
{
    const uint64_t at = atomic_load_explicit(&big->at, memory_order_acquire);
    if (at != 0 && at != NONE)
        net_area_free(b->comm->proc->net, at - 1, all_rings_length(b, big->depth));
    atomic_store_explicit(&big->at, NONE, memory_order_relaxed);
}

void shared_open_many(struct shared *b)
{
    struct opening o = {&b->head->many, (uint32_t)b->comm->size};
    if (!shared_open_big(b))
        return;
    if (b->comm->rank == 0) {
        const uint32_t depth = opening_count_slots(b);
        opening_publish_offset(b, o.big, depth > SHARED_DEPTH_FEW ? depth : 0, SHARED_AREA_DEEP);
    }
    if (!wait_memory_granted(b, &o))
        return;
    opening_prepare_slots(b, &o);
    opening_switch_slots(b, &o);
    if (b->comm->rank == 0)
        free_rings(b, &b->head->few);
}

void shared_close_big(struct shared *b)
{
    free_rings(b, &b->head->few);
    free_rings(b, &b->head->many);
}

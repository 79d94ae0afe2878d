/* rings.c: the big slots of a shared block, opened by the first call that needs them, or when the calls of a
 * communicator have filled many small slots. All ranks are in the same call then, and synchronise there, so
 * that no rank still reads the small slots.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "coll/shm/block.h"

#define NONE UINT64_MAX

/* Slots that are being opened: argument of a wait for the other ranks. */
struct opening {
    struct shared_head *head;
    uint32_t ranks;
};

static bool is_offset_published(void *arg)
{
    const struct opening *o = arg;
    return atomic_load_explicit(&o->head->big_at, memory_order_acquire) != 0;
}

static bool all_have_arrived(void *arg)
{
    const struct opening *o = arg;
    return atomic_load_explicit(&o->head->big_arrived, memory_order_acquire) >= o->ranks;
}

static size_t all_rings_length(const struct shared *b, uint32_t depth)
{
    return (size_t)b->comm->size * depth * b->head->big_size;
}

/* Returns the number of slots for each rank: as many as fit while memory is left for other communicators; 0
 * if there is no memory. Ranks that share processors share a cache, so they need no more slots. */
static uint32_t opening_count_slots(const struct shared *b)
{
    const struct net *net = b->comm->proc->net;
    uint32_t depth = SHARED_DEPTH_FEW;
    if (all_rings_length(b, depth) > SHARED_AREA_MAX)
        return 0;
    while (!net->oversubscribed && net_area_has_free_pages(net) && depth < SHARED_DEPTH_BIG &&
           all_rings_length(b, 2 * depth) <= SHARED_AREA_DEEP)
        depth *= 2;
    return depth;
}

/* Called at rank 0: allocates the slots of all ranks and publishes their offset, or NONE. */
static void opening_publish_offset(struct shared *b)
{
    struct shared_head *head = b->head;
    const uint32_t depth = opening_count_slots(b);
    uint64_t offset;
    const bool got =
        depth > 0 && net_area_alloc_untouched(b->comm->proc->net, all_rings_length(b, depth), &offset) == 0;
    head->big_depth = depth;
    atomic_store_explicit(&head->big_at, got ? offset + 1 : NONE, memory_order_release);
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

/* Waits until all ranks have arrived, then switches to the big slots. Populates this rank's slots before, so
 * that the first calls are not measured with page faults. */
static void opening_switch_slots(struct shared *b, struct opening *o)
{
    struct net *net = b->comm->proc->net;
    const uint64_t at = atomic_load_explicit(&o->head->big_at, memory_order_relaxed) - 1;
    const size_t length = all_rings_length(b, o->head->big_depth) / o->ranks;
    net_area_populate(net, at + (size_t)b->comm->rank * length, length);
    if (atomic_fetch_add_explicit(&o->head->big_arrived, 1, memory_order_seq_cst) + 1 == o->ranks)
        shared_wake(b, SHARED_EVERYONE);
    shared_wait_until(b, all_have_arrived, o);
    b->big = net->area + at;
    b->big_depth = o->head->big_depth;
    memset(b->slot_use, 0, sizeof(b->slot_use));
    /* larger slots raise the size limits of short calls: recompute them */
    memset(b->comm->coll->short_limit, 0, sizeof(b->comm->coll->short_limit));
}

bool shared_open_big(struct shared *b)
{
    struct opening o = {b->head, (uint32_t)b->comm->size};
    if (likely(b->big != NULL))
        return true;
    if (b->no_big)
        return false;
    if (b->comm->rank == 0)
        opening_publish_offset(b);
    shared_wait_until(b, is_offset_published, &o);
    b->no_big = atomic_load_explicit(&o.head->big_at, memory_order_acquire) == NONE;
    if (b->no_big)
        return false;
    if (can_read(b->comm))
        atomic_fetch_add_explicit(&b->head->readers, 1, memory_order_relaxed);
    opening_switch_slots(b, &o);
    b->reads = atomic_load_explicit(&b->head->readers, memory_order_relaxed) == o.ranks;
    return true;
}

void shared_close_big(struct shared *b)
{
    const uint64_t at = atomic_load_explicit(&b->head->big_at, memory_order_acquire);
    if (at != 0 && at != NONE)
        net_area_free(b->comm->proc->net, at - 1, all_rings_length(b, b->head->big_depth));
}

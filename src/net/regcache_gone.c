/* regcache_gone.c: announces released memory to the thread that uses the registration cache. No announcement
 * is missed: the program itself orders the release of memory after its caching, so the releasing thread sees
 * the count of cached ranges; and it orders the reuse of the address after the release, so the thread that
 * uses the cache sees `announced` change.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/regcache_gone.h"

#define AREA_BITS 21 /* areas of 2 MiB, which large blocks of an allocator rarely share */
#define AREAS_MAX 64 /* ranges over more areas are not counted by area */
#define ATTEMPTS  16

enum { PLACE_EMPTY, PLACE_TAKEN, PLACE_FULL };

static _Atomic unsigned *gone_area_counter(struct gone *g, uintptr_t number)
{
    return &g->areas[((uint64_t)number * 0x9e3779b97f4a7c15u) >> 54];
}
_Static_assert(GONE_AREAS == 1 << 10, "the hash gives 10 bits");

static bool range_is_large(uintptr_t start, uintptr_t end)
{
    return ((end - 1) >> AREA_BITS) - (start >> AREA_BITS) >= AREAS_MAX;
}

static void gone_count_range(struct gone *g, uintptr_t start, uintptr_t end, unsigned by)
{
    atomic_fetch_add(&g->ranges, by);
    if (range_is_large(start, end)) {
        atomic_fetch_add(&g->large, by);
        return;
    }
    for (uintptr_t i = start >> AREA_BITS; i <= (end - 1) >> AREA_BITS; i++)
        atomic_fetch_add(gone_area_counter(g, i), by);
}

void gone_add_cached(struct gone *g, uintptr_t start, uintptr_t end)
{
    gone_count_range(g, start, end, 1);
}

void gone_remove_cached(struct gone *g, uintptr_t start, uintptr_t end)
{
    gone_count_range(g, start, end, -1u);
}

static bool may_be_cached(struct gone *g, uintptr_t start, uintptr_t end)
{
    if (atomic_load(&g->ranges) == 0)
        return false;
    if (atomic_load(&g->large) != 0 || range_is_large(start, end))
        return true;
    for (uintptr_t i = start >> AREA_BITS; i <= (end - 1) >> AREA_BITS; i++)
        if (atomic_load(gone_area_counter(g, i)) != 0)
            return true;
    return false;
}

static bool gone_store_range(struct gone *g, uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        unsigned at = atomic_fetch_add_explicit(&g->next, 1, memory_order_relaxed) % GONE_PLACES;
        struct gone_place *p = &g->places[at];
        int empty = PLACE_EMPTY;
        if (!atomic_compare_exchange_strong_explicit(&p->state, &empty, PLACE_TAKEN, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        p->start = start;
        p->end = end;
        atomic_store_explicit(&p->state, PLACE_FULL, memory_order_release);
        return true;
    }
    return false;
}

void gone_announce_range(struct gone *g, uintptr_t start, size_t length)
{
    uintptr_t end = start + length;
    if (end < start)
        end = UINTPTR_MAX;
    if (length == 0 || !may_be_cached(g, start, end))
        return;
    if (!gone_store_range(g, start, end))
        atomic_store(&g->lost, true);
    atomic_fetch_add(&g->announced, 1);
}

/* A place that another thread is still filling is processed by the next call. */
void gone_process_all(struct gone *g, void (*fn)(void *arg, uintptr_t start, uintptr_t end), void *arg)
{
    g->taken = atomic_load_explicit(&g->announced, memory_order_acquire);
    if (atomic_exchange(&g->lost, false))
        fn(arg, 0, UINTPTR_MAX);
    for (int i = 0; i < GONE_PLACES; i++) {
        struct gone_place *p = &g->places[i];
        if (atomic_load_explicit(&p->state, memory_order_acquire) != PLACE_FULL)
            continue;
        uintptr_t start = p->start, end = p->end;
        atomic_store_explicit(&p->state, PLACE_EMPTY, memory_order_release);
        fn(arg, start, end);
    }
}

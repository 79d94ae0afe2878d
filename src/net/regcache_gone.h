/* regcache_gone.h: announcements of released memory. Any thread makes them, inside free() or a signal
 * handler; the thread that uses the cache processes them. An announcement takes no lock and never waits: the
 * number of places is fixed, and when all are full only a flag records that announcements were lost. A count
 * of cached ranges by coarse address filters out most memory that a program frees.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_REGCACHE_GONE_H
#define FP_NET_REGCACHE_GONE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GONE_PLACES = 256, GONE_AREAS = 1024 };

struct gone_place {
    _Atomic int state;
    uintptr_t start, end;
};

struct gone {
    _Atomic uint64_t announced;
    uint64_t taken; /* value of `announced` when announcements were last processed */
    _Atomic unsigned next;
    _Atomic bool lost;
    struct gone_place places[GONE_PLACES];
    _Atomic unsigned ranges; /* number of cached ranges */
    _Atomic unsigned large;  /* number of cached ranges that are too large to be counted in `areas` */
    _Atomic unsigned
        areas[GONE_AREAS]; /* cached ranges per 2 MiB of addresses (hashed: areas may share a count) */
};

/* A zero-filled struct gone is initialised. */

/* Records that [start, start + length) is being released. Callable from any thread. */
void gone_announce_range(struct gone *g, uintptr_t start, size_t length);

/* Called by the owner of the cache when a range enters or leaves the cache. */
void gone_add_cached(struct gone *g, uintptr_t start, uintptr_t end);
void gone_remove_cached(struct gone *g, uintptr_t start, uintptr_t end);

/* Calls fn for every range announced since the last call; for (0, UINTPTR_MAX) if announcements were lost. */
void gone_process_all(struct gone *g, void (*fn)(void *arg, uintptr_t start, uintptr_t end), void *arg);

static inline void gone_process_new(struct gone *g, void (*fn)(void *arg, uintptr_t start, uintptr_t end),
                                    void *arg)
{
    if (__builtin_expect(atomic_load_explicit(&g->announced, memory_order_acquire) != g->taken, 0))
        gone_process_all(g, fn, arg);
}

#endif

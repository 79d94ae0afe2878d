/* regcache_gone.h: announcements of memory that was unmapped. Any thread makes them, from inside free() or a
 * signal handler; the thread that uses the cache processes them. An announcement takes no lock and never
 * waits: there is a fixed number of places, and when they are full only the fact is recorded that something
 * was lost. A count of cached ranges by coarse address filters out most memory that a program frees.
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
    uint64_t taken; /* `announced` when it was last taken */
    _Atomic unsigned next;
    _Atomic bool lost;
    struct gone_place places[GONE_PLACES];
    _Atomic unsigned ranges; /* cached ranges in all */
    _Atomic unsigned large;  /* of these, too large for the next */
    _Atomic unsigned
        areas[GONE_AREAS]; /* ranges that touch an area of addresses (several areas share a count) */
};

/* All zero is a good beginning. */

/* Records that [start, start + length) is being released. Callable from any thread. */
void gone_announce_range(struct gone *g, uintptr_t start, size_t length);

/* For the owner of the cache: a range is cached from now on, or no more. */
void gone_add_cached(struct gone *g, uintptr_t start, uintptr_t end);
void gone_remove_cached(struct gone *g, uintptr_t start, uintptr_t end);

/* Hands over everything announced since the last call; (0, UINTPTR_MAX) when something was lost. */
void gone_process_all(struct gone *g, void (*fn)(void *arg, uintptr_t start, uintptr_t end), void *arg);

static inline void gone_process_new(struct gone *g, void (*fn)(void *arg, uintptr_t start, uintptr_t end),
                                    void *arg)
{
    if (__builtin_expect(atomic_load_explicit(&g->announced, memory_order_acquire) != g->taken, 0))
        gone_process_all(g, fn, arg);
}

#endif

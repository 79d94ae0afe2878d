/* base.h: utilities for all files of softib: clock, messages to the user, locks among the threads of one
 * process, random numbers. Locks among processes are in fabric/shlock.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_BASE_H
#define SOFTIB_BASE_H

#include "arch.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define SOFTIB_API                    __attribute__((visibility("default")))
#define COLD                          __attribute__((noinline, cold))
#define LIKELY(x)                     __builtin_expect(!!(x), 1)
#define UNLIKELY(x)                   __builtin_expect(!!(x), 0)
#define CACHELINE                     64
#define CONTAINER_OF(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#define ARRAY_LEN(a)                  (sizeof(a) / sizeof((a)[0]))

#define NS_US 1000ull
#define NS_MS 1000000ull
#define NS_S  1000000000ull
#define NEVER UINT64_MAX

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Prints a line for the user on standard error, with the prefix "softib: ", unless SOFTIB_LOG=0 is set. */
void softib_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Waits one turn of a spin loop: a processor pause in the first turns, sched_yield later. *turn counts the
 * turns. */
void spin_wait(unsigned *turn);

/* A lock among the threads of one process. */
struct lock {
    atomic_uint held;
};

static inline bool lock_try(struct lock *l)
{
    return !atomic_load_explicit(&l->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&l->held, 1, memory_order_acquire);
}

static inline void spinlock_acquire(struct lock *l)
{
    unsigned turn = 0;
    while (!lock_try(l))
        spin_wait(&turn);
}

static inline void spinlock_release(struct lock *l)
{
    atomic_store_explicit(&l->held, 0, memory_order_release);
}

/* xorshift64*, for the faults of the fabric: the same seed gives the same faults. */
static inline uint64_t rng_next(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 2685821657736338717ull;
}

/* Unpredictable random bytes from the kernel, for object numbers, socket names and challenges. */
void random_bytes(void *p, size_t n);

static inline uint64_t random_u64(void)
{
    uint64_t v;
    random_bytes(&v, sizeof(v));
    return v;
}

static inline uint64_t hash_bytes(const void *p, size_t n, uint64_t h)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 1099511628211ull;
    return h;
}

#endif

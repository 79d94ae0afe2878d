/* regcache.h: the registration cache (pin-down cache): memory stays registered after its last use (lazy
 * deregistration), so that a buffer that is used again needs no registration [Liu04 4.1.2], [Shipman06 4.3,
 * 5.1].
 *
 * Entries are in an interval tree. When the limit of registered bytes is exceeded, unused entries are
 * deregistered, least recently used first. When memory is unmapped or changed (munmap, mremap, madvise, a
 * shrinking heap), memhook.h notifies the cache, which drops the entries that overlap. The cache does not
 * depend on verbs: the owner passes functions that register and deregister.
 *
 * All calls but regcache_invalidate are made by one thread at a time (the big lock).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_REGCACHE_H
#define FP_NET_REGCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/transport.h"

struct regcache;

struct regcache_ops {
    /* Pins whole pages: 0, or an MPI error class with a message in err_detail. MPI_ERR_NO_MEM: memory,
     * RLIMIT_MEMLOCK or regions of the device are exhausted, and unpinning other memory may help. */
    int (*pin)(void *ctx, void *address, size_t len, void **handle);
    void (*unpin)(void *ctx, void *handle);
};

/* A pinned range; valid from regcache_get to regcache_put. */
struct regcache_entry {
    uintptr_t address; /* page-aligned */
    size_t length;
    void *handle; /* from pin */
};

struct regcache_stats {
    uint64_t hits, misses, evictions, invalidations;
    size_t pinned; /* bytes, in use or not */
    size_t idle;   /* pinned bytes that are not in use */
};

/* Returns the budget for regcache_open: FISHPLATE_REG_CACHE; by default at most this rank's share of a
 * quarter of the memory. */
size_t regcache_budget(uint32_t ranks_on_node);

/* budget: bytes that may stay pinned without being in use; 0 turns caching off. */
int regcache_open(const struct regcache_ops *ops, void *ctx, size_t budget, struct regcache **out);
void regcache_close(struct regcache *c);

/* Connects the cache to the memory hooks. If the hooks do not work in this process, caching is turned off,
 * the reason is logged once (level info), and false is returned. Without hooks the caller must call
 * regcache_invalidate. */
bool regcache_watch(struct regcache *c);

/* Returns an entry that covers the range (len > 0), from the cache or newly pinned. If pinning fails for lack
 * of resources, unused entries are evicted and pinning is retried. alone: the range is a piece of a larger
 * buffer, and is pinned without adjacent cached ranges. */
int regcache_get(struct regcache *c, const void *address, size_t len, bool alone,
                 struct regcache_entry **out);
/* The cost of registration (moving averages). */
struct net_pin regcache_get_pin_cost(const struct regcache *c);
void regcache_put(struct regcache *c, struct regcache_entry *e);

/* True if a range that is in use covers these bytes and `meant` returns true for its handle. Reads all
 * entries in use: for rare calls. */
bool regcache_in_use(const struct regcache *c, uintptr_t address, size_t len,
                     bool (*meant)(const void *handle, const void *arg), const void *arg);

/* Unpins memory whose release was announced since the last call. Get and put do it too; a transport that
 * polls without calling either calls this from time to time, so that freed memory does not stay pinned. One
 * load if nothing was announced. */
void regcache_sweep(struct regcache *c);

/* Must be called before the range is unmapped or changed. The next get, put or sweep drops overlapping
 * entries that are unused; the last put drops those in use. May be called from any thread, inside free() and
 * in a signal handler: takes no lock and allocates nothing. */
void regcache_invalidate(struct regcache *c, uintptr_t address, size_t len);

void regcache_stats(const struct regcache *c, struct regcache_stats *out);

#endif

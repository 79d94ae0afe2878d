/* regcache.c: the registration cache; see regcache.h.
 *
 * Why a cached entry is never stale when it is used: the release of memory is announced first (memhook.h),
 * and its address can be reused only afterwards; regcache_get processes announcements before each lookup. The
 * pages of a request belong to the caller, who does not unmap them during the registration. Pages that are
 * registered along with them (the union with overlapping entries) may be unmapped at any moment, but not
 * unnoticed: they were cached before, so their release is announced, and the announcement is processed when
 * the new entry is in the tree.
 *
 * After fork the parent's registrations stay valid if the kernel copies pinned pages for the child (Linux
 * 5.12) or if the transport made verbs hide them from the child (ibv_fork_init); the transport decides which.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/regcache.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/err.h"
#include "base/interval.h"
#include "base/list.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/tunable.h"
#include "net/memhook.h"
#include "net/memhook/library.h"
#include "net/memlock.h"
#include "net/regcache_gone.h"

static TUNABLE_SIZE(reg_cache, "REG_CACHE", 1 << 30, 0, (int64_t)1 << 40,
                    "Bytes that a rank keeps registered with the network after use, because they may be used "
                    "again. 0: register for each message. Unless it is set, at most the rank's share of a "
                    "quarter of the node's memory.");

static COUNTER(reg_hits, "reg_hits", "Buffers found in the registration cache.");
static COUNTER(reg_misses, "reg_misses",
               "Buffers not found in the registration cache, which had to be registered.");
static COUNTER(reg_evictions, "reg_evictions",
               "Registrations evicted from the cache to make room for others.");
static COUNTER(reg_invalidations, "reg_invalidations",
               "Registrations dropped because their memory was unmapped or changed.");
static COUNTER(reg_pinned_bytes, "reg_pinned_bytes",
               "Bytes registered with the network; bytes that are registered again count again.");

#define PIN_UNIT    65536u
#define PIN_FORGETS 4 /* weight of a new sample in the moving average: 1 / PIN_FORGETS */

#define PIN_LONG (256u << 10) /* bytes: longer ranges have a separate average */

struct pin_average {
    double ns, bytes;
};

struct pinned {
    struct regcache_entry entry;
    struct interval range;
    struct list link; /* in regcache.used or regcache.idle */
    unsigned users;
    bool cached;  /* the entry is in the tree; otherwise the last regcache_put deregisters it */
    bool library; /* memory of a shared library: dlclose releases it without a hook */
};

struct regcache {
    const struct regcache_ops *ops;
    void *ctx;
    size_t budget, page;
    struct interval_tree tree;
    struct list idle; /* least recently used first */
    struct list used;
    struct gone gone;
    struct pool entries; /* struct pinned; a pool, so that the heap can shrink */
    struct regcache_stats stats;
    struct pin_average averages[2]; /* cost of short and of long ranges */
    uint64_t unloads; /* value of library_count_unloads() when entries in library memory were last checked */
    unsigned generation; /* value of the global `generation` at regcache_open */
    bool watched;
};

static _Atomic unsigned generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* Makes every cache inert in a forked child, because the parent owns the registrations: get fails, put and
 * close only free memory. Called by a handler of pthread_atfork; also for children created without it. */
static void regcache_after_fork_child(void)
{
    atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, regcache_after_fork_child);
}

static bool regcache_is_inherited(const struct regcache *c)
{
    return unlikely(atomic_load_explicit(&generation, memory_order_relaxed) != c->generation);
}

size_t regcache_budget(uint32_t ranks_on_node)
{
    uint64_t budget = (uint64_t)reg_cache.value;
    if (reg_cache.source != SOURCE_DEFAULT)
        return budget;
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    budget = MIN(budget, memory / 4 / MAX(ranks_on_node, 1));
    return MIN(budget, memlock_limit() / 2); /* the other half is for memory in use */
}

int regcache_open(const struct regcache_ops *ops, void *ctx, size_t budget, struct regcache **out)
{
    struct regcache *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the registration cache");
    pthread_once(&fork_once, watch_forks);
    c->ops = ops;
    c->ctx = ctx;
    c->budget = budget;
    c->page = (size_t)sysconf(_SC_PAGESIZE);
    c->generation = atomic_load(&generation);
    c->unloads = library_count_unloads();
    list_init(&c->idle);
    list_init(&c->used);
    pool_init_objects(&c->entries, sizeof(struct pinned), 32);
    *out = c;
    return 0;
}

/* Frees an entry that is in no tree and no list. */
static void regcache_release(struct regcache *c, struct pinned *p)
{
    c->stats.pinned -= p->entry.length;
    c->ops->unpin(c->ctx, p->entry.handle);
    pool_put(&c->entries, p);
}

/* Removes the entry from the cache; it is deregistered now, or by its last user. */
static void regcache_uncache(struct regcache *c, struct pinned *p)
{
    interval_remove(&c->tree, &p->range);
    gone_remove_cached(&c->gone, p->range.start, p->range.end);
    p->cached = false;
    if (p->users > 0)
        return;
    list_remove(&p->link);
    c->stats.idle -= p->entry.length;
    regcache_release(c, p);
}

static void regcache_invalidate_entry(struct regcache *c, struct pinned *p)
{
    c->stats.invalidations++;
    counter_add(&reg_invalidations, 1);
    regcache_uncache(c, p);
}

static struct pinned *first_overlap(struct regcache *c, uintptr_t start, uintptr_t end)
{
    struct interval *n = interval_overlap(&c->tree, start, end);
    return n ? container_of(n, struct pinned, range) : NULL;
}

static struct pinned *next_overlap(struct regcache *c, struct pinned *p, uintptr_t start, uintptr_t end)
{
    struct interval *n = interval_overlap_next(&c->tree, &p->range, start, end);
    return n ? container_of(n, struct pinned, range) : NULL;
}

static void forget_range(void *arg, uintptr_t start, uintptr_t end)
{
    struct regcache *c = arg;
    for (struct pinned *p; (p = first_overlap(c, start, end)) != NULL;)
        regcache_invalidate_entry(c, p);
}

/* Drops all entries in library memory after a dlclose: such memory may have been unmapped, and other memory
 * mapped at the same address. */
static void forget_unloaded(struct regcache *c)
{
    uint64_t now = library_count_unloads();
    if (now == c->unloads)
        return;
    c->unloads = now;
    for (struct pinned *p = first_overlap(c, 0, UINTPTR_MAX), *next; p; p = next) {
        next = next_overlap(c, p, 0, UINTPTR_MAX);
        if (p->library)
            regcache_invalidate_entry(c, p);
    }
}

/* Removes entries whose memory was released. */
static void regcache_remove_released(struct regcache *c)
{
    gone_process_new(&c->gone, forget_range, c);
    if (c->watched && c->budget > 0 && unlikely(!memhook_is_intact())) {
        log_warn("another library has replaced the functions Fishplate put in place of libc's munmap and "
                 "its like; from now on memory is registered again for each message. Set "
                 "FISHPLATE_MEM_HOOKS=off to leave libc alone from the start");
        c->budget = 0;
        forget_range(c, 0, UINTPTR_MAX);
    }
}

static struct pinned *regcache_find(struct regcache *c, uintptr_t start, uintptr_t end)
{
    struct interval *n = interval_find_covering(&c->tree, start, end);
    if (!n)
        return NULL;
    struct pinned *p = container_of(n, struct pinned, range);
    if (likely(!p->library))
        return p;
    forget_unloaded(c);
    n = interval_find_covering(&c->tree, start, end);
    return n ? container_of(n, struct pinned, range) : NULL;
}

/* Evicts idle entries, oldest first, until `bytes` are free; false when there were none. */
static bool regcache_evict(struct regcache *c, size_t bytes)
{
    size_t freed = 0;
    while (freed < bytes && !list_empty(&c->idle)) {
        struct pinned *p = list_entry(list_first(&c->idle), struct pinned, link);
        freed += p->entry.length;
        c->stats.evictions++;
        counter_add(&reg_evictions, 1);
        regcache_uncache(c, p);
    }
    return freed > 0;
}

/* Records the cost of registering short and long ranges. regcache_get_pin_cost derives from these averages the cost of
 * a registration and the cost of a page. */
static void record_registration_cost(struct regcache *c, size_t bytes, uint64_t ns)
{
    struct pin_average *a = &c->averages[bytes >= PIN_LONG];
    const double part = a->bytes == 0 ? 1 : 1.0 / PIN_FORGETS;
    a->ns += ((double)ns - a->ns) * part;
    a->bytes += ((double)bytes - a->bytes) * part;
}

static int regcache_pin_range(struct regcache *c, struct pinned *p, uintptr_t start, uintptr_t end)
{
    const uint64_t began = clock_ns();
    int rc = c->ops->pin(c->ctx, (void *)start, end - start, &p->entry.handle);
    if (rc != 0)
        return rc;
    record_registration_cost(c, end - start, clock_ns() - began);
    p->entry.address = p->range.start = start;
    p->range.end = end;
    p->entry.length = end - start;
    c->stats.pinned += end - start;
    counter_add(&reg_pinned_bytes, end - start);
    return 0;
}

/* Removes the entries inside a range that will be pinned, so that no page is pinned twice. */
static void forget_covered(struct regcache *c, uintptr_t start, uintptr_t end)
{
    for (struct pinned *p = first_overlap(c, start, end), *next; p; p = next) {
        next = next_overlap(c, p, start, end);
        if (start <= p->range.start && p->range.end <= end)
            regcache_uncache(c, p);
    }
}

/* Extends the range by all entries that overlap it, unless it would become disproportionately large. */
static bool regcache_extend_by_overlaps(struct regcache *c, uintptr_t *start, uintptr_t *end)
{
    uintptr_t s = *start, e = *end;
    for (struct pinned *p = first_overlap(c, *start, *end); p; p = next_overlap(c, p, *start, *end)) {
        s = MIN(s, p->range.start);
        e = MAX(e, p->range.end);
    }
    if (e - s == *end - *start || e - s > 2 * (*end - *start) || e - s > c->budget)
        return false;
    *start = s;
    *end = e;
    return true;
}

/* Pins the range; evicts other entries as long as that may help. */
static int pin_or_evict(struct regcache *c, struct pinned *p, uintptr_t start, uintptr_t end)
{
    int rc = regcache_pin_range(c, p, start, end);
    while (rc == MPI_ERR_NO_MEM && regcache_evict(c, end - start)) {
        err_clear(); /* the call may still succeed: no error to report */
        rc = regcache_pin_range(c, p, start, end);
    }
    return rc;
}

/* Pins and caches a range. The new range is counted (gone_add_cached) before the entries that it replaces are
 * removed: otherwise a release of their memory in between would not be announced. */
static int regcache_pin_cached(struct regcache *c, struct pinned *p, uintptr_t start, uintptr_t end,
                               bool hard)
{
    gone_add_cached(&c->gone, start, end);
    forget_covered(c, start, end);
    int rc = hard ? pin_or_evict(c, p, start, end) : regcache_pin_range(c, p, start, end);
    if (rc != 0) {
        gone_remove_cached(&c->gone, start, end);
        return rc;
    }
    p->cached = true;
    p->library = library_holds(start, end - start);
    interval_insert(&c->tree, &p->range);
    return 0;
}

/* Registers the range together with the entries that overlap it; if that fails, the range alone. */
static int regcache_pin_new(struct regcache *c, struct pinned *p, uintptr_t start, uintptr_t end, bool alone)
{
    uintptr_t s = start, e = end;
    if (c->budget == 0)
        return regcache_pin_range(c, p, start, end);
    forget_unloaded(c);
    if (!alone && regcache_extend_by_overlaps(c, &s, &e)) {
        if (regcache_pin_cached(c, p, s, e, false) == 0)
            return 0;
        err_clear();
    }
    return regcache_pin_cached(c, p, start, end, true);
}

static int regcache_create_entry(struct regcache *c, uintptr_t start, uintptr_t end, bool alone,
                                 struct pinned **out)
{
    struct pinned *p = pool_get(&c->entries);
    if (!p)
        return MPI_ERR_NO_MEM;
    *p = (struct pinned){.users = 0};
    list_init(&p->link);
    c->stats.misses++;
    counter_add(&reg_misses, 1);
    int rc = regcache_pin_new(c, p, start, end, alone);
    if (rc != 0) {
        pool_put(&c->entries, p);
        return rc;
    }
    p->users = 1;
    list_append(&c->used, &p->link);
    *out = p;
    return 0;
}

static void reuse_entry(struct regcache *c, struct pinned *p)
{
    c->stats.hits++;
    counter_add(&reg_hits, 1);
    if (p->users++ == 0) {
        list_remove(&p->link);
        list_append(&c->used, &p->link);
        c->stats.idle -= p->entry.length;
    }
}

int regcache_get(struct regcache *c, const void *address, size_t len, bool alone, struct regcache_entry **out)
{
    uintptr_t page = c->page, start = (uintptr_t)address & ~(page - 1);
    uintptr_t end = ((uintptr_t)address + len + page - 1) & ~(page - 1);
    ASSERT(len > 0);
    if (regcache_is_inherited(c))
        return err_set(MPI_ERR_OTHER, "a process that was forked from an MPI process cannot communicate");
    if (end <= start)
        return err_set(MPI_ERR_BUFFER, "a buffer of %zu bytes at %p does not fit in memory", len, address);

    regcache_remove_released(c);
    struct pinned *p = regcache_find(c, start, end);
    if (p) {
        reuse_entry(c, p);
    } else {
        int rc = regcache_create_entry(c, start, end, alone, &p);
        if (rc != 0)
            return rc;
    }
    *out = &p->entry;
    return 0;
}

struct net_pin regcache_get_pin_cost(const struct regcache *c)
{
    const struct pin_average *few = &c->averages[0], *many = &c->averages[1];
    if (many->bytes == 0)
        return (struct net_pin){0}; /* no long range was pinned yet */
    double byte = many->ns / many->bytes, base = 0;
    if (few->bytes > 0) {
        byte = many->ns > few->ns ? (many->ns - few->ns) / (many->bytes - few->bytes) : 0;
        base = few->ns > byte * few->bytes ? few->ns - byte * few->bytes : 0;
    }
    return (struct net_pin){(uint32_t)MIN(base, 1e9), (uint32_t)MIN(byte * PIN_UNIT, 1e9)};
}

void regcache_put(struct regcache *c, struct regcache_entry *e)
{
    struct pinned *p = container_of(e, struct pinned, entry);
    if (regcache_is_inherited(c)) {
        if (--p->users == 0 && !p->cached)
            pool_put(&c->entries, p);
        return;
    }
    if (--p->users == 0) {
        list_remove(&p->link);
        if (p->cached) {
            if (p->entry.length > c->budget) /* evicted first: a long entry would displace all others */
                list_prepend(&c->idle, &p->link);
            else
                list_append(&c->idle, &p->link);
            c->stats.idle += p->entry.length;
        } else {
            regcache_release(c, p);
        }
    }
    gone_process_new(&c->gone, forget_range, c);
    if (c->stats.idle > c->budget)
        regcache_evict(c, c->stats.idle - c->budget);
}

bool regcache_in_use(const struct regcache *c, uintptr_t address, size_t len,
                     bool (*meant)(const void *handle, const void *arg), const void *arg)
{
    list_foreach(pos, &c->used)
    {
        const struct pinned *p = list_entry(pos, struct pinned, link);
        if (address >= p->range.start && address <= p->range.end && len <= p->range.end - address &&
            meant(p->entry.handle, arg))
            return true;
    }
    return false;
}

void regcache_sweep(struct regcache *c)
{
    if (!regcache_is_inherited(c))
        gone_process_new(&c->gone, forget_range, c);
}

void regcache_invalidate(struct regcache *c, uintptr_t address, size_t len)
{
    gone_announce_range(&c->gone, address, len);
}

static void on_memory_release(void *ctx, uintptr_t address, size_t len)
{
    regcache_invalidate(ctx, address, len);
}

bool regcache_watch(struct regcache *c)
{
    static bool said;
    const char *why = NULL;
    if (c->budget == 0)
        return false;
    c->watched = memhook_open(on_memory_release, c, &why);
    if (c->watched)
        return true;
    c->budget = 0;
    forget_range(c, 0, UINTPTR_MAX);
    if (!said)
        log_info("memory is registered again for each message, because Fishplate cannot notice when "
                 "memory is unmapped: %s",
                 why);
    said = true;
    return false;
}

void regcache_close(struct regcache *c)
{
    bool own =
        !regcache_is_inherited(c); /* entries still in use belong to windows that the program did not free */
    if (own && c->watched)
        memhook_close(on_memory_release, c);
    for (struct pinned *p; (p = first_overlap(c, 0, UINTPTR_MAX)) != NULL;) {
        if (own) {
            regcache_uncache(c, p);
        } else {
            interval_remove(&c->tree, &p->range);
            pool_put(&c->entries, p);
        }
    }
    if (own || !c->watched) { /* in a forked child the hooks may still call the cache */
        pool_destroy(&c->entries);
        free(c);
    }
}

void regcache_stats(const struct regcache *c, struct regcache_stats *out)
{
    *out = c->stats;
}

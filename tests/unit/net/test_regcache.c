/* test_regcache.c: the registration cache with simulated pins: hits, evictions and their order, and a long
 * random run in which memory is released all the time and the cache must never return a stale
 * registration.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/tunable.h"
#include "base/util.h"
#include "net/memhook/library.h"
#include "net/regcache_gone.h"
#include "pins.h"

static struct pins pins;
static uint64_t page_contents[PIN_PAGES];
static struct regcache *cache;
static size_t page;

static uint64_t page_content(struct pins *p, size_t index)
{
    (void)p;
    return page_contents[index];
}

/* Simulated addresses: the tests never read the memory. */
static void *page_address(size_t index)
{
    return (void *)(pins.base + index * page);
}

static void open_cache(size_t budget_pages)
{
    pins = (struct pins){.base = (uintptr_t)1 << 44, .page = page, .content = page_content};
    for (int i = 0; i < PIN_PAGES; i++)
        page_contents[i] = 1;
    EXPECT_EQ(regcache_open(&pins_ops, &pins, budget_pages * page, &cache), 0);
}

static void close_cache(void)
{
    regcache_close(cache);
    EXPECT_EQ(pins.pinned, pins.unpinned);
    EXPECT_EQ(pins.bytes, 0);
}

static struct regcache_entry *acquire_pages(size_t first, size_t n)
{
    struct regcache_entry *e = NULL;
    EXPECT_EQ(regcache_get(cache, page_address(first), n * page, false, &e), 0);
    EXPECT(e && pins_are_current(&pins, e, (uintptr_t)page_address(first), n * page));
    return e;
}

static void acquire_and_release(size_t first, size_t n)
{
    regcache_put(cache, acquire_pages(first, n));
}

static void expect_stats(uint64_t test_hits, uint64_t misses, uint64_t evictions, uint64_t invalidations)
{
    struct regcache_stats s;
    regcache_stats(cache, &s);
    EXPECT_EQ(s.hits, test_hits);
    EXPECT_EQ(s.misses, misses);
    EXPECT_EQ(s.evictions, evictions);
    EXPECT_EQ(s.invalidations, invalidations);
    EXPECT_EQ(s.pinned, pins.bytes);
}

static void test_hits(void)
{
    struct regcache_entry *e;
    open_cache(100);
    acquire_and_release(10, 4);
    acquire_and_release(10, 4);
    acquire_and_release(12, 1); /* a hit: page 12 is inside the entry of pages 10 to 13 */
    /* A hit: the range begins within page 11 and ends in page 12. */
    EXPECT_EQ(regcache_get(cache, (char *)page_address(11) + 100, page + 7, false, &e), 0);
    struct regcache_entry *again = acquire_pages(10, 4);
    EXPECT(again == e); /* one entry, two users */
    regcache_put(cache, e);
    regcache_put(cache, again);
    expect_stats(4, 1, 0, 0);
    acquire_and_release(20, 1);
    expect_stats(4, 2, 0, 0);
    EXPECT_EQ(pins.bytes, 5 * page);
    close_cache();
}

static bool matches_handle(const void *handle, const void *arg)
{
    return handle == arg;
}

static bool memory_is_in_use(size_t first, size_t n, const void *handle)
{
    return regcache_in_use(cache, (uintptr_t)page_address(first), n * page, matches_handle, handle);
}

/* Memory of a cached entry counts as in use only while a caller holds the entry. */
static void test_in_use(void)
{
    open_cache(100);
    struct regcache_entry *few = acquire_pages(10, 4);
    const void *handle = few->handle;
    EXPECT(memory_is_in_use(10, 4, handle) && memory_is_in_use(12, 1, handle));
    EXPECT(!memory_is_in_use(12, 3, handle) && !memory_is_in_use(9, 1, handle) &&
           !memory_is_in_use(10, 4, &page));
    struct regcache_entry *many = acquire_pages(8, 8);
    EXPECT(memory_is_in_use(10, 4, handle) && memory_is_in_use(10, 4, many->handle));
    regcache_put(cache, few);
    EXPECT(!memory_is_in_use(10, 4, handle));
    handle = many->handle;
    regcache_put(cache, many);
    EXPECT(!memory_is_in_use(8, 8, handle));
    many = acquire_pages(8, 8);
    EXPECT(many->handle == handle && memory_is_in_use(8, 8, handle));
    regcache_put(cache, many);
    close_cache();
}

static void test_whole_pages(void)
{
    struct regcache_entry *e;
    open_cache(100);
    EXPECT_EQ(regcache_get(cache, (char *)page_address(3) + page - 1, 2, false, &e), 0);
    EXPECT(e->address == (uintptr_t)page_address(3) && e->length == 2 * page);
    regcache_put(cache, e);
    EXPECT(regcache_get(cache, (void *)(UINTPTR_MAX - 10), 100, false, &e) == MPI_ERR_BUFFER);
    close_cache();
}

/* Registrations of parts of a buffer remain separate and are found again; a request for the whole buffer
 * replaces them. */
static void test_pieces_and_their_union(void)
{
    struct regcache_entry *e;
    open_cache(100);
    for (size_t i = 0; i < 4; i++) {
        /* The range begins within a page and ends in the page after the next one. */
        EXPECT_EQ(regcache_get(cache, (char *)page_address(10 + 2 * i) + 5, 2 * page, true, &e), 0);
        EXPECT_EQ(e->length, 3 * page);
        regcache_put(cache, e);
    }
    expect_stats(0, 4, 0, 0);
    for (int again = 0; again < 8; again++) {
        for (size_t i = 0; i < 4; i++) {
            EXPECT_EQ(regcache_get(cache, (char *)page_address(10 + 2 * i) + 5, 2 * page, true, &e), 0);
            regcache_put(cache, e);
        }
    }
    expect_stats(32, 4, 0, 0);
    acquire_and_release(10, 9);
    EXPECT_EQ(pins.bytes, 9 * page);
    expect_stats(32, 5, 0, 0);
    close_cache();
}

static void test_without_cache(void)
{
    open_cache(0);
    acquire_and_release(1, 1);
    acquire_and_release(1, 1);
    EXPECT_EQ(pins.pinned, 2);
    EXPECT_EQ(pins.bytes, 0);
    EXPECT(!regcache_watch(cache)); /* without a cache there is nothing to watch */
    close_cache();
}

static void test_least_recently_used(void)
{
    open_cache(4);
    for (size_t i = 0; i < 4; i++)
        acquire_and_release(i * 10, 1);
    acquire_and_release(0, 1); /* the entry of page 10 is the least recently used now */
    expect_stats(1, 4, 0, 0);
    acquire_and_release(50, 1);
    expect_stats(1, 5, 1, 0);
    acquire_and_release(0, 1);
    acquire_and_release(20, 1);
    acquire_and_release(30, 1);
    acquire_and_release(50, 1);
    expect_stats(5, 5, 1, 0);
    acquire_and_release(10, 1); /* this entry was evicted */
    expect_stats(5, 6, 2, 0);
    struct regcache_entry *held =
        acquire_pages(20, 1); /* an entry in use does not count and is not evicted */
    acquire_and_release(60, 3);
    acquire_and_release(20, 1);
    regcache_put(cache, held);
    acquire_and_release(20, 1);
    EXPECT_EQ(pins.bytes, 4 * page);
    acquire_and_release(100, 5); /* exceeds the budget: evicted at once, without other entries */
    EXPECT_EQ(pins.bytes, 4 * page);
    acquire_and_release(60, 3);
    acquire_and_release(20, 1);
    struct regcache_stats s;
    regcache_stats(cache, &s);
    EXPECT_EQ(s.idle, 4 * page);
    EXPECT_EQ(pins.pinned, 8);
    close_cache();
}

static void test_overlaps(void)
{
    open_cache(100);
    acquire_and_release(10, 4);
    acquire_and_release(12, 4); /* one entry for pages 10 to 15 */
    EXPECT_EQ(pins.bytes, 6 * page);
    acquire_and_release(10, 6);
    expect_stats(1, 2, 0, 0);
    acquire_and_release(15, 2); /* a union of 7 pages for a request of 2 would be too large */
    EXPECT_EQ(pins.bytes, 8 * page);
    acquire_and_release(10, 6);
    expect_stats(2, 3, 0, 0);
    acquire_and_release(9, 9); /* covers both entries */
    EXPECT_EQ(pins.bytes, 9 * page);

    struct regcache_entry *held = acquire_pages(100, 4), *next = acquire_pages(102, 4);
    EXPECT(next != held && next->length == 6 * page);
    EXPECT_EQ(pins.bytes, 19 * page); /* both entries, while the first is in use */
    regcache_put(cache, held);
    EXPECT_EQ(pins.bytes, 15 * page);
    regcache_put(cache, next);
    acquire_and_release(100, 6);

    acquire_and_release(200, 4);
    page_contents[200] = 0; /* the union can no longer be pinned, the requested range can */
    acquire_and_release(202, 4);
    struct regcache_entry *e = acquire_pages(202, 4);
    EXPECT_EQ(e->length, 4 * page);
    regcache_put(cache, e);
    EXPECT_STR(err_detail(MPI_ERR_BUFFER), "");
    close_cache();
}

static uint64_t release_while_pinning(struct pins *p, size_t index)
{
    if (index == 11) { /* another thread releases a page of the range while it is being pinned */
        regcache_invalidate(cache, p->base + 10 * page, page);
        page_contents[10]++;
    }
    return page_contents[index];
}

static void test_memory_released_while_pinned(void)
{
    open_cache(100);
    acquire_and_release(10, 4);
    pins.content = release_while_pinning;
    struct regcache_entry *e = acquire_pages(12, 4);
    EXPECT_EQ(e->length, 6 * page);
    acquire_and_release(10, 1);
    expect_stats(0, 3, 0, 1);
    regcache_put(cache, e);
    close_cache();
}

static void test_released_memory(void)
{
    open_cache(100);
    acquire_and_release(10, 4);
    acquire_and_release(20, 4);
    regcache_invalidate(cache, (uintptr_t)page_address(13), page);
    EXPECT_EQ(pins.bytes, 8 * page); /* nothing is unpinned inside free() */
    page_contents[13] = 2;
    acquire_and_release(10, 4);
    expect_stats(0, 3, 0, 1);
    acquire_and_release(20, 4);
    expect_stats(1, 3, 0, 1);

    struct regcache_entry *held =
        acquire_pages(20, 4); /* a page of the entry is released while the entry is in use */
    regcache_invalidate(cache, (uintptr_t)page_address(20), page);
    page_contents[20] = 2;
    acquire_and_release(20, 1);
    expect_stats(2, 4, 0, 2);
    EXPECT_EQ(pins.bytes, 9 * page);
    regcache_put(cache, held);
    EXPECT_EQ(pins.bytes, 5 * page);

    regcache_invalidate(cache, (uintptr_t)page_address(10), 0);
    regcache_invalidate(cache, (uintptr_t)page_address(14), 6 * page); /* pages between the two entries */
    acquire_and_release(10, 4);
    acquire_and_release(20, 1);
    expect_stats(4, 4, 0, 2);
    regcache_invalidate(cache, 0, SIZE_MAX);
    regcache_sweep(cache);
    EXPECT_EQ(pins.bytes, 0);
    close_cache();
}

/* After more releases than the cache can record the cache drops all entries, so that none is stale. */
static void test_many_releases(void)
{
    open_cache(PIN_PAGES);
    for (size_t i = 0; i < PIN_PAGES; i += 2)
        acquire_and_release(i, 1);
    struct regcache_entry *held = acquire_pages(4, 1);
    for (size_t i = 8; i < PIN_PAGES; i++) {
        regcache_invalidate(cache, (uintptr_t)page_address(i), page);
        page_contents[i] = 2;
    }
    for (size_t i = 0; i < PIN_PAGES; i += 2)
        acquire_and_release(i, 1);
    regcache_put(cache, held);
    acquire_and_release(4, 1);
    close_cache();
}

/* Releases of memory outside the cache are not recorded. */
static void test_uncached_memory_is_ignored(void)
{
    open_cache(100);
    acquire_and_release(0, 4);
    for (uintptr_t i = 1; i < 5000; i++)
        regcache_invalidate(cache, pins.base + (i << 32), page);
    acquire_and_release(0, 4);
    expect_stats(1, 1, 0, 0);
    close_cache();

    struct gone g = {0};
    gone_add_cached(&g, 1ul << 40, (1ul << 40) + (1ul << 32)); /* too large to be recorded by area */
    gone_announce_range(&g, 1ul << 30, page);
    EXPECT_EQ(g.announced, 1);
    gone_remove_cached(&g, 1ul << 40, (1ul << 40) + (1ul << 32));
    gone_announce_range(&g, 1ul << 40, page);
    EXPECT_EQ(g.announced, 1);
}

static void test_out_of_resources(void)
{
    struct regcache_entry *e;
    open_cache(100);
    pins.limit = 10 * page;
    acquire_and_release(0, 4);
    acquire_and_release(10, 4);
    struct regcache_entry *held = acquire_pages(20, 2);
    acquire_and_release(30, 5); /* the two unused entries are evicted, one after the other */
    EXPECT_EQ(pins.bytes, 7 * page);
    expect_stats(0, 4, 2, 0);
    EXPECT_EQ(regcache_get(cache, page_address(100), 9 * page, false, &e), MPI_ERR_NO_MEM);
    EXPECT(strstr(err_detail(MPI_ERR_NO_MEM), "the test allows") != NULL);
    EXPECT_EQ(pins.bytes, 2 * page); /* all unused entries were evicted */
    regcache_put(cache, held);

    acquire_and_release(40, 4);
    page_contents[50] = 0;
    EXPECT_EQ(regcache_get(cache, page_address(50), page, false, &e), MPI_ERR_BUFFER);
    EXPECT_EQ(pins.bytes, 6 * page); /* evicting other entries would not have helped */
    close_cache();
}

static void test_forked_child(void)
{
    open_cache(100);
    acquire_and_release(0, 4);
    struct regcache_entry *held = acquire_pages(10, 4), *loose = acquire_pages(20, 4);
    regcache_invalidate(cache, (uintptr_t)page_address(20), page);
    acquire_and_release(0, 1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct regcache_entry *e;
        int before = pins.pinned, failures = test_failures;
        EXPECT_EQ(regcache_get(cache, page_address(0), page, false, &e), MPI_ERR_OTHER);
        EXPECT(strstr(err_detail(MPI_ERR_OTHER), "forked") != NULL);
        regcache_put(cache, held);
        regcache_put(cache, loose);
        regcache_sweep(cache);
        regcache_invalidate(cache, (uintptr_t)page_address(0), page);
        regcache_close(cache);
        EXPECT(pins.pinned == before && pins.unpinned == 0);
        fflush(stdout);
        _exit(test_failures != failures);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    acquire_and_release(0, 4); /* the parent's cache is unchanged */
    expect_stats(2, 3, 0, 1);
    regcache_put(cache, held);
    regcache_put(cache, loose);
    close_cache();
}

/* Finds a page that belongs to a library: its program headers. */
static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    if (!strstr(info->dlpi_name, "libanl"))
        return 0;
    *(uintptr_t *)arg = (uintptr_t)info->dlpi_phdr & ~(page - 1);
    return 1;
}

/* No hook reports the unloading of a library. */
static void test_unloaded_library(void)
{
    uintptr_t where = 0;
    /* This library belongs to libc, so it exists, and this program does not use it otherwise. */
    void *library = dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !dl_iterate_phdr(find_library, &where)) {
        printf("     skipped: libanl.so.1 cannot be loaded\n");
        return;
    }
    open_cache(100);
    acquire_and_release(10, 1); /* an unrelated entry */
    pins.base = where;
    acquire_and_release(0, 1);
    acquire_and_release(0, 1);
    expect_stats(1, 2, 0, 0);
    uint64_t before = library_count_unloads();
    dlclose(library);
    EXPECT_EQ(library_count_unloads(), before + 1);
    acquire_and_release(0, 1);
    expect_stats(1, 3, 0, 1);
    pins.base = (uintptr_t)1 << 44;
    acquire_and_release(10, 1); /* the unrelated entry is still cached */
    expect_stats(2, 3, 0, 1);
    close_cache();
}

static uint64_t seed = 7;

static size_t random_choice(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

enum { HELD = 12, ROUNDS = 60000 };
static struct {
    struct regcache_entry *entry;
    size_t first, n;
} held[HELD];

/* Releases one page or many, next to entries in use too; the pages return with other contents. */
static void release_random_memory(void)
{
    size_t first = random_choice(PIN_PAGES), n = 1 + random_choice(random_choice(8) ? 4 : 100);
    n = MIN(n, PIN_PAGES - first);
    for (int i = 0; i < HELD; i++)
        if (held[i].entry && first < held[i].first + held[i].n && held[i].first < first + n)
            return; /* programs do not free memory during a transfer */
    regcache_invalidate(cache, (uintptr_t)page_address(first), n * page);
    for (size_t i = first; i < first + n; i++)
        page_contents[i]++;
}

static void run_random_events(size_t budget_pages, size_t limit_pages)
{
    open_cache(budget_pages);
    pins.limit = limit_pages * page;
    struct regcache_stats s;
    int failed = 0;
    for (int round = 0; round < ROUNDS && test_failures < 20; round++) {
        size_t i = random_choice(HELD);
        if (random_choice(5) == 0)
            release_random_memory();
        if (held[i].entry) {
            EXPECT(pins_are_current(&pins, held[i].entry, (uintptr_t)page_address(held[i].first),
                                    held[i].n * page));
            regcache_put(cache, held[i].entry);
            held[i].entry = NULL;
        } else {
            held[i].first = random_choice(PIN_PAGES - 20);
            held[i].n = 1 + random_choice(20);
            regcache_stats(cache, &s);
            size_t busy = s.pinned - s.idle;
            int rc =
                regcache_get(cache, page_address(held[i].first), held[i].n * page, false, &held[i].entry);
            if (rc != 0) { /* fails only if the entries in use leave no room */
                held[i].entry = NULL;
                failed++;
                EXPECT(rc == MPI_ERR_NO_MEM && busy + held[i].n * page > pins.limit);
            } else {
                EXPECT(pins_are_current(&pins, held[i].entry, (uintptr_t)page_address(held[i].first),
                                        held[i].n * page));
            }
        }
        regcache_stats(cache, &s);
        EXPECT(s.idle <= budget_pages * page && s.pinned == pins.bytes);
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i].entry)
            regcache_put(cache, held[i].entry);
        held[i].entry = NULL;
    }
    regcache_stats(cache, &s);
    EXPECT(budget_pages == 0 || (s.hits > ROUNDS / 40 && s.invalidations > ROUNDS / 200));
    EXPECT(limit_pages == 0 || failed > 0);
    close_cache();
}

static void test_random_events(void)
{
    run_random_events(60, 0);
    run_random_events(400, 0);
    run_random_events(400, 130);
    run_random_events(0, 0);
}

static void test_budgets(void)
{
    struct tunable *t = tunables_find("REG_CACHE");
    EXPECT(regcache_budget(1) > 0 && regcache_budget(1) <= (size_t)t->initial);
    EXPECT(regcache_budget(1 << 20) < regcache_budget(1));
    tunable_set(t, "5m", SOURCE_PROGRAM);
    EXPECT_EQ(regcache_budget(1 << 20), 5 << 20); /* a configured budget is used */
    tunable_set(t, "0", SOURCE_PROGRAM);
    EXPECT_EQ(regcache_budget(1), 0);
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    TEST_RUN(test_hits);
    TEST_RUN(test_in_use);
    TEST_RUN(test_whole_pages);
    TEST_RUN(test_pieces_and_their_union);
    TEST_RUN(test_without_cache);
    TEST_RUN(test_least_recently_used);
    TEST_RUN(test_overlaps);
    TEST_RUN(test_memory_released_while_pinned);
    TEST_RUN(test_released_memory);
    TEST_RUN(test_many_releases);
    TEST_RUN(test_uncached_memory_is_ignored);
    TEST_RUN(test_out_of_resources);
    TEST_RUN(test_forked_child);
    TEST_RUN(test_unloaded_library);
    TEST_RUN(test_random_events);
    TEST_RUN(test_budgets);
    return test_result();
}

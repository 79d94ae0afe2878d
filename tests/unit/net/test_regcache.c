/* test_regcache.c: the registration cache with pins that only count: what hits, what is let go and in which
 * order, and a long random run in which memory goes away all the time and no stale registration may ever be
 * handed out.
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
static uint64_t contents[PIN_PAGES];
static struct regcache *cache;
static size_t page;

static uint64_t content(struct pins *p, size_t index)
{
    (void)p;
    return contents[index];
}

/* Made-up addresses: nothing here reads memory. */
static void *at(size_t index)
{
    return (void *)(pins.base + index * page);
}

static void open_cache(size_t budget_pages)
{
    pins = (struct pins){.base = (uintptr_t)1 << 44, .page = page, .content = content};
    for (int i = 0; i < PIN_PAGES; i++)
        contents[i] = 1;
    EXPECT_EQ(regcache_open(&pins_ops, &pins, budget_pages * page, &cache), 0);
}

static void close_cache(void)
{
    regcache_close(cache);
    EXPECT_EQ(pins.pinned, pins.unpinned);
    EXPECT_EQ(pins.bytes, 0);
}

static struct regcache_entry *get(size_t first, size_t n)
{
    struct regcache_entry *e = NULL;
    EXPECT_EQ(regcache_get(cache, at(first), n * page, &e), 0);
    EXPECT(e && pins_fresh(&pins, e, (uintptr_t)at(first), n * page));
    return e;
}

static void use(size_t first, size_t n)
{
    regcache_put(cache, get(first, n));
}

static void expect_stats(uint64_t hits, uint64_t misses, uint64_t evictions, uint64_t invalidations)
{
    struct regcache_stats s;
    regcache_stats(cache, &s);
    EXPECT_EQ(s.hits, hits);
    EXPECT_EQ(s.misses, misses);
    EXPECT_EQ(s.evictions, evictions);
    EXPECT_EQ(s.invalidations, invalidations);
    EXPECT_EQ(s.pinned, pins.bytes);
}

static void hits(void)
{
    struct regcache_entry *e;
    open_cache(100);
    use(10, 4);
    use(10, 4);
    use(12, 1);                                                            /* inside */
    EXPECT_EQ(regcache_get(cache, (char *)at(11) + 100, page + 7, &e), 0); /* not on a page, two pages */
    struct regcache_entry *again = get(10, 4);
    EXPECT(again == e); /* one entry, two users */
    regcache_put(cache, e);
    regcache_put(cache, again);
    expect_stats(4, 1, 0, 0);
    use(20, 1);
    expect_stats(4, 2, 0, 0);
    EXPECT_EQ(pins.bytes, 5 * page);
    close_cache();
}

static bool is_handle(const void *handle, const void *arg)
{
    return handle == arg;
}

static bool is_used(size_t first, size_t n, const void *handle)
{
    return regcache_in_use(cache, (uintptr_t)at(first), n * page, is_handle, handle);
}

/* Memory that stays registered is not in use any more; memory that others cover is. */
static void in_use(void)
{
    open_cache(100);
    struct regcache_entry *few = get(10, 4);
    const void *handle = few->handle;
    EXPECT(is_used(10, 4, handle) && is_used(12, 1, handle));
    EXPECT(!is_used(12, 3, handle) && !is_used(9, 1, handle) && !is_used(10, 4, &page));
    struct regcache_entry *many = get(8, 8);
    EXPECT(is_used(10, 4, handle) && is_used(10, 4, many->handle));
    regcache_put(cache, few);
    EXPECT(!is_used(10, 4, handle));
    handle = many->handle;
    regcache_put(cache, many);
    EXPECT(!is_used(8, 8, handle));
    many = get(8, 8);
    EXPECT(many->handle == handle && is_used(8, 8, handle));
    regcache_put(cache, many);
    close_cache();
}

static void whole_pages(void)
{
    struct regcache_entry *e;
    open_cache(100);
    EXPECT_EQ(regcache_get(cache, (char *)at(3) + page - 1, 2, &e), 0);
    EXPECT(e->address == (uintptr_t)at(3) && e->length == 2 * page);
    regcache_put(cache, e);
    EXPECT(regcache_get(cache, (void *)(UINTPTR_MAX - 10), 100, &e) == MPI_ERR_BUFFER);
    close_cache();
}

/* Pieces of a buffer stay pieces, are found again, and are replaced by the whole when that is requested. */
static void pieces(void)
{
    struct regcache_entry *e;
    open_cache(100);
    for (size_t i = 0; i < 4; i++) {
        EXPECT_EQ(regcache_get_piece(cache, (char *)at(10 + 2 * i) + 5, 2 * page, &e),
                  0); /* a page of the next too */
        EXPECT_EQ(e->length, 3 * page);
        regcache_put(cache, e);
    }
    expect_stats(0, 4, 0, 0);
    for (int again = 0; again < 8; again++) {
        for (size_t i = 0; i < 4; i++) {
            EXPECT_EQ(regcache_get_piece(cache, (char *)at(10 + 2 * i) + 5, 2 * page, &e), 0);
            regcache_put(cache, e);
        }
    }
    expect_stats(32, 4, 0, 0);
    use(10, 9);
    EXPECT_EQ(pins.bytes, 9 * page);
    expect_stats(32, 5, 0, 0);
    close_cache();
}

static void without_cache(void)
{
    open_cache(0);
    use(1, 1);
    use(1, 1);
    EXPECT_EQ(pins.pinned, 2);
    EXPECT_EQ(pins.bytes, 0);
    EXPECT(!regcache_watch(cache)); /* nothing to watch for */
    close_cache();
}

static void least_recently_used(void)
{
    open_cache(4);
    for (size_t i = 0; i < 4; i++)
        use(i * 10, 1);
    use(0, 1); /* 10 is the oldest now */
    expect_stats(1, 4, 0, 0);
    use(50, 1);
    expect_stats(1, 5, 1, 0);
    use(0, 1);
    use(20, 1);
    use(30, 1);
    use(50, 1);
    expect_stats(5, 5, 1, 0);
    use(10, 1); /* it was this one that went */
    expect_stats(5, 6, 2, 0);
    struct regcache_entry *held = get(20, 1); /* what is in use does not count, and does not go */
    use(60, 3);
    use(20, 1);
    regcache_put(cache, held);
    use(20, 1);
    EXPECT_EQ(pins.bytes, 4 * page);
    use(100, 5); /* more than the budget: goes at once, and alone */
    EXPECT_EQ(pins.bytes, 4 * page);
    use(60, 3);
    use(20, 1);
    struct regcache_stats s;
    regcache_stats(cache, &s);
    EXPECT_EQ(s.idle, 4 * page);
    EXPECT_EQ(pins.pinned, 8);
    close_cache();
}

static void overlaps(void)
{
    open_cache(100);
    use(10, 4);
    use(12, 4); /* 10..16 in one */
    EXPECT_EQ(pins.bytes, 6 * page);
    use(10, 6);
    expect_stats(1, 2, 0, 0);
    use(15, 2); /* 7 pages for 2: out of proportion */
    EXPECT_EQ(pins.bytes, 8 * page);
    use(10, 6);
    expect_stats(2, 3, 0, 0);
    use(9, 9); /* covers both */
    EXPECT_EQ(pins.bytes, 9 * page);

    struct regcache_entry *held = get(100, 4), *next = get(102, 4);
    EXPECT(next != held && next->length == 6 * page);
    EXPECT_EQ(pins.bytes, 19 * page); /* both, while the first is in use */
    regcache_put(cache, held);
    EXPECT_EQ(pins.bytes, 15 * page);
    regcache_put(cache, next);
    use(100, 6);

    use(200, 4);
    contents[200] = 0; /* the union cannot be pinned any more: the request alone can */
    use(202, 4);
    struct regcache_entry *e = get(202, 4);
    EXPECT_EQ(e->length, 4 * page);
    regcache_put(cache, e);
    EXPECT_STR(err_detail(MPI_ERR_BUFFER), "");
    close_cache();
}

static uint64_t content_that_goes(struct pins *p, size_t index)
{
    if (index == 11) { /* another thread, in the middle of pinning, gives back what is pinned along */
        regcache_invalidate(cache, p->base + 10 * page, page);
        contents[10]++;
    }
    return contents[index];
}

static void gone_while_pinned(void)
{
    open_cache(100);
    use(10, 4);
    pins.content = content_that_goes;
    struct regcache_entry *e = get(12, 4);
    EXPECT_EQ(e->length, 6 * page);
    use(10, 1);
    expect_stats(0, 3, 0, 1);
    regcache_put(cache, e);
    close_cache();
}

static void gone(void)
{
    open_cache(100);
    use(10, 4);
    use(20, 4);
    regcache_invalidate(cache, (uintptr_t)at(13), page);
    EXPECT_EQ(pins.bytes, 8 * page); /* nothing is unpinned inside free() */
    contents[13] = 2;
    use(10, 4);
    expect_stats(0, 3, 0, 1);
    use(20, 4);
    expect_stats(1, 3, 0, 1);

    struct regcache_entry *held = get(20, 4); /* a neighbour on the same entry goes while it is in use */
    regcache_invalidate(cache, (uintptr_t)at(20), page);
    contents[20] = 2;
    use(20, 1);
    expect_stats(2, 4, 0, 2);
    EXPECT_EQ(pins.bytes, 9 * page);
    regcache_put(cache, held);
    EXPECT_EQ(pins.bytes, 5 * page);

    regcache_invalidate(cache, (uintptr_t)at(10), 0);
    regcache_invalidate(cache, (uintptr_t)at(14), 6 * page); /* between the two */
    use(10, 4);
    use(20, 1);
    expect_stats(4, 4, 0, 2);
    regcache_invalidate(cache, 0, SIZE_MAX);
    regcache_sweep(cache);
    EXPECT_EQ(pins.bytes, 0);
    close_cache();
}

/* More than can be remembered: then everything goes, but nothing is missed. */
static void gone_too_much(void)
{
    open_cache(PIN_PAGES);
    for (size_t i = 0; i < PIN_PAGES; i += 2)
        use(i, 1);
    struct regcache_entry *held = get(4, 1);
    for (size_t i = 8; i < PIN_PAGES; i++) {
        regcache_invalidate(cache, (uintptr_t)at(i), page);
        contents[i] = 2;
    }
    for (size_t i = 0; i < PIN_PAGES; i += 2)
        use(i, 1);
    regcache_put(cache, held);
    use(4, 1);
    close_cache();
}

/* What does not touch cached memory takes no place. */
static void others_are_ignored(void)
{
    open_cache(100);
    use(0, 4);
    for (uintptr_t i = 1; i < 5000; i++)
        regcache_invalidate(cache, pins.base + (i << 32), page);
    use(0, 4);
    expect_stats(1, 1, 0, 0);
    close_cache();

    struct gone g = {0};
    gone_add_cached(&g, 1ul << 40, (1ul << 40) + (1ul << 32)); /* too large to count by area */
    gone_announce_range(&g, 1ul << 30, page);
    EXPECT_EQ(g.told, 1);
    gone_remove_cached(&g, 1ul << 40, (1ul << 40) + (1ul << 32));
    gone_announce_range(&g, 1ul << 40, page);
    EXPECT_EQ(g.told, 1);
}

static void out_of_resources(void)
{
    struct regcache_entry *e;
    open_cache(100);
    pins.limit = 10 * page;
    use(0, 4);
    use(10, 4);
    struct regcache_entry *held = get(20, 2);
    use(30, 5); /* the two that nobody uses go, one after the other */
    EXPECT_EQ(pins.bytes, 7 * page);
    expect_stats(0, 4, 2, 0);
    EXPECT_EQ(regcache_get(cache, at(100), 9 * page, &e), MPI_ERR_NO_MEM);
    EXPECT(strstr(err_detail(MPI_ERR_NO_MEM), "the test allows") != NULL);
    EXPECT_EQ(pins.bytes, 2 * page); /* everything was tried */
    regcache_put(cache, held);

    use(40, 4);
    contents[50] = 0;
    EXPECT_EQ(regcache_get(cache, at(50), page, &e), MPI_ERR_BUFFER);
    EXPECT_EQ(pins.bytes, 6 * page); /* letting go of others would not have helped */
    close_cache();
}

static void in_a_child(void)
{
    open_cache(100);
    use(0, 4);
    struct regcache_entry *held = get(10, 4), *loose = get(20, 4);
    regcache_invalidate(cache, (uintptr_t)at(20), page);
    use(0, 1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct regcache_entry *e;
        int before = pins.pinned, failures = test_failures;
        EXPECT_EQ(regcache_get(cache, at(0), page, &e), MPI_ERR_OTHER);
        EXPECT(strstr(err_detail(MPI_ERR_OTHER), "forked") != NULL);
        regcache_put(cache, held);
        regcache_put(cache, loose);
        regcache_sweep(cache);
        regcache_invalidate(cache, (uintptr_t)at(0), page);
        regcache_close(cache);
        EXPECT(pins.pinned == before && pins.unpinned == 0);
        fflush(stdout);
        _exit(test_failures != failures);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    use(0, 4); /* the parent's is as it was */
    expect_stats(2, 3, 0, 1);
    regcache_put(cache, held);
    regcache_put(cache, loose);
    close_cache();
}

/* A page that is a library's own: its program headers. */
static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    if (!strstr(info->dlpi_name, "libanl"))
        return 0;
    *(uintptr_t *)arg = (uintptr_t)info->dlpi_phdr & ~(page - 1);
    return 1;
}

/* No hook sees the end of a library. */
static void unloaded(void)
{
    uintptr_t where = 0;
    void *library = dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL); /* part of the C library, used by nobody */
    if (!library || !dl_iterate_phdr(find_library, &where)) {
        printf("     no library to unload here\n");
        return;
    }
    open_cache(100);
    use(10, 1); /* anything else */
    pins.base = where;
    use(0, 1);
    use(0, 1);
    expect_stats(1, 2, 0, 0);
    uint64_t before = library_unloads();
    dlclose(library);
    EXPECT_EQ(library_unloads(), before + 1);
    use(0, 1);
    expect_stats(1, 3, 0, 1);
    pins.base = (uintptr_t)1 << 44;
    use(10, 1); /* is still there */
    expect_stats(2, 3, 0, 1);
    close_cache();
}

static uint64_t seed = 7;

static size_t pick(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

enum { HELD = 12, ROUNDS = 60000 };
static struct {
    struct regcache_entry *entry;
    size_t first, n;
} held[HELD];

/* Memory goes and comes back as something else, a page or many, also beside what is in use. */
static void random_gone(void)
{
    size_t first = pick(PIN_PAGES), n = 1 + pick(pick(8) ? 4 : 100);
    n = MIN(n, PIN_PAGES - first);
    for (int i = 0; i < HELD; i++)
        if (held[i].entry && first < held[i].first + held[i].n && held[i].first < first + n)
            return; /* programs do not free what they are sending */
    regcache_invalidate(cache, (uintptr_t)at(first), n * page);
    for (size_t i = first; i < first + n; i++)
        contents[i]++;
}

static void random_run(size_t budget_pages, size_t limit_pages)
{
    open_cache(budget_pages);
    pins.limit = limit_pages * page;
    struct regcache_stats s;
    int failed = 0;
    for (int round = 0; round < ROUNDS && test_failures < 20; round++) {
        size_t i = pick(HELD);
        if (pick(5) == 0)
            random_gone();
        if (held[i].entry) {
            EXPECT(pins_fresh(&pins, held[i].entry, (uintptr_t)at(held[i].first), held[i].n * page));
            regcache_put(cache, held[i].entry);
            held[i].entry = NULL;
        } else {
            held[i].first = pick(PIN_PAGES - 20);
            held[i].n = 1 + pick(20);
            regcache_stats(cache, &s);
            size_t busy = s.pinned - s.idle;
            int rc = regcache_get(cache, at(held[i].first), held[i].n * page, &held[i].entry);
            if (rc != 0) { /* only when what is in use leaves no room */
                held[i].entry = NULL;
                failed++;
                EXPECT(rc == MPI_ERR_NO_MEM && busy + held[i].n * page > pins.limit);
            } else {
                EXPECT(pins_fresh(&pins, held[i].entry, (uintptr_t)at(held[i].first), held[i].n * page));
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

static void random_runs(void)
{
    random_run(60, 0);
    random_run(400, 0);
    random_run(400, 130);
    random_run(0, 0);
}

static void budgets(void)
{
    struct tunable *t = tunables_find("REG_CACHE");
    EXPECT(regcache_budget(1) > 0 && regcache_budget(1) <= (size_t)t->initial);
    EXPECT(regcache_budget(1 << 20) < regcache_budget(1));
    tunable_set(t, "5m", SOURCE_PROGRAM);
    EXPECT_EQ(regcache_budget(1 << 20), 5 << 20); /* a budget that is set is used */
    tunable_set(t, "0", SOURCE_PROGRAM);
    EXPECT_EQ(regcache_budget(1), 0);
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    TEST_RUN(hits);
    TEST_RUN(in_use);
    TEST_RUN(whole_pages);
    TEST_RUN(pieces);
    TEST_RUN(without_cache);
    TEST_RUN(least_recently_used);
    TEST_RUN(overlaps);
    TEST_RUN(gone_while_pinned);
    TEST_RUN(gone);
    TEST_RUN(gone_too_much);
    TEST_RUN(others_are_ignored);
    TEST_RUN(out_of_resources);
    TEST_RUN(in_a_child);
    TEST_RUN(unloaded);
    TEST_RUN(random_runs);
    TEST_RUN(budgets);
    return test_result();
}

/* test_regcache_threads.c: threads map, send and unmap adjacent memory all the time, so that cache entries
 * overlap, are merged, and are invalidated while other threads use them. Each pin records the content of
 * its pages, so a stale registration is detected. Runs with real memory and hooks where hooks are
 * available, and with simulated memory, which also runs under sanitizers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "net/memhook/library.h"
#include "pins.h"

enum { WORKERS = 4, OWN = PIN_PAGES / WORKERS, ROUNDS = 2000 };

static struct pins pins;
static struct regcache *cache;
static pthread_mutex_t big_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t page;
static _Atomic uint64_t serial = 1;
static _Atomic int stale, failed;

struct worker {
    pthread_t thread;
    size_t first; /* index of the first page */
    uint64_t seed;
    void (*replace_pages)(size_t index, size_t n); /* releases n pages and maps new ones */
};

static size_t random_choice(struct worker *w, size_t n)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(w->seed >> 33) % n;
}

/* A worker's pages lie in groups of 4 between those of the others. */
static size_t get_worker_page(struct worker *w, size_t group)
{
    return (group * WORKERS + w->first) * 4;
}

/* A worker that holds this lock for writing may send pages of several workers: no page changes meanwhile. */
static pthread_rwlock_t pages_lock = PTHREAD_RWLOCK_INITIALIZER;

static void register_and_send(struct worker *w, size_t first, size_t n)
{
    uintptr_t start = pins.base + first * page;
    struct regcache_entry *e;
    pthread_mutex_lock(&big_lock);
    int rc = regcache_get(cache, (void *)start, n * page, false, &e);
    pthread_mutex_unlock(&big_lock);
    if (rc != 0) {
        atomic_fetch_add(&failed, 1);
        return;
    }
    if (random_choice(w, 4) == 0)
        sched_yield();
    if (!pins_are_current(&pins, e, start, n * page))
        atomic_fetch_add(&stale, 1);
    pthread_mutex_lock(&big_lock);
    regcache_put(cache, e);
    pthread_mutex_unlock(&big_lock);
}

static void *run_worker(void *arg)
{
    struct worker *w = arg;
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = get_worker_page(w, random_choice(w, OWN / 4)), first = at + random_choice(w, 3),
               n = 1 + random_choice(w, 4 - (first - at));
        if (random_choice(w, 4) == 0) {
            pthread_rwlock_rdlock(&pages_lock);
            w->replace_pages(first, n);
            pthread_rwlock_unlock(&pages_lock);
        }
        register_and_send(w, first, n);
        if (random_choice(w, 16) == 0) { /* ranges that end within pages of other workers */
            pthread_rwlock_wrlock(&pages_lock);
            register_and_send(w, random_choice(w, PIN_PAGES - 8), 2 + random_choice(w, 6));
            pthread_rwlock_unlock(&pages_lock);
        }
    }
    return NULL;
}

static void run_all_workers(void (*replace_pages)(size_t, size_t))
{
    static struct worker workers[WORKERS];
    stale = failed = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.first = i, .seed = i * 77 + 1, .replace_pages = replace_pages};
        pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
    }
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    struct regcache_stats s;
    regcache_stats(cache, &s);
    EXPECT_EQ(stale, 0);
    EXPECT_EQ(failed, 0);
    EXPECT(s.hits > 0 && s.invalidations > 0);
    printf("     %llu hits, %llu misses, %llu invalidations\n", (unsigned long long)s.hits,
           (unsigned long long)s.misses, (unsigned long long)s.invalidations);
}

static void open_cache(uintptr_t base, uint64_t (*content)(struct pins *, size_t))
{
    pins = (struct pins){.base = base, .page = page, .content = content};
    EXPECT_EQ(regcache_open(&pins_ops, &pins, PIN_PAGES * page, &cache), 0);
}

static void close_cache(void)
{
    regcache_close(cache);
    EXPECT_EQ(pins.pinned, pins.unpinned);
}

/* Simulated memory: the content of a page is a number, and the test reports releases itself. */
static _Atomic uint64_t numbers[PIN_PAGES];

static uint64_t get_simulated_content(struct pins *p, size_t index)
{
    (void)p;
    return atomic_load(&numbers[index]);
}

static void replace_simulated_pages(size_t index, size_t n)
{
    regcache_invalidate(cache, pins.base + index * page, n * page);
    for (size_t i = index; i < index + n; i++)
        atomic_store(&numbers[i], atomic_fetch_add(&serial, 1));
}

static void test_simulated_memory(void)
{
    for (int i = 0; i < PIN_PAGES; i++)
        numbers[i] = atomic_fetch_add(&serial, 1);
    open_cache((uintptr_t)1 << 44, get_simulated_content);
    run_all_workers(replace_simulated_pages);
    close_cache();
}

/* Real memory: each new page holds a unique stamp. The kernel reads the stamp, so an unmapped page is an
 * error, as for a device, and not a crash. */
static uint64_t get_page_stamp(struct pins *p, size_t index)
{
    static _Thread_local int ends[2];
    uint64_t value = 0;
    if (ends[1] == 0 && pipe(ends) != 0)
        return 0;
    if (write(ends[1], (void *)(p->base + index * page), 8) != 8 || read(ends[0], &value, 8) != 8)
        return 0;
    return value;
}

static void stamp_pages(size_t index, size_t n)
{
    for (size_t i = index; i < index + n; i++)
        atomic_store((_Atomic uint64_t *)(pins.base + i * page), atomic_fetch_add(&serial, 1));
}

/* Replaces pages through libc, as programs do; not by munmap, since another thread could map memory at the
 * address meanwhile. */
static void replace_real_pages(size_t index, size_t n)
{
    void *p = (void *)(pins.base + index * page);
    int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    switch (atomic_load(&serial) % 3) {
    case 0:
        madvise(p, n * page, MADV_DONTNEED);
        break;
    case 1:
        mmap(p, n * page, prot, flags | MAP_FIXED, -1, 0);
        break;
    default:
        mmap(p, n * page, PROT_NONE, flags | MAP_FIXED, -1, 0);
        mmap(p, n * page, prot, flags | MAP_FIXED, -1, 0);
        break;
    }
    stamp_pages(index, n);
}

static _Atomic bool stop;

static void *allocate_memory(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        char *volatile a = malloc(40 << 20), *volatile b = malloc(100000);
        *a = *b = 1;
        free(a);
        free(b);
        malloc_trim(0);
    }
    return NULL;
}

static void test_real_memory(void)
{
    pthread_t other;
    void *p = mmap(NULL, PIN_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    open_cache((uintptr_t)p, get_page_stamp);
    stamp_pages(0, PIN_PAGES);
    EXPECT(regcache_watch(cache));
    pthread_create(&other, NULL, allocate_memory, NULL);
    run_all_workers(replace_real_pages);
    atomic_store(&stop, true);
    pthread_join(other, NULL);
    close_cache();
    munmap(p, PIN_PAGES * page);
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    alarm(100);
    TEST_RUN(test_simulated_memory);
    const char *tool = library_find_tool();
    if (tool)
        printf("memory hooks do not work with %s: simulated memory only\n", tool);
    else
        TEST_RUN(test_real_memory);
    return test_result();
}

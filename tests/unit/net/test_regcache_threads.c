/* test_regcache_threads.c: threads that map, send, and unmap memory all the time, next to each other's, so
 * that entries overlap, unite and go away under other threads. A page knows what it was when it was pinned: a
 * stale registration is seen at once. With real memory and real hooks where there are hooks; and with
 * pretended memory, which a sanitizer can watch as well.
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
    size_t first; /* page */
    uint64_t seed;
    void (*renew)(size_t index, size_t n); /* pages go, and new ones come */
};

static size_t regcache_threads_pick(struct worker *w, size_t n)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(w->seed >> 33) % n;
}

/* A worker's pages lie in groups of 4 between those of the others. */
static size_t regcache_threads_place(struct worker *w, size_t group)
{
    return (group * WORKERS + w->first) * 4;
}

/* Pages do not change while `entire` is held for writing: then one may send what belongs to several workers.
 */
static pthread_rwlock_t entire = PTHREAD_RWLOCK_INITIALIZER;

static void regcache_threads_send(struct worker *w, size_t first, size_t n)
{
    uintptr_t start = pins.base + first * page;
    struct regcache_entry *e;
    pthread_mutex_lock(&big_lock);
    int rc = regcache_get(cache, (void *)start, n * page, &e);
    pthread_mutex_unlock(&big_lock);
    if (rc != 0) {
        atomic_fetch_add(&failed, 1);
        return;
    }
    if (regcache_threads_pick(w, 4) == 0)
        sched_yield();
    if (!pins_fresh(&pins, e, start, n * page))
        atomic_fetch_add(&stale, 1);
    pthread_mutex_lock(&big_lock);
    regcache_put(cache, e);
    pthread_mutex_unlock(&big_lock);
}

static void *regcache_threads_work(void *arg)
{
    struct worker *w = arg;
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = regcache_threads_place(w, regcache_threads_pick(w, OWN / 4)),
               first = at + regcache_threads_pick(w, 3), n = 1 + regcache_threads_pick(w, 4 - (first - at));
        if (regcache_threads_pick(w, 4) == 0) {
            pthread_rwlock_rdlock(&entire);
            w->renew(first, n);
            pthread_rwlock_unlock(&entire);
        }
        regcache_threads_send(w, first, n);
        if (regcache_threads_pick(w, 16) == 0) { /* ranges that end in the middle of the others' */
            pthread_rwlock_wrlock(&entire);
            regcache_threads_send(w, regcache_threads_pick(w, PIN_PAGES - 8),
                                  2 + regcache_threads_pick(w, 6));
            pthread_rwlock_unlock(&entire);
        }
    }
    return NULL;
}

static void regcache_threads_run(void (*renew)(size_t, size_t))
{
    static struct worker workers[WORKERS];
    stale = failed = 0;
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.first = i, .seed = i * 77 + 1, .renew = renew};
        pthread_create(&workers[i].thread, NULL, regcache_threads_work, &workers[i]);
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

static void regcache_threads_start(uintptr_t base, uint64_t (*content)(struct pins *, size_t))
{
    pins = (struct pins){.base = base, .page = page, .content = content};
    EXPECT_EQ(regcache_open(&pins_ops, &pins, PIN_PAGES * page, &cache), 0);
}

static void regcache_threads_finish(void)
{
    regcache_close(cache);
    EXPECT_EQ(pins.pinned, pins.unpinned);
}

/* Simulated memory: the content of a page is a number, and the test reports releases itself. */
static _Atomic uint64_t numbers[PIN_PAGES];

static uint64_t regcache_threads_number_of_page(struct pins *p, size_t index)
{
    (void)p;
    return atomic_load(&numbers[index]);
}

static void renew_number(size_t index, size_t n)
{
    regcache_invalidate(cache, pins.base + index * page, n * page);
    for (size_t i = index; i < index + n; i++)
        atomic_store(&numbers[i], atomic_fetch_add(&serial, 1));
}

static void test_pretended(void)
{
    for (int i = 0; i < PIN_PAGES; i++)
        numbers[i] = atomic_fetch_add(&serial, 1);
    regcache_threads_start((uintptr_t)1 << 44, regcache_threads_number_of_page);
    regcache_threads_run(renew_number);
    regcache_threads_finish();
}

/* Real memory: a new page is stamped. The kernel reads it, since a page that is not there is an error, as
 * it is for a device, and no crash. */
static uint64_t regcache_threads_stamp(struct pins *p, size_t index)
{
    static _Thread_local int ends[2];
    uint64_t value = 0;
    if (ends[1] == 0 && pipe(ends) != 0)
        return 0;
    if (write(ends[1], (void *)(p->base + index * page), 8) != 8 || read(ends[0], &value, 8) != 8)
        return 0;
    return value;
}

static void regcache_threads_fill(size_t index, size_t n)
{
    for (size_t i = index; i < index + n; i++)
        atomic_store((_Atomic uint64_t *)(pins.base + i * page), atomic_fetch_add(&serial, 1));
}

/* Through libc, as programs do. Not by munmap: before the page is mapped again another thread might get the
 * place. */
static void renew_real(size_t index, size_t n)
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
    regcache_threads_fill(index, n);
}

static _Atomic bool stop;

/* A thread that uses other memory. */
static void *regcache_threads_allocate(void *arg)
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

static void real_memory_is_invalidated(void)
{
    pthread_t other;
    void *p = mmap(NULL, PIN_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    regcache_threads_start((uintptr_t)p, regcache_threads_stamp);
    regcache_threads_fill(0, PIN_PAGES);
    EXPECT(regcache_watch(cache));
    pthread_create(&other, NULL, regcache_threads_allocate, NULL);
    regcache_threads_run(renew_real);
    atomic_store(&stop, true);
    pthread_join(other, NULL);
    regcache_threads_finish();
    munmap(p, PIN_PAGES * page);
}

int main(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    alarm(100);
    TEST_RUN(test_pretended);
    const char *tool = library_find_tool();
    if (tool)
        printf("no hooks beside %s: with pretended memory only\n", tool);
    else
        TEST_RUN(real_memory_is_invalidated);
    return test_result();
}

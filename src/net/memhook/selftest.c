/* selftest.c: releases memory by every method that a program and its allocator use. It calls the ordinary
 * functions, so that libraries between the program and libc are tested too. Each released page must have been
 * announced. An allocator that returns no memory to the system passes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memhook/selftest.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

/* Pages that the test is about to release, and whether their release was announced. Other threads may release
 * memory meanwhile. */
enum { PAGES = 32 };
static struct {
    _Atomic uintptr_t at;
    _Atomic bool announced;
} watched[PAGES];
static _Atomic int watching;

static size_t page;

void selftest_record_notification(void *ctx, uintptr_t start, size_t length)
{
    (void)ctx;
    for (int i = 0, n = atomic_load(&watching); i < n; i++)
        if (atomic_load(&watched[i].at) - start < length)
            atomic_store(&watched[i].announced, true);
}

static char *selftest_watch(char *p)
{
    int n = atomic_load(&watching);
    atomic_store(&watched[n].at, (uintptr_t)p);
    atomic_store(&watched[n].announced, false);
    atomic_store(&watching, n + 1);
    return p;
}

static bool selftest_was_announced(const char *p)
{
    for (int i = 0, n = atomic_load(&watching); i < n; i++)
        if (atomic_load(&watched[i].at) == (uintptr_t)p)
            return atomic_load(&watched[i].announced);
    return false;
}

static bool selftest_is_page_gone(const char *p)
{
    unsigned char resident = 0;
    return mincore((void *)p, page, &resident) != 0 || !(resident & 1);
}

/* Makes the first whole page of a block resident and watches it. NULL: the block has no whole page. */
static char *selftest_watch_first_page(void *block, size_t length)
{
    char *p = (char *)(((uintptr_t)block + page - 1) & ~(page - 1));
    if (!block || p + page > (char *)block + length)
        return NULL;
    *(volatile char *)p = 1;
    return selftest_watch(p);
}

static char *selftest_map_pages(size_t pages)
{
    char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : selftest_watch_first_page(p, pages * page);
}

static bool try_munmap(void)
{
    char *p = selftest_map_pages(2);
    return !p || munmap(p, 2 * page) != 0 || selftest_was_announced(p);
}

static bool try_syscall(void)
{
    char *p = selftest_map_pages(2);
    return !p || syscall(SYS_munmap, p, 2 * page) != 0 || selftest_was_announced(p);
}

/* Tests madvise. munmap, which releases the page afterwards, was tested before. */
static bool try_madvise(void)
{
    char *p = selftest_map_pages(1);
    bool ok = !p || madvise(p, page, MADV_DONTNEED) != 0 || selftest_was_announced(p);
    if (p)
        munmap(p, page);
    return ok;
}

static bool try_mprotect(void)
{
    char *p = selftest_map_pages(1);
    bool ok = !p || mprotect(p, page, PROT_READ | PROT_WRITE) != 0 || selftest_was_announced(p);
    if (p)
        munmap(p, page);
    return ok;
}

static bool try_mmap_fixed(void)
{
    char *p = selftest_map_pages(1);
    bool ok = !p || mmap(p, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ||
              selftest_was_announced(p);
    if (p)
        munmap(p, page);
    return ok;
}

static bool try_mremap(void)
{
    char *p = selftest_map_pages(4);
    if (!p)
        return true;
    char *tail = selftest_watch(p + 2 * page), *q = mremap(p, 4 * page, 2 * page, 0);
    bool ok = q == MAP_FAILED || selftest_was_announced(tail);
    munmap(p, (q == MAP_FAILED ? 4 : 2) * page);
    return ok;
}

static bool try_shmdt(void)
{
    int id = shmget(IPC_PRIVATE, page, IPC_CREAT | 0600);
    if (id < 0)
        return true;
    char *p = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    return p == (char *)-1 || shmdt(selftest_watch(p)) != 0 || selftest_was_announced(p);
}

/* The size of a block that free() unmaps. libc unmaps blocks above 32 MiB at once, and only their touched
 * pages are resident. Other allocators may retain such large blocks, or copy all of their pages in realloc:
 * for them 4 MiB suffice. */
static size_t selftest_large_size(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    bool own = libc && dlsym(libc, "malloc") == dlsym(RTLD_DEFAULT, "malloc");
    if (libc)
        dlclose(libc);
    return (size_t)(own ? 40 : 4) << 20;
}

static bool try_free(void)
{
    size_t size = selftest_large_size();
    void *block = malloc(size);
    char *p = selftest_watch_first_page(block, size);
    free(block);
    return !p || !selftest_is_page_gone(p) || selftest_was_announced(p);
}

static bool try_realloc(void)
{
    size_t size = selftest_large_size();
    void *block = malloc(size);
    char *p = selftest_watch_first_page(block, size);
    void *larger = realloc(block, 2 * size);
    bool ok = !p || !selftest_is_page_gone(p) || selftest_was_announced(p);
    if (!larger)
        free(block);
    free(larger);
    return ok;
}

/* Tests trimming: the heap shrinks when blocks at its end are freed. */
static bool try_trim(void)
{
    enum { BLOCKS = 24 };
    static const size_t size = 100000; /* below 128 KiB, from which on libc does not use the heap */
    void *blocks[BLOCKS];
    char *pages[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size);
        pages[i] = selftest_watch_first_page(blocks[i], size);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    bool ok = true;
    for (int i = 0; i < BLOCKS; i++)
        ok &= !pages[i] || !selftest_is_page_gone(pages[i]) || selftest_was_announced(pages[i]);
    return ok;
}

/* Tests sbrk, only in a single-threaded process: malloc in another thread might move the break meanwhile. */
static bool try_sbrk(void)
{
    const char *alone = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
    if (!alone || !*alone)
        return true;
    char *block = sbrk((intptr_t)(4 * page));
    if (block == (char *)-1)
        return true;
    char *p = selftest_watch_first_page(block, 4 * page);
    return sbrk(-(intptr_t)(4 * page)) == (void *)-1 || !selftest_is_page_gone(p) ||
           selftest_was_announced(p);
}

const char *selftest_run(void)
{
    static const struct {
        const char *missed;
        bool (*ok)(void);
    } tries[] = {
        {"munmap was not seen", try_munmap},
        {"munmap by syscall() was not seen", try_syscall},
        {"madvise was not seen", try_madvise},
        {"mprotect was not seen", try_mprotect},
        {"mmap over other memory was not seen", try_mmap_fixed},
        {"mremap was not seen", try_mremap},
        {"shmdt was not seen", try_shmdt},
        {"free of a large block was not seen", try_free},
        {"realloc of a large block was not seen", try_realloc},
        {"the allocator gave memory back unseen", try_trim},
        {"a shrinking heap was not seen", try_sbrk},
    };
    page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < COUNT_OF(tries); i++) {
        atomic_store(&watching, 0);
        if (!tries[i].ok())
            return tries[i].missed;
    }
    return NULL;
}

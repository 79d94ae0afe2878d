/* selftest.c: gives memory back in every way a program and its allocator do, by ordinary calls, so that
 * whatever stands between the program and libc is tried too. The rule is always the same: a page that is gone
 * must have been announced. An allocator that keeps what it was given passes.
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

/* What was announced since forget(). Other threads may free memory meanwhile: their calls are listed too. */
enum { NOTES = 128, TRIES = 3 };
static struct {
    _Atomic uintptr_t start, length;
} notes[NOTES];
static _Atomic unsigned noted;

static size_t page;

void selftest_listen(void *ctx, uintptr_t start, size_t length)
{
    (void)ctx;
    unsigned i = atomic_fetch_add(&noted, 1);
    if (i < NOTES) {
        atomic_store(&notes[i].start, start);
        atomic_store(&notes[i].length, length);
    }
}

static void forget(void)
{
    atomic_store(&noted, 0);
}

static bool announced(const char *p)
{
    unsigned n = MIN(atomic_load(&noted), NOTES);
    for (unsigned i = 0; i < n; i++)
        if ((uintptr_t)p - atomic_load(&notes[i].start) < atomic_load(&notes[i].length))
            return true;
    return false;
}

static bool gone(const char *p)
{
    unsigned char resident = 0;
    return mincore((void *)p, page, &resident) != 0 || !(resident & 1);
}

/* Whole pages of a block, written to so that they exist. */
static char *touch(void *block, size_t length)
{
    char *p = (char *)(((uintptr_t)block + page - 1) & ~(page - 1));
    for (volatile char *q = p; (char *)q + page <= (char *)block + length; q += page)
        *q = 1;
    return p;
}

static char *map(size_t pages)
{
    char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : touch(p, pages * page);
}

static bool try_munmap(void)
{
    char *p = map(2);
    return !p || munmap(p, 2 * page) != 0 || announced(p);
}

static bool try_syscall(void)
{
    char *p = map(2);
    return !p || syscall(SYS_munmap, p, 2 * page) != 0 || announced(p);
}

/* The memory is put away with a call that has been tried before. */
static bool try_madvise(void)
{
    char *p = map(1);
    bool ok = !p || madvise(p, page, MADV_DONTNEED) != 0 || announced(p);
    if (p)
        munmap(p, page);
    return ok;
}

static bool try_mmap_fixed(void)
{
    char *p = map(1);
    bool ok = !p || mmap(p, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ||
              announced(p);
    if (p)
        munmap(p, page);
    return ok;
}

static bool try_mremap(void)
{
    char *p = map(4), *q = p ? mremap(p, 4 * page, 2 * page, 0) : MAP_FAILED;
    bool ok = q == MAP_FAILED || announced(q + 2 * page);
    if (p)
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
    return p == (char *)-1 || shmdt(p) != 0 || announced(p);
}

/* Larger than any threshold below which libc would keep the block (32 MiB); only two pages of it ever exist.
 */
#define LARGE ((size_t)64 << 20)

static bool try_free(void)
{
    void *block = malloc(LARGE);
    if (!block)
        return true;
    char *p = touch(block, 3 * page);
    free(block);
    return !gone(p) || announced(p);
}

static bool try_realloc(void)
{
    void *block = malloc(LARGE), *larger = NULL;
    if (!block)
        return true;
    char *p = touch(block, 3 * page);
    larger = realloc(block, 2 * LARGE);
    bool ok = !gone(p) || announced(p);
    free(larger ? larger : block);
    return ok;
}

/* Blocks at the end of the heap: when they are freed, the heap shrinks. */
static bool try_trim(void)
{
    enum { BLOCKS = 24 };
    static const size_t size = 60000;
    void *blocks[BLOCKS];
    char *pages[BLOCKS] = {NULL};
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size);
        if (blocks[i])
            pages[i] = touch(blocks[i], size);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    bool ok = true;
    for (int i = 0; i < BLOCKS; i++)
        ok &= !pages[i] || !gone(pages[i]) || announced(pages[i]);
    return ok;
}

/* Only while there is no other thread, whose malloc might move the break between our two calls. */
static bool try_sbrk(void)
{
    const char *alone = dlsym(RTLD_DEFAULT, "__libc_single_threaded");
    if (!alone || !*alone)
        return true;
    char *block = sbrk((intptr_t)(4 * page));
    if (block == (char *)-1)
        return true;
    char *p = touch(block, 4 * page);
    bool ok = sbrk(-(intptr_t)(4 * page)) == (void *)-1 || !gone(p + page) || announced(p + page);
    return ok;
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
        bool ok = false;
        for (int n = 0; n < TRIES && !ok; n++) {
            forget();
            ok = tries[i].ok();
            if (atomic_load(&noted) <= NOTES)
                break; /* nothing was left out: this counts */
        }
        if (!ok)
            return tries[i].missed;
    }
    return NULL;
}

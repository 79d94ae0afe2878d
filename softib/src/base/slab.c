/* slab.c: memory for objects of connections and registrations: queue pairs, regions, mappings. They are
 * not allocated in the program's heap, because they would fragment it: a long-lived region entry of a few
 * bytes behind a short-lived queue pair of 96 KiB leaves a hole when the queue pair is freed. Freed blocks
 * are reused for the same size; only large blocks are returned to the kernel.
 *
 * With SOFTIB_SLAB_MALLOC the memory comes from malloc instead, where the sanitizers can check its use.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/slab.h"
#include "base/base.h"
#include <stdlib.h>
#include <sys/mman.h>

#if SOFTIB_SLAB_MALLOC

void *slab_new(size_t size)
{
    size = (size + CACHELINE - 1) & ~(size_t)(CACHELINE - 1);
    void *p = aligned_alloc(CACHELINE, size);
    return p ? memset(p, 0, size) : NULL;
}

void slab_free(void *p, size_t size)
{
    (void)size;
    free(p);
}

void slab_after_fork(void)
{
}

#else

/* Size classes are quarters of powers of two, rounded to cache lines: 64, 80, 96, 112, 128, 160, ... */
#define CLASSES   56
#define LONG_FROM (512u << 10)
#define CHUNK     (2u << 20)

struct spare {
    struct spare *next;
};

static struct {
    struct lock lock;
    char *at, *end; /* the unused part of the newest chunk */
    struct spare *spare[CLASSES];
} slab;

static unsigned slab_size_class(size_t size)
{
    size = size < CACHELINE ? CACHELINE : size;
    unsigned power = 63 - (unsigned)__builtin_clzll(size); /* exponent: largest power of two up to `size` */
    size_t rest = size - ((size_t)1 << power);
    return (power - 6) * 4 + (unsigned)((rest * 4 + ((size_t)1 << power) - 1) >> power);
}

static size_t class_size(unsigned c)
{
    size_t power = (size_t)CACHELINE << (c / 4), size = power + power / 4 * (c % 4);
    return (size + CACHELINE - 1) & ~(size_t)(CACHELINE - 1);
}

static void *slab_map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, size, MADV_NOHUGEPAGE); /* most of a chunk may never be used */
    return p;
}

/* Allocates a block from the current chunk. Requires the lock. The rest of a full chunk, less than
 * LONG_FROM, is not used and takes no memory. */
static void *slab_cut_block(size_t size)
{
    if ((size_t)(slab.end - slab.at) < size) {
        char *chunk = slab_map(CHUNK);
        if (!chunk)
            return NULL;
        slab.at = chunk;
        slab.end = chunk + CHUNK;
    }
    slab.at += size;
    return slab.at - size;
}

void *slab_new(size_t size)
{
    if (size >= LONG_FROM)
        return slab_map(size);
    unsigned c = slab_size_class(size);
    spinlock_acquire(&slab.lock);
    struct spare *used = slab.spare[c];
    if (used)
        slab.spare[c] = used->next;
    void *fresh = used ? NULL : slab_cut_block(class_size(c));
    spinlock_release(&slab.lock);
    return used ? memset(used, 0, size) : fresh;
}

void slab_free(void *p, size_t size)
{
    struct spare *s = p;
    if (!p)
        return;
    if (size >= LONG_FROM) {
        munmap(p, size);
        return;
    }
    unsigned c = slab_size_class(size);
    spinlock_acquire(&slab.lock);
    s->next = slab.spare[c];
    slab.spare[c] = s;
    spinlock_release(&slab.lock);
}

/* Resets the allocator in a forked child: another thread may have held the lock, so it is released, and a
 * list that was being changed is dropped. */
void slab_after_fork(void)
{
    if (atomic_load(&slab.lock.held))
        memset(&slab, 0, sizeof(slab));
}

#endif

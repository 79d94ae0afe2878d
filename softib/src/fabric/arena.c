/* arena.c: allocates blocks of this process's arena for rings of work requests and completions. A block is a
 * power of two in size and at least one page. A freed block returns its pages to the kernel and is kept in
 * the free list of its size.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/proc.h"
#include "base/slab.h"
#include <fcntl.h>
#include <stdlib.h>

#define MIN_SHIFT 12
#define CLASSES   20

struct block {
    uint64_t off;
    struct block *next;
};

static struct lock heap_lock;
static uint64_t heap_end;
static struct arena *heap_of;
static struct block *freed[CLASSES];

/* The first offset from `at` on at which a block of this size does not cross the end of an extent, because
 * peers map each extent separately. */
static uint64_t arena_align(uint64_t at, uint64_t size)
{
    for (uint64_t edge = ARENA_FIRST; at + size > edge; edge *= 2)
        at = max_u64(at, edge);
    return at;
}

static unsigned size_class(size_t bytes)
{
    unsigned c = 0;
    while (((size_t)1 << (MIN_SHIFT + c)) < bytes)
        c++;
    return c;
}

uint64_t arena_alloc(size_t bytes)
{
    unsigned c = size_class(bytes);
    uint64_t off = 0;
    if (c >= CLASSES)
        return 0;
    spinlock_acquire(&heap_lock);
    if (heap_of != proc.arena) { /* a forked child has a new arena */
        heap_of = proc.arena;
        heap_end = sizeof(struct arena);
        memset(freed, 0, sizeof(freed));
    }
    struct block *b = freed[c];
    uint64_t size = 1ull << (MIN_SHIFT + c);
    if (b) {
        freed[c] = b->next;
        off = b->off;
        slab_free(b, sizeof(*b));
    } else if (arena_align(heap_end, size) + size <= proc.arena_bytes) {
        off = arena_align(heap_end, size);
        heap_end = off + size;
        if (heap_end > atomic_load(&proc.arena->top))
            atomic_store(&proc.arena->top, heap_end);
    }
    spinlock_release(&heap_lock);
    return off;
}

void arena_free(uint64_t off, size_t bytes)
{
    unsigned c = size_class(bytes);
    struct block *b = slab_new(sizeof(*b));
    if (!off || !b) {
        slab_free(b, sizeof(*b));
        return;
    }
    fallocate(proc.arena_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off,
              (off_t)1 << (MIN_SHIFT + c));
    spinlock_acquire(&heap_lock);
    b->off = off;
    b->next = freed[c];
    freed[c] = b;
    spinlock_release(&heap_lock);
}

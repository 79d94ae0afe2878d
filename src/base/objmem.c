/* objmem.c: ranges of reserved addresses, divided into pieces of a few sizes, with a list of free pieces
 * for each size. Ranges are never unmapped, so that the address of a freed object can still be read.
 *
 * Sanitizers check memory of malloc more precisely. In a sanitizer build malloc allocates objects, and
 * only addresses that cannot be an object are rejected.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/objmem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"

uintptr_t objmem_base = (uintptr_t)1 << 63;
void (*objmem_watch)(void *object, size_t size);

static void *objmem_notify_allocated(void *object, size_t size)
{
    if (unlikely(objmem_watch != NULL) && object)
        objmem_watch(object, size);
    return object;
}

static void objmem_notify_freed(void *object)
{
    if (unlikely(objmem_watch != NULL) && object)
        objmem_watch(object, 0);
}

#if FISHPLATE_OBJMEM_MALLOC

void *objmem_new(size_t size)
{
    return objmem_notify_allocated(calloc(1, size), size);
}

void objmem_free(void *object)
{
    objmem_notify_freed(object);
    free(object);
}

bool objmem_is_foreign_object(const void *handle)
{
    return (uintptr_t)handle % OBJMEM_ALIGN == 0 && (uintptr_t)handle < (uintptr_t)1 << 56;
}

#else

/* Header in front of each object. */
struct head {
    uint32_t size_class;
    uint32_t pad[3];
};
_Static_assert(sizeof(struct head) % _Alignof(max_align_t) == 0, "objects are aligned like malloc's");

struct piece {
    uint32_t magic; /* MAGIC_FREED; at the offset of an object's magic number */
    struct piece *next;
};

struct range {
    uintptr_t start, end;
    uintptr_t used; /* end of the addresses that were allocated */
};

/* Size classes: four for each power of two: 64, 80, 96, 112, 128, 160, ... */
enum { CLASSES = 4 * 40, RANGES = 32, SMALLEST = 64 };

static struct {
    pthread_mutex_t lock;
    struct range ranges[RANGES];
    int count;
    struct piece *free[CLASSES];
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t size_class_of(size_t size)
{
    size = MAX(size, (size_t)SMALLEST);
    const int power = 63 - __builtin_clzll(size); /* log2 of the largest power of two <= size */
    const size_t quarter = ((size - ((size_t)1 << power)) * 4 + ((size_t)1 << power) - 1) >> power;
    return (uint32_t)((power - 6) * 4) + (uint32_t)quarter;
}

static size_t class_size(uint32_t c)
{
    const size_t power = (size_t)SMALLEST << (c / 4);
    return power + power / 4 * (c % 4);
}

/* Reserves another address range, of at least `size` bytes and twice the length of the last one. Pages are
 * allocated when they are first used. */
static bool add_range(size_t size)
{
    if (memory.count == RANGES)
        return false;
    size_t bytes = OBJMEM_FIRST;
    if (memory.count > 0) {
        const struct range *last = &memory.ranges[memory.count - 1];
        bytes = 2 * (last->end - last->start);
    }
    bytes = MAX(bytes, ALIGN_UP(size, (size_t)1 << 20));
    void *start =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return false;
    /* A huge page for a few objects would waste memory. */
    madvise(start, bytes, MADV_NOHUGEPAGE);
    memory.ranges[memory.count++] =
        (struct range){(uintptr_t)start, (uintptr_t)start + bytes, (uintptr_t)start};
    if (memory.count == 1)
        objmem_base = (uintptr_t)start;
    return true;
}

/* Cuts a block from the current range. Requires the lock. */
static struct head *objmem_cut_block(uint32_t size_class)
{
    const size_t size = sizeof(struct head) + class_size(size_class);
    struct range *last = memory.count > 0 ? &memory.ranges[memory.count - 1] : NULL;
    if (!last || last->end - last->used < size) {
        if (!add_range(size))
            return NULL;
        last = &memory.ranges[memory.count - 1];
    }
    struct head *head = (struct head *)last->used;
    last->used += size;
    head->size_class = size_class;
    return head;
}

void *objmem_new(size_t size)
{
    const uint32_t c = size_class_of(size);
    if (c >= CLASSES)
        return NULL;
    pthread_mutex_lock(&memory.lock);
    struct piece *piece = memory.free[c];
    if (piece)
        memory.free[c] = piece->next;
    struct head *head = piece ? NULL : objmem_cut_block(c);
    pthread_mutex_unlock(&memory.lock);
    if (piece)
        return objmem_notify_allocated(memset(piece, 0, size), size);
    return head ? objmem_notify_allocated(head + 1, size) : NULL;
}

void objmem_free(void *object)
{
    if (!object)
        return;
    objmem_notify_freed(object);
    struct piece *piece = object;
    const uint32_t c = ((struct head *)object - 1)->size_class;
    pthread_mutex_lock(&memory.lock);
    piece->magic = MAGIC_FREED;
    piece->next = memory.free[c];
    memory.free[c] = piece;
    pthread_mutex_unlock(&memory.lock);
}

bool objmem_is_foreign_object(const void *handle)
{
    bool found = false;
    pthread_mutex_lock(&memory.lock);
    for (int i = 1; i < memory.count; i++)
        found |= (uintptr_t)handle - memory.ranges[i].start < memory.ranges[i].end - memory.ranges[i].start;
    pthread_mutex_unlock(&memory.lock);
    return found && (uintptr_t)handle % OBJMEM_ALIGN == 0;
}

#endif

/* objmem.h: memory for objects of which the user has handles, in separate address ranges: an invalid
 * handle (never set, a constant of another MPI library, a pointer to other data) is recognised by its
 * address, before it is dereferenced. Long-lived data of the library is allocated here, too, so that it
 * does not fragment the program's heap.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_OBJMEM_H
#define FP_BASE_OBJMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/object.h"

/* Bytes of the first range; more ranges follow when it is full. Unused pages occupy no memory. */
#define OBJMEM_FIRST ((size_t)64 << 20)
#define OBJMEM_ALIGN 8 /* least alignment of an object, which may be part of an allocation */

/* The start of the first range; before the first allocation, an address outside of every process. Hidden
 * visibility, so that a read does not use the global offset table. */
extern uintptr_t objmem_base __attribute__((visibility("hidden")));

/* Zeroed memory for one object or for a block of objects; NULL: out of memory. Any thread may call. */
void *objmem_new(size_t size);
/* Frees an object and changes its first word, so that its address is no valid handle any more. NULL is
 * allowed. */
void objmem_free(void *object);

/* Called after each allocation with the size in bytes, and before each free with size 0. NULL unless
 * FISHPLATE_DEBUG=leaks is set. */
extern void (*objmem_watch)(void *object, size_t size);

/* True if a handle outside of the first range lies in another range. */
bool objmem_is_foreign_object(const void *handle) __attribute__((cold));

/* True if malloc could have returned this address. For objects that malloc allocates. */
static inline bool objmem_is_malloc_aligned(const void *handle)
{
    return (uintptr_t)handle % _Alignof(max_align_t) == 0 && (uintptr_t)handle < (uintptr_t)1 << 56;
}

/* True if an object may be at this address, which can then be read. One rotation checks range and
 * alignment together. */
static inline bool objmem_contains(const void *handle)
{
    const uint64_t at = (uintptr_t)handle - objmem_base;
    return (at >> 3 | at << 61) < OBJMEM_FIRST / OBJMEM_ALIGN;
}

/* True if this handle, which is not predefined, is an object with this magic number. */
static inline bool object_has_magic(const void *handle, enum object_magic magic)
{
    if (__builtin_expect(!objmem_contains(handle), 0) && !objmem_is_foreign_object(handle))
        return false;
    return ((const struct object *)handle)->magic == magic;
}

#endif

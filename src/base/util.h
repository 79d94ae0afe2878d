/* util.h: macros for all files. None of them contains control flow.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_BASE_UTIL_H
#define FP_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE 64

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define COUNT_OF(array)                    (sizeof(array) / sizeof((array)[0]))
#define ALIGN_UP(x, align)                 (((x) + (align)-1) / (align) * (align))
#define container_of(ptr, type, member)    ((type *)((char *)(ptr)-offsetof(type, member)))
#define PRINTF_LIKE(fmt_index, args_index) __attribute__((format(printf, fmt_index, args_index)))

/* Adds to an address in a user buffer. MPI_BOTTOM is a null pointer, on which pointer arithmetic is
 * undefined; integer arithmetic is not. */
static inline void *ptr_add(const void *base, intptr_t offset)
{
    return (void *)((uintptr_t)base + (uintptr_t)offset);
}

#endif

/* taken.h: which addresses a system call unmaps, replaces by other pages, or makes writable: a pure function
 * of its arguments.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_TAKEN_H
#define FP_NET_MEMHOOK_TAKEN_H

#include <stddef.h>
#include <stdint.h>

struct span {
    uintptr_t start;
    size_t length; /* start 0 and SIZE_MAX: the range is unknown */
};

struct syscall_args {
    long number;
    long a[6];
};

/* Writes at most two spans of whole pages that the call releases if it succeeds, and returns their number.
 * heap_end is the program break before the call. */
int syscall_released_spans(const struct syscall_args *call, uintptr_t heap_end, size_t page,
                           struct span out[2]);

#endif

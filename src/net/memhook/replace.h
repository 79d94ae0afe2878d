/* replace.h: the functions that stand in for those of libc: each announces the memory that is returned, then makes the system call
 * itself, so that nothing of the old code is needed. Where another tool had already redirected a function,
 * the tool's own is called instead of the system.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_REPLACE_H
#define FP_NET_MEMHOOK_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replacement {
    const char *name;   /* in libc */
    void *function;     /* the replacement */
    uintptr_t *another; /* function that another tool has put in place of libc's; 0: none */
    bool optional;      /* some versions of libc do not have the function */
};

extern const struct replacement replacements[];
enum { REPLACEMENTS = 12 };

/* Finds the functions of libc that the replacements call; NULL, or the name of a missing one. */
const char *replacements_prepare(void);

/* Implemented by memhook.c: called before memory is taken. */
void memhook_notify_listeners(uintptr_t start, size_t length);

#endif

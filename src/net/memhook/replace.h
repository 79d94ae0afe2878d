/* replace.h: the replacements of functions of libc: each announces the memory that will be released, then
 * makes the system call itself, so that no original code is needed. If another tool had already redirected a
 * function, the tool's function is called instead of the system.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_REPLACE_H
#define FP_NET_MEMHOOK_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replacement {
    const char *name;   /* name in libc */
    void *function;     /* the replacement */
    uintptr_t *another; /* function that another tool has installed instead of libc's; 0: none */
    bool optional;      /* some versions of libc do not have the function */
};

extern const struct replacement replacements[];
enum { REPLACEMENTS = 12 };

/* Finds the functions of libc that the replacements call. Returns NULL, or why libc cannot be used. */
const char *replacements_prepare(void);

/* Called before memory is released; implemented in memhook.c. */
void memhook_notify_listeners(uintptr_t start, size_t length);

#endif

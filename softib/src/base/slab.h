/* slab.h: see slab.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SLAB_H
#define SOFTIB_SLAB_H

#include <stddef.h>

/* Zeroed, at the beginning of a cache line; NULL when memory is out. Any thread may call. */
void *slab_new(size_t size);
/* `size` is the requested size; NULL is allowed. */
void slab_free(void *p, size_t size);

/* In a forked child, where no other thread can be inside. */
void slab_after_fork(void);

#endif

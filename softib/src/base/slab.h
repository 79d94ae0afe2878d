/* slab.h: see slab.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SLAB_H
#define SOFTIB_SLAB_H

#include <stddef.h>

/* Allocates zeroed memory at a cache-line boundary; NULL if memory is out. Thread-safe. */
void *slab_new(size_t size);
/* `size` is the requested size; NULL is allowed. */
void slab_free(void *p, size_t size);

/* Called in a forked child, which has no other threads. */
void slab_after_fork(void);

#endif

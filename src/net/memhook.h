/* memhook.h: notices when memory goes away: munmap, mremap, madvise(DONTNEED, FREE, REMOVE), mmap(MAP_FIXED)
 * over existing memory, brk and sbrk, shmdt, mprotect that adds PROT_WRITE (what was registered for reading
 * must be registered anew), and the allocator's own calls of these inside libc. It is what
 * makes it safe to keep memory registered after its last use.
 *
 * Not seen: system calls made without libc, and what dlclose unmaps (memhook/library.h is for that).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MEMHOOK_H
#define FP_NET_MEMHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called before memory is released. It may run in any thread, inside the allocator and in a signal handler: it must
 * not allocate or lock. (0, SIZE_MAX) if the range is unknown. */
typedef void memhook_fn(void *ctx, uintptr_t address, size_t len);

/* Installs the hooks (once in a process; further calls add listeners, at most 4). Verified by a self-test:
 * the return value is false when an event was missed, and *why names it; nothing must be cached then.
 * FISHPLATE_MEM_HOOKS=off refuses. */
bool memhook_open(memhook_fn *fn, void *ctx, const char **why);

/* Removes a listener: when this returns, fn is not running and will not be called again. The last one removes the
 * hooks, unless another tool has put its own over them. */
void memhook_close(memhook_fn *fn, void *ctx);

/* False if another tool has replaced or removed a hook: events may have been missed, and more will be. */
bool memhook_is_intact(void);

#endif

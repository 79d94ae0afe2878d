/* memhook.h: detects that memory is released: munmap, mremap, madvise(DONTNEED, FREE, REMOVE),
 * mmap(MAP_FIXED) over existing memory, brk and sbrk, shmdt, mprotect that adds PROT_WRITE (memory registered
 * for reading must be registered again), and the allocator's own calls of these inside libc. Only with this
 * detection is it safe to keep memory registered after its last use.
 *
 * Not detected: system calls made without libc, and memory that dlclose unmaps (see memhook/library.h).
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

/* Installs the hooks (once in a process; further calls add listeners, at most 4) and tests them. Returns
 * false, and the reason in *why, if a release was not detected or FISHPLATE_MEM_HOOKS=off: then no
 * registration may be cached. */
bool memhook_open(memhook_fn *fn, void *ctx, const char **why);

/* Removes a listener: when this returns, fn is not running and will not be called again. With the last
 * listener the hooks are removed, unless another tool has patched the same functions since. */
void memhook_close(memhook_fn *fn, void *ctx);

/* False if another tool has replaced or removed a hook: events may have been missed, and more will be. */
bool memhook_is_intact(void);

#endif

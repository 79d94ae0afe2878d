/* taken.c: computes the addresses that a system call releases or changes. In doubt too much memory is
 * reported as released: that costs only a new registration, but an unreported release would corrupt data.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memhook/taken.h"

#include <linux/mman.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

/* These constants are missing in the headers of some systems. */
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

static const struct span everything = {0, SIZE_MAX};

/* Rounds to pages as the kernel does. It refuses an unaligned start, so only the end matters. */
static struct span span_round_to_pages(uintptr_t start, uintptr_t length, size_t page)
{
    uintptr_t first = start & ~(page - 1);
    uintptr_t bytes = start - first + length;
    if (bytes < length || bytes > SIZE_MAX - page)
        return everything;
    return (struct span){first, (bytes + page - 1) & ~(page - 1)};
}

static bool advice_discards_pages(long advice)
{
    switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
    case MADV_DONTNEED_LOCKED:
    case MADV_HWPOISON:
    case MADV_SOFT_OFFLINE:
        return true;
    default:
        return false;
    }
}

static int mremap_released_spans(const long *a, size_t page, struct span out[2])
{
    uintptr_t old = (uintptr_t)a[0], old_size = (uintptr_t)a[1], new_size = (uintptr_t)a[2];
    long flags = a[3];
    if (flags & MREMAP_FIXED) {
        out[0] = span_round_to_pages(old, old_size, page);
        out[1] = span_round_to_pages((uintptr_t)a[4], new_size, page);
        return 2;
    }
    if (new_size < old_size && !(flags & MREMAP_DONTUNMAP)) { /* shrinks in place */
        struct span keep = span_round_to_pages(old, new_size, page),
                    all = span_round_to_pages(old, old_size, page);
        if (all.length <= keep.length || all.length == SIZE_MAX)
            return 0;
        out[0] = (struct span){old + keep.length, all.length - keep.length};
        return 1;
    }
    if (!(flags & (MREMAP_MAYMOVE | MREMAP_DONTUNMAP)))
        return 0;
    out[0] = span_round_to_pages(old, old_size, page);
    return 1;
}

int syscall_released_spans(const struct syscall_args *call, uintptr_t heap_end, size_t page,
                           struct span out[2])
{
    const long *a = call->a;
    bool takes = false;
    out[0] = span_round_to_pages((uintptr_t)a[0], (uintptr_t)a[1], page);
    switch (call->number) {
    case SYS_munmap:
    case SYS_remap_file_pages:
        takes = true;
        break;
    case SYS_mmap:
        takes = (a[3] & MAP_FIXED) && !(a[3] & MAP_FIXED_NOREPLACE);
        break;
    case SYS_madvise:
        takes = advice_discards_pages(a[2]);
        break;
    case SYS_mprotect: /* no memory is released, but a read-only registration does not suffice any more */
        takes = a[2] & PROT_WRITE;
        break;
    case SYS_mremap:
        return mremap_released_spans(a, page, out);
    case SYS_brk: {
        uintptr_t end = ((uintptr_t)a[0] + page - 1) & ~(page - 1);
        takes = a[0] != 0 && end < heap_end;
        if (takes)
            out[0] = span_round_to_pages(end, heap_end - end, page);
        break;
    }
    case SYS_shmdt: /* only the kernel knows the length */
        takes = true;
        out[0] = everything;
        break;
    case SYS_shmat:
        takes = a[2] & SHM_REMAP;
        out[0] = everything;
        break;
    case SYS_process_madvise: /* a list of ranges, of this process or another */
        takes = advice_discards_pages(a[3]);
        out[0] = everything;
        break;
    default:
        break;
    }
    return takes ? 1 : 0;
}

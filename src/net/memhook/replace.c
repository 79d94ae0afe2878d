/* replace.c: see replace.h. These run in any thread, inside malloc, in signal handlers: they call nothing of
 * libc and use no memory but the stack.
 *
 * Calls inside libc arrive here too, since it is the function's code that jumps, not the table a program
 * calls through: free() of a large block (munmap), realloc() (mremap), trimming (brk through sbrk, madvise,
 * mmap), stacks of threads that ended. The dynamic linker has copies of its own: see library.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memhook/replace.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/rawcall.h"
#include "base/util.h"
#include "net/memhook/taken.h"

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

static size_t page_size;
static void **current_break; /* libc's own idea of the break, which brk must keep right */

static uintptr_t other_munmap, other_mmap, other_mremap, other_madvise, other_mprotect, other_brk,
    other_shmat, other_shmdt, other_remap_file_pages, other_process_madvise, other_syscall;

static void replace_announce_call(const struct syscall_args *call)
{
    struct span spans[2];
    uintptr_t heap_end = call->number == SYS_brk ? (uintptr_t)raw_syscall(SYS_brk, 0, 0, 0, 0, 0, 0) : 0;
    int n = syscall_released_spans(call, heap_end, page_size, spans);
    for (int i = 0; i < n; i++)
        memhook_notify_listeners(spans[i].start, spans[i].length);
}

static long set_errno_from_result(long result)
{
    if ((unsigned long)result < -4095UL)
        return result;
    errno = (int)-result;
    return -1;
}

static long call_system(const struct syscall_args *c)
{
    return set_errno_from_result(
        raw_syscall(c->number, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]));
}

static int new_munmap(void *address, size_t length)
{
    struct syscall_args c = {SYS_munmap, {(long)address, (long)length}};
    replace_announce_call(&c);
    return other_munmap ? ((int (*)(void *, size_t))other_munmap)(address, length) : (int)call_system(&c);
}

typedef void *mmap_fn(void *, size_t, int, int, int, off_t);

static void *new_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
    struct syscall_args c = {SYS_mmap, {(long)address, (long)length, prot, flags, fd, offset}};
    replace_announce_call(&c);
    return other_mmap ? ((mmap_fn *)other_mmap)(address, length, prot, flags, fd, offset)
                      : (void *)call_system(&c);
}

typedef void *mremap_fn(void *, size_t, size_t, int, void *);

/* Replaces mremap. The last argument is passed only with flags that need it; otherwise its register contains an
 * arbitrary value. */
static void *new_mremap(void *old, size_t old_size, size_t new_size, int flags, void *address)
{
    struct syscall_args c = {SYS_mremap, {(long)old, (long)old_size, (long)new_size, flags}};
    if (flags & ~MREMAP_MAYMOVE)
        c.a[4] = (long)address;
    replace_announce_call(&c);
    return other_mremap ? ((mremap_fn *)other_mremap)(old, old_size, new_size, flags, address)
                        : (void *)call_system(&c);
}

static int new_madvise(void *address, size_t length, int advice)
{
    struct syscall_args c = {SYS_madvise, {(long)address, (long)length, advice}};
    replace_announce_call(&c);
    return other_madvise ? ((int (*)(void *, size_t, int))other_madvise)(address, length, advice)
                         : (int)call_system(&c);
}

static int new_mprotect(void *address, size_t length, int prot)
{
    struct syscall_args c = {SYS_mprotect, {(long)address, (long)length, prot}};
    replace_announce_call(&c);
    return other_mprotect ? ((int (*)(void *, size_t, int))other_mprotect)(address, length, prot)
                          : (int)call_system(&c);
}

/* Replaces brk; sbrk calls it. */
static int new_brk(void *address)
{
    struct syscall_args c = {SYS_brk, {(long)address}};
    replace_announce_call(&c);
    int rc = 0;
    if (other_brk) {
        rc = ((int (*)(void *))other_brk)(address);
    } else {
        void *now = (void *)raw_syscall(SYS_brk, (long)address, 0, 0, 0, 0, 0);
        *current_break = now;
        if ((uintptr_t)now < (uintptr_t)address)
            rc = (int)set_errno_from_result(-ENOMEM);
    }
    return rc;
}

static void *new_shmat(int id, const void *address, int flags)
{
    struct syscall_args c = {SYS_shmat, {id, (long)address, flags}};
    replace_announce_call(&c);
    return other_shmat ? ((void *(*)(int, const void *, int))other_shmat)(id, address, flags)
                       : (void *)call_system(&c);
}

static int new_shmdt(const void *address)
{
    struct syscall_args c = {SYS_shmdt, {(long)address}};
    replace_announce_call(&c);
    return other_shmdt ? ((int (*)(const void *))other_shmdt)(address) : (int)call_system(&c);
}

typedef int remap_fn(void *, size_t, int, size_t, int);

static int new_remap_file_pages(void *address, size_t length, int prot, size_t page, int flags)
{
    struct syscall_args c = {SYS_remap_file_pages, {(long)address, (long)length, prot, (long)page, flags}};
    replace_announce_call(&c);
    return other_remap_file_pages ? ((remap_fn *)other_remap_file_pages)(address, length, prot, page, flags)
                                  : (int)call_system(&c);
}

typedef ssize_t process_madvise_fn(int, const struct iovec *, size_t, int, unsigned);

static ssize_t new_process_madvise(int pidfd, const struct iovec *list, size_t n, int advice, unsigned flags)
{
    struct syscall_args c = {SYS_process_madvise, {pidfd, (long)list, (long)n, advice, (long)flags}};
    replace_announce_call(&c);
    return other_process_madvise
               ? ((process_madvise_fn *)other_process_madvise)(pidfd, list, n, advice, flags)
               : call_system(&c);
}

typedef long syscall_fn(long, long, long, long, long, long, long);

/* Replaces syscall(), by which allocators that wrap munmap themselves call the kernel. */
static long new_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    struct syscall_args s = {number, {a, b, c, d, e, f}};
    replace_announce_call(&s);
    return other_syscall ? ((syscall_fn *)other_syscall)(number, a, b, c, d, e, f) : call_system(&s);
}

const struct replacement replacements[] = {
    {"munmap", (void *)new_munmap, &other_munmap, false},
    {"mmap", (void *)new_mmap, &other_mmap, false},
    {"mmap64", (void *)new_mmap, &other_mmap, true}, /* the same code wherever addresses have 64 bits */
    {"mremap", (void *)new_mremap, &other_mremap, false},
    {"madvise", (void *)new_madvise, &other_madvise, false},
    {"mprotect", (void *)new_mprotect, &other_mprotect, false},
    {"brk", (void *)new_brk, &other_brk, false},
    {"shmat", (void *)new_shmat, &other_shmat, false},
    {"shmdt", (void *)new_shmdt, &other_shmdt, false},
    {"remap_file_pages", (void *)new_remap_file_pages, &other_remap_file_pages, true},
    {"process_madvise", (void *)new_process_madvise, &other_process_madvise, true},
    {"syscall", (void *)new_syscall, &other_syscall, false},
};
_Static_assert(COUNT_OF(replacements) == REPLACEMENTS, "as many as replace.h says");

const char *replacements_prepare(void)
{
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    current_break = dlsym(RTLD_DEFAULT, "__curbrk");
    return current_break ? NULL : "this libc does not show where it keeps the break (__curbrk)";
}

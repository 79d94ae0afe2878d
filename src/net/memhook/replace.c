/* replace.c: the functions that replace munmap and similar functions of libc. The replacements run in any
 * thread, inside malloc, in signal handlers: they call no function of libc and use no memory but the stack.
 *
 * Calls inside libc are caught too, because the function's code jumps, not the table of imported functions:
 * free() of a large block (munmap), realloc() (mremap), trimming (brk through sbrk, madvise, mmap), stacks of
 * threads that ended. The dynamic linker has its own copies of these functions: see library.h.
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
static void **current_break; /* libc's variable with the program break (__curbrk), which brk must update */

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

typedef long call_fn(long, long, long, long, long, long);

/* Announces the memory that the call releases, then makes the call: to the function that another tool has
 * installed instead of libc's, or to the system. Both supported ABIs pass the arguments of these functions in
 * the same registers, whatever their types. */
static long announce_and_call(uintptr_t other, struct syscall_args c)
{
    replace_announce_call(&c);
    return other
               ? ((call_fn *)other)(c.a[0], c.a[1], c.a[2], c.a[3], c.a[4], c.a[5])
               : set_errno_from_result(raw_syscall(c.number, c.a[0], c.a[1], c.a[2], c.a[3], c.a[4], c.a[5]));
}

#define CALL(other, ...) announce_and_call(other, (struct syscall_args){__VA_ARGS__})

static int new_munmap(void *address, size_t length)
{
    return (int)CALL(other_munmap, SYS_munmap, {(long)address, (long)length});
}

static void *new_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
    return (void *)CALL(other_mmap, SYS_mmap, {(long)address, (long)length, prot, flags, fd, offset});
}

/* The last argument is passed only with flags that need it; otherwise its register contains an arbitrary value. */
static void *new_mremap(void *old, size_t old_size, size_t new_size, int flags, void *address)
{
    const long to = flags & ~MREMAP_MAYMOVE ? (long)address : 0;
    return (void *)CALL(other_mremap, SYS_mremap, {(long)old, (long)old_size, (long)new_size, flags, to});
}

static int new_madvise(void *address, size_t length, int advice)
{
    return (int)CALL(other_madvise, SYS_madvise, {(long)address, (long)length, advice});
}

static int new_mprotect(void *address, size_t length, int prot)
{
    return (int)CALL(other_mprotect, SYS_mprotect, {(long)address, (long)length, prot});
}

/* Replaces brk; sbrk calls it. */
static int new_brk(void *address)
{
    if (other_brk)
        return (int)CALL(other_brk, SYS_brk, {(long)address});
    replace_announce_call(&(struct syscall_args){SYS_brk, {(long)address}});
    *current_break = (void *)raw_syscall(SYS_brk, (long)address, 0, 0, 0, 0, 0);
    return (uintptr_t)*current_break < (uintptr_t)address ? (int)set_errno_from_result(-ENOMEM) : 0;
}

static void *new_shmat(int id, const void *address, int flags)
{
    return (void *)CALL(other_shmat, SYS_shmat, {id, (long)address, flags});
}

static int new_shmdt(const void *address)
{
    return (int)CALL(other_shmdt, SYS_shmdt, {(long)address});
}

static int new_remap_file_pages(void *address, size_t length, int prot, size_t page, int flags)
{
    return (int)CALL(other_remap_file_pages, SYS_remap_file_pages,
                     {(long)address, (long)length, prot, (long)page, flags});
}

static ssize_t new_process_madvise(int pidfd, const struct iovec *list, size_t n, int advice, unsigned flags)
{
    return CALL(other_process_madvise, SYS_process_madvise,
                {pidfd, (long)list, (long)n, advice, (long)flags});
}

typedef long syscall_fn(long, long, long, long, long, long, long);

/* Replaces syscall(), by which allocators that wrap munmap themselves call the kernel. */
static long new_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    const struct syscall_args s = {number, {a, b, c, d, e, f}};
    if (!other_syscall)
        return announce_and_call(0, s);
    replace_announce_call(&s);
    return ((syscall_fn *)other_syscall)(number, a, b, c, d, e, f);
}

const struct replacement replacements[] = {
    {"munmap", (void *)new_munmap, &other_munmap, false},
    {"mmap", (void *)new_mmap, &other_mmap, false},
    {"mmap64", (void *)new_mmap, &other_mmap, true}, /* mmap64 equals mmap if addresses have 64 bits */
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
_Static_assert(COUNT_OF(replacements) == REPLACEMENTS, "REPLACEMENTS of replace.h");

const char *replacements_prepare(void)
{
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    current_break = dlsym(RTLD_DEFAULT, "__curbrk");
    return current_break ? NULL : "this libc does not show where it keeps the break (__curbrk)";
}

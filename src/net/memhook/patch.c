/* patch.c: writes machine code over functions that other threads may execute. System calls are made without
 * libc, whose wrappers are being patched.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/memhook/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/rawcall.h"
#include "base/util.h"

#define STEP (2u << 20)

static bool syscall_failed(long result)
{
    return (unsigned long)result >= -4095UL;
}

static uintptr_t address_distance(uintptr_t a, uintptr_t b)
{
    return a > b ? a - b : b - a;
}

/* Maps a page near `wish`. The address is a hint for the kernel, so the result is checked. */
static uint8_t *map_page_near(uintptr_t wish, uintptr_t low, uintptr_t high, uintptr_t reach, size_t size)
{
    long p = raw_syscall(SYS_mmap, (long)wish, (long)size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (syscall_failed(p))
        return NULL;
    uintptr_t at = (uintptr_t)p;
    if (MAX(address_distance(at, high), address_distance(at + size, low)) < reach &&
        MAX(address_distance(at, low), address_distance(at + size, high)) < reach)
        return (uint8_t *)p;
    raw_syscall(SYS_munmap, p, (long)size, 0, 0, 0, 0);
    return NULL;
}

/* Maps a page near libc: usually the kernel's choice is near enough; otherwise addresses at growing distance
 * on both sides are tried. */
uint8_t *patch_page_near(uintptr_t low, uintptr_t high, uintptr_t reach, size_t size)
{
    uint8_t *page = map_page_near(0, low, high, reach, size);
    uintptr_t middle = low / STEP * STEP;
    for (uintptr_t off = STEP; !page && off < MIN(reach, 256ul * STEP); off += STEP) {
        page = map_page_near(middle - off, low, high, reach, size);
        if (!page)
            page = map_page_near(middle + off, low, high, reach, size);
    }
    return page;
}

bool patch_seal(uint8_t *page, size_t size)
{
    __builtin___clear_cache((char *)page, (char *)page + size);
    return !syscall_failed(raw_syscall(SYS_mprotect, (long)page, (long)size, PROT_READ | PROT_EXEC, 0, 0, 0));
}

/* Writes the bytes by one store if they lie in one aligned word; false otherwise. */
static bool store_atomically(uint8_t *at, const uint8_t *bytes, size_t length)
{
    size_t offset = (uintptr_t)at % 8;
    if (offset + length > 8)
        return false;
    uint64_t *word = (uint64_t *)(at - offset), value = *word;
    memcpy((uint8_t *)&value + offset, bytes, length);
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    __builtin___clear_cache((char *)at, (char *)at + length);
    return true;
}

/* Writes bytes that do not fit one atomic store: meanwhile a thread that reaches the code loops at the first
 * bytes (code->hold). */
static void patch_store_bytes(const struct jump_code *code, uint8_t *at, const uint8_t *bytes, size_t length)
{
    if (store_atomically(at, bytes, length))
        return;
    size_t head = code->hold_length;
    bool held = store_atomically(at, code->hold, head);
    memcpy(at + head, bytes + head, length - head);
    __builtin___clear_cache((char *)at, (char *)at + length);
    if (!held || !store_atomically(at, bytes, head))
        memcpy(at, bytes, head);
    __builtin___clear_cache((char *)at, (char *)at + length);
}

/* Writes through /proc/self/mem, for systems on which no page may be writable and executable at once. */
static bool write_through_kernel(uint8_t *at, const uint8_t *bytes, size_t length)
{
    long fd = raw_syscall(SYS_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDWR | O_CLOEXEC, 0, 0, 0);
    if (syscall_failed(fd))
        return false;
    long n = raw_syscall(SYS_pwrite64, fd, (long)bytes, (long)length, (long)at, 0, 0);
    raw_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
    __builtin___clear_cache((char *)at, (char *)at + length);
    return n == (long)length;
}

/* Replaces the bytes. Changed pages lose BTI protection; their landing pads then have no effect. */
bool patch_write(const struct jump_code *code, uint8_t *at, const uint8_t *bytes, size_t length)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)at & ~(page - 1), end = ((uintptr_t)at + length + page - 1) & ~(page - 1);
    long all = PROT_READ | PROT_WRITE | PROT_EXEC;
    if (syscall_failed(raw_syscall(SYS_mprotect, (long)first, (long)(end - first), all, 0, 0, 0)))
        return write_through_kernel(at, bytes, length);
    patch_store_bytes(code, at, bytes, length);
    raw_syscall(SYS_mprotect, (long)first, (long)(end - first), PROT_READ | PROT_EXEC, 0, 0, 0);
    return true;
}

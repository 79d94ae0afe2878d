/* mapping.c: finds the mapping of this process that contains a region. Since Linux 6.11 PROCMAP_QUERY returns
 * a single mapping. Older kernels offer only the text of all mappings, which took most of the time of a
 * registration.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory/mapping.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

/* From linux/fs.h of Linux 6.11, which Debian 12 does not have. */
struct query {
    uint64_t size, flags, addr;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_size, build_id_size;
    uint64_t name, build_id;
};
#define QUERY          _IOWR('f', 17, struct query)
#define QUERY_WRITABLE 0x02u
#define QUERY_SHARED   0x08u
#define NAME_SIZE      128 /* of memory without a file the name has at most 87 bytes */

static enum kind mapping_kind(bool shared, uint64_t ino, const char *name)
{
    bool plain = !*name || !strcmp(name, "[heap]"); /* plain: anonymous memory or the heap, not a stack */
    return shared && ino ? MAP_SHARED_FILE : !shared && !ino && plain ? MAP_PRIVATE_ANON : MAP_OTHER;
}

/* Queries the kernel for one mapping. The file is opened each time: a forked child would read the parent's
 * memory map through an inherited descriptor. */
int mapping_query(uint64_t addr, uint64_t len, struct mapping *m)
{
    char name[NAME_SIZE] = "";
    struct query q = {.size = sizeof(q), .addr = addr};
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = ioctl(fd, QUERY, &q);
    const bool known = !rc || errno == ENOENT; /* ENOENT: the address is not mapped */
    if (!rc && !q.inode && !(q.vma_flags & QUERY_SHARED)) {
        struct query named = {
            .size = sizeof(named), .addr = addr, .name_size = sizeof(name), .name = (uintptr_t)name};
        if (ioctl(fd, QUERY, &named) || !named.name_size)
            *name = '\0';
    }
    close(fd);
    if (rc)
        return known ? 0 : -1;
    *m = (struct mapping){.start = q.start,
                          .end = q.end,
                          .offset = q.offset,
                          .ino = q.inode,
                          .dev = makedev(q.major, q.minor),
                          .kind = mapping_kind(q.vma_flags & QUERY_SHARED, q.inode, name)};
    return addr >= q.start && addr + len <= q.end && q.vma_flags & QUERY_WRITABLE;
}

bool mapping_read(uint64_t addr, uint64_t len, struct mapping *m)
{
    char line[512], perms[8], name[16];
    FILE *in = fopen("/proc/self/maps", "re");
    bool found = false;
    while (in && !found && fgets(line, sizeof(line), in)) {
        unsigned long long a, b, off, ino;
        unsigned major, minor;
        int n = sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %15s", &a, &b, perms, &off, &major, &minor, &ino,
                       name);
        if (n < 7)
            continue;
        if (a > addr)
            break;
        found = addr >= a && addr + len <= b && perms[1] == 'w';
        *m = (struct mapping){.start = a,
                              .end = b,
                              .offset = off,
                              .ino = ino,
                              .dev = makedev(major, minor),
                              .kind = mapping_kind(perms[3] == 's', ino, n == 7 ? "" : name)};
    }
    if (in)
        fclose(in);
    return found;
}

bool mapping_find(uint64_t addr, uint64_t len, struct mapping *m)
{
    int found = mapping_query(addr, len, m);
    return found < 0 ? mapping_read(addr, len, m) : found;
}

bool mapping_is_present(uint64_t addr, uint64_t len)
{
    const uint64_t start = addr & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    char byte;
    const struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)addr, 1};
    return !len || ((!msync((void *)(uintptr_t)start, addr + len - start, MS_ASYNC) || errno != ENOMEM) &&
                    /* EFAULT: a mapping without access rights, that is, memory of a GPU */
                    (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT));
}

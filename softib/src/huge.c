/*
 * Private memory that is registered is asked to be in huge pages, as far as its mapping has whole ones: the
 * kernel finds the pages of a cross-memory copy, and a copy of huge pages runs at twice the speed. The
 * program sees nothing of it, and a registration pins memory on an HCA too, so that it is all there
 * afterwards. SPDX-License-Identifier: Apache-2.0
 */
#include "hca.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define LEAST    (1ull << 20) /* shorter messages gain nothing worth a copy of the memory */
#define PAUSE_NS (1 * NS_S)

static uint64_t huge_bytes; /* 0: none to be had */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool read_line(const char *path, char *buf, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, buf, n - 1);
    if (fd >= 0)
        close(fd);
    buf[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* Who has switched huge pages off for the whole machine is not overruled. */
static void find_out(void)
{
    char buf[128];
    if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", buf, sizeof(buf)) || strstr(buf, "[never]"))
        return;
    read_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", buf, sizeof(buf));
    uint64_t v = strtoull(buf, NULL, 10);
    huge_bytes = v & (v - 1) ? 0 : v;
}

void huge_pages(uint64_t addr, uint64_t len, uint64_t map_start, uint64_t map_end)
{
    static _Atomic uint64_t not_before;
    pthread_once(&once, find_out);
    if (!huge_bytes || len < LEAST || now_ns() < atomic_load(&not_before))
        return;
    uint64_t mask = huge_bytes - 1;
    uint64_t from = max_u64(addr & ~mask, (map_start + mask) & ~mask);
    uint64_t to = min_u64((addr + len + mask) & ~mask, map_end & ~mask);
    /* No huge page left: looking for one again would cost each registration time. */
    if (from < to && madvise((void *)(uintptr_t)from, to - from, MADV_COLLAPSE))
        atomic_store(&not_before, now_ns() + PAUSE_NS);
}

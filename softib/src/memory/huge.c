/* huge.c: requests huge pages from the kernel for registered private memory that covers whole huge pages.
 * The kernel looks up the pages of a cross-memory copy one by one; with huge pages the copy is twice as
 * fast. Collapsing small pages into huge ones costs as much as twenty such copies, which is worthwhile
 * only if the memory is used repeatedly. Therefore a region is moved to huge pages when it is used again.
 * Each reused region adds to a credit, with which new regions are moved at registration; a program that
 * sends every message from new memory has no credit and no cost.
 *
 * The program uses slightly more memory if a huge page extends beyond the registered range. All pages of
 * the region are present afterwards, like pages that an HCA has pinned.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory/huge.h"
#include "base/base.h"
#include "base/keepheap.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define SHARE    4   /* a huge page is requested if 1/SHARE of it is registered or most of it is resident */
#define CREDIT   256 /* limit of the credit (huge.c), in huge pages */
#define PAUSE_NS (1 * NS_S)

static uint64_t huge_bytes; /* size of a huge page; 0: not available */
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

/* If huge pages are disabled for the whole machine, none are requested. */
static void find_huge_page_size(void)
{
    char buf[128];
    if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", buf, sizeof(buf)) || strstr(buf, "[never]"))
        return;
    read_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", buf, sizeof(buf));
    uint64_t v = strtoull(buf, NULL, 10);
    huge_bytes = v & (v - 1) ? 0 : v;
}

static void prepare_heap(void)
{
    /* Padding before the heap's first huge page; never accessed, so it takes no memory. */
    static void *volatile room;
    const char *wish = getenv("SOFTIB_MALLOC");
    pthread_once(&once, find_huge_page_size);
    if (!huge_bytes || (wish && !strcmp(wish, "leave")) || !keepheap_set_thresholds())
        return;
    room = malloc(huge_bytes);
    (void)room;
}

void huge_configure_malloc(void)
{
    static pthread_once_t prepared = PTHREAD_ONCE_INIT;
    pthread_once(&prepared, prepare_heap);
}

static bool huge_is_mostly_resident(uint64_t at)
{
    unsigned char there[2048];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages = huge_bytes / page, n = 0;
    if (pages > sizeof(there) || mincore((void *)(uintptr_t)at, huge_bytes, there))
        return false;
    for (uint64_t i = 0; i < pages; i++)
        n += there[i] & 1;
    return n >= pages - pages / 8;
}

static atomic_int credit;

static int huge_page_count(uint64_t len)
{
    return (int)min_u64((len + huge_bytes - 1) / huge_bytes, CREDIT);
}

bool huge_take_credit(uint64_t len)
{
    pthread_once(&once, find_huge_page_size);
    if (!huge_bytes || len < HUGE_LEAST || atomic_load(&credit) <= 0)
        return false;
    atomic_fetch_sub(&credit, huge_page_count(len));
    return true;
}

void huge_renew_credit(uint64_t len)
{
    if (huge_bytes && len >= HUGE_LEAST && atomic_load(&credit) < CREDIT)
        atomic_fetch_add(&credit, 2 * huge_page_count(len));
}

bool huge_collapse_pages(uint64_t addr, uint64_t len, uint64_t map_start, uint64_t map_end)
{
    static _Atomic uint64_t not_before;
    pthread_once(&once, find_huge_page_size);
    if (!huge_bytes || len < HUGE_LEAST || now_ns() < atomic_load(&not_before))
        return true;
    bool all = true;
    uint64_t mask = huge_bytes - 1;
    uint64_t at = max_u64(addr & ~mask, (map_start + mask) & ~mask);
    for (; at < addr + len && at + huge_bytes <= map_end; at += huge_bytes) {
        uint64_t ours = min_u64(at + huge_bytes, addr + len) - max_u64(at, addr);
        if (!(ours >= huge_bytes / SHARE || huge_is_mostly_resident(at)) ||
            !madvise((void *)(uintptr_t)at, huge_bytes, MADV_COLLAPSE))
            continue;
        all = false;
        if (errno == EAGAIN) /* EAGAIN: a copy is using a page */
            continue;
        /* No huge page is free: further attempts would make every registration slower. */
        atomic_store(&not_before, now_ns() + PAUSE_NS);
        break;
    }
    return all;
}

/* area.c: allocates pieces of the node's shared memory for the layers above, by the page, from a bitmap in
 * the segment itself. This is rare: once per communicator.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/kill_point.h"
#include "net/lock.h"
#include "net/shm/shm.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14; EINVAL before */
#endif
#define AREA_PAGE  4096u
#define AREA_PAGES (SEGMENT_AREA_SIZE / AREA_PAGE)

static bool is_page_used(const struct segment_head *h, size_t page)
{
    return h->area_used[page / 64] >> (page % 64) & 1;
}

/* Marks pages as used or free. Requires the lock. area_first and area_count are set before and area_count is
 * cleared after the change, so that the next owner of the lock can free the pages if this process dies. */
static void mark_pages(struct segment_head *h, size_t first, size_t count, bool used)
{
    h->area_first = (uint32_t)first;
    atomic_signal_fence(memory_order_seq_cst); /* a killed process's stores appear in program order */
    h->area_count = (uint32_t)count;
    atomic_signal_fence(memory_order_seq_cst);
    KILL_POINT(area_recorded);
    for (size_t i = first; i < first + count; i++) {
        uint64_t bit = (uint64_t)1 << (i % 64);
        h->area_used[i / 64] = used ? h->area_used[i / 64] | bit : h->area_used[i / 64] & ~bit;
        if (i == first)
            KILL_POINT(area_half_marked);
    }
    KILL_POINT(area_marked);
    atomic_signal_fence(memory_order_seq_cst);
    h->area_count = 0;
}

/* Acquires the lock. If its owner died while it marked pages, frees these pages. */
static void area_lock(struct net *net, struct segment_head *h)
{
    uint32_t dead;
    if (net_lock(net, &h->area_lock, "lock of the bitmap of the node's shared memory", &dead) ==
            SHLOCK_TAKEN_OVER &&
        h->area_count > 0)
        mark_pages(h, h->area_first, h->area_count, false);
    KILL_POINT(area_locked);
}

static void area_unlock(struct segment_head *h)
{
    shlock_release(&h->area_lock);
}

/* Returns the head of the segment, which has the allocator's bitmap; NULL if no memory is shared. */
static struct segment_head *area_allocator(const struct net *net)
{
    return net->local ? ((struct shm *)net->local)->segment.head : NULL;
}

bool net_area_has_free_pages(const struct net *net)
{
    const struct segment_head *h = area_allocator(net);
    size_t used = 0;
    for (size_t i = 0; h && i < COUNT_OF(h->area_used); i++)
        used += (size_t)__builtin_popcountll(h->area_used[i]);
    return h && used < AREA_PAGES / 2;
}

int net_area_alloc_untouched(struct net *net, size_t len, uint64_t *offset)
{
    struct segment_head *h = area_allocator(net);
    size_t want = (len + AREA_PAGE - 1) / AREA_PAGE;
    if (!h || want == 0 || want > AREA_PAGES)
        return MPI_ERR_NO_MEM;
    size_t run = 0, end = 0;
    area_lock(net, h);
    for (size_t page = 0; page < AREA_PAGES && run < want; page++) {
        run = is_page_used(h, page) ? 0 : run + 1;
        end = page + 1;
    }
    if (run == want)
        mark_pages(h, end - want, want, true);
    area_unlock(h);
    if (run < want)
        return MPI_ERR_NO_MEM;
    *offset = (uint64_t)(end - want) * AREA_PAGE;
    return 0;
}

int net_area_alloc(struct net *net, size_t len, uint64_t *offset)
{
    const int rc = net_area_alloc_untouched(net, len, offset);
    if (!rc)
        memset(net->area + *offset, 0, len);
    return rc;
}

int net_area_get_common(struct net *net, size_t len, uint64_t *offset)
{
    struct segment_head *h = area_allocator(net);
    uint64_t seen = h ? atomic_load(&h->area_common) : 0;
    if (seen == 0) {
        const int rc = net_area_alloc(net, len, offset);
        if (rc != 0)
            return rc;
        if (atomic_compare_exchange_strong(&h->area_common, &seen, *offset + 1))
            return 0;
        net_area_free(net, *offset, len);
    }
    *offset = seen - 1;
    return 0;
}

void net_area_populate(struct net *net, uint64_t offset, size_t len)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)(net->area + offset), begin = from / page * page;
    (void)!madvise((void *)begin, from + len - begin, MADV_POPULATE_WRITE);
}

void net_area_free(struct net *net, uint64_t offset, size_t len)
{
    struct segment_head *h = area_allocator(net);
    area_lock(net, h);
    mark_pages(h, offset / AREA_PAGE, (len + AREA_PAGE - 1) / AREA_PAGE, false);
    area_unlock(h);
}

/* region.c: finds and maps registered memory by its key.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory/region.h"
#include "base/slab.h"
#include "fabric/registry.h"
#include "memory/gpu.h"
#include "memory/huge.h"
#include "memory/mapping.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_SHIFT 12 /* transferred bytes are counted in pages of 4 KiB */
#define STALE_MAX  16 /* limit of stale mappings, in addition to the number of valid ones */

/* Unmaps regions that were deregistered, except those that another thread of this process uses. */
static void unmap_deregistered(struct peer *owner, struct mr_map **bucket)
{
    for (struct mr_map **p = bucket, *m; (m = *p);) {
        const struct sh_mr *s = &owner->arena->mr[m->rkey >> MR_SHIFT];
        if ((atomic_load(&s->rkey) == m->rkey && s->serial == m->serial) ||
            hold_is_taken(owner->slot, m->rkey >> MR_SHIFT)) {
            p = &m->next;
            continue;
        }
        *p = m->next;
        owner->map_count--;
        if (m->unmap)
            m->unmap(m);
        slab_free(m, sizeof(*m));
    }
}

/* Unmaps all stale mappings of the owner's regions: the owner cannot reach them, and each one keeps its
 * memory from being freed. */
static void unmap_stale_regions(struct peer *owner)
{
    for (int i = 0; i < MR_MAPS; i++)
        unmap_deregistered(owner, &owner->maps[i]);
    owner->map_limit = 2 * owner->map_count + STALE_MAX;
}

static void unmap_device_memory(struct mr_map *m)
{
    gpu_unmap(m->map);
}

/* Maps device memory of the owner. Stale mappings of the owner's memory are unmapped first: device memory is
 * scarce and is not freed while it is mapped. */
static void map_device_memory(struct mr_map *m, struct peer *owner, const struct sh_mr *s)
{
    const struct gpu_handle *handle = peer_arena_address(owner, s->file_off);
    unmap_stale_regions(owner);
    if (handle)
        m->base = gpu_map(handle, &m->map);
    if (m->base)
        m->unmap = unmap_device_memory;
}

static void unmap_file(struct mr_map *m)
{
    munmap(m->map, m->map_len);
}

static void map_file(struct mr_map *m, struct peer *owner, const struct sh_mr *s)
{
    const int fd = shared_open_checked(owner->pid, s->fd, s->file_off, s->length);
    if (fd < 0)
        return;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skip = s->file_off & (page - 1);
    m->map_len = s->length + skip;
    m->map = mmap(NULL, m->map_len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(s->file_off - skip));
    close(fd);
    if (m->map == MAP_FAILED)
        return;
    m->base = (char *)m->map + skip;
    m->unmap = unmap_file;
}

/* Maps a peer's shared region. Returns NULL if that is not possible; the failure is cached, too. */
static char *map_region(struct peer *owner, const struct sh_mr *s, uint32_t key)
{
    struct mr_map **bucket = &owner->maps[(key >> MR_SHIFT) % MR_MAPS];
    for (struct mr_map *m = *bucket; m; m = m->next)
        if (LIKELY(m->rkey == key && m->serial == s->serial))
            return m->base;
    if (owner->map_count >= owner->map_limit)
        unmap_stale_regions(owner);
    struct mr_map *m = slab_new(sizeof(*m));
    if (!m)
        return NULL;
    m->rkey = key;
    m->serial = s->serial;
    if (s->access & MR_GPU)
        map_device_memory(m, owner, s);
    else
        map_file(m, owner, s);
    m->next = *bucket;
    *bucket = m;
    owner->map_count++;
    return m->base;
}

static bool region_permits(const struct sh_mr *s, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need)
{
    return s->pd == pd && (s->access & need) == need && addr >= s->iova && len <= s->length &&
           addr - s->iova <= s->length - len;
}

/* True if pages of an unpinned region are missing: an adapter would fail the request, and a copy would
 * crash the process. */
static bool region_has_lost_pages(const struct sh_mr *s, uint64_t addr, uint64_t len)
{
    return UNLIKELY(s->access & MR_ON_DEMAND) && !mapping_is_present(s->addr + (addr - s->iova), len);
}

/* Counts the bytes transferred. When twice the length of a private region was transferred, more transfers
 * are likely, and its owner is requested to move the region to huge pages. */
static void count_region_use(struct peer *owner, struct sh_mr *s, uint32_t key, uint64_t len)
{
    if (LIKELY(len < HUGE_LEAST) || s->fd >= 0 || mr_window_type(s) || s->access & (MR_ON_DEMAND | MR_GPU))
        return;
    uint64_t twice = 2 * (s->length >> PAGE_SHIFT);
    uint64_t before = atomic_load_explicit(&s->moved, memory_order_relaxed);
    if (before >= twice)
        return;
    uint32_t pages = (uint32_t)(len >> PAGE_SHIFT);
    before = atomic_fetch_add_explicit(&s->moved, pages, memory_order_relaxed);
    if (before < twice && before + pages >= twice)
        peer_post_event(owner, SHEV_MR_REUSED, key >> MR_SHIFT, key);
}

uint32_t mr_next_serial(void)
{
    static atomic_uint serial;
    return atomic_fetch_add(&serial, 1) + 1;
}

bool mr_hold_remote(struct peer *owner, uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need,
                    struct rseg *out)
{
    uint32_t idx = key >> MR_SHIFT;
    if (!idx || idx >= MR_MAX)
        return false;
    struct sh_mr *s = &owner->arena->mr[idx];
    /* Acquired before the key is checked: the owner uses the opposite order. Our own regions need no hold:
     * the lock of the wire or of a QP is held here, and the owner acquires those. */
    _Atomic uint64_t *hold = owner->self ? NULL : hold_acquire(owner->slot, idx);
    if (UNLIKELY(atomic_load(&s->rkey) != key || !region_permits(s, pd, addr, len, need))) {
        if (hold)
            hold_release(hold);
        return false;
    }
    if (owner->self && region_has_lost_pages(s, addr, len))
        return false;
    count_region_use(owner, s, key, len);
    uint64_t off = addr - s->iova;
    *out = (struct rseg){.addr = s->addr + off, .len = len, .mr = s, .key = key, .hold = hold};
    if (owner->self) {
        out->map = (char *)(uintptr_t)out->addr;
    } else if (s->fd >= 0 || s->access & MR_GPU) {
        spinlock_acquire(&owner->map_lock);
        char *base = map_region(owner, s, key);
        spinlock_release(&owner->map_lock);
        out->map = base ? base + off : NULL;
    }
    return true;
}

bool mr_resolve_local(uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need, char **at)
{
    uint32_t idx = key >> MR_SHIFT;
    if (!idx || idx >= MR_MAX)
        return false;
    struct sh_mr *s = &proc.arena->mr[idx];
    if (atomic_load_explicit(&s->rkey, memory_order_acquire) != key || UNLIKELY(mr_window_type(s)) ||
        !region_permits(s, pd, addr, len, need) || region_has_lost_pages(s, addr, len))
        return false;
    count_region_use(proc.self, s, key, len);
    *at = (char *)(uintptr_t)(s->addr + (addr - s->iova));
    return true;
}

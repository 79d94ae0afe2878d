/* mr.c: registers and deregisters memory. With the table in the arena a peer checks key, bounds,
 * protection domain and access rights. Memory that is shared already (a memfd, a file in /dev/shm) is
 * detected at registration: a peer maps it and accesses it directly, which is the fastest method.
 * Cross-memory copies access all other memory. As with a hardware adapter, memory of a region is not
 * accessed after its deregistration.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/mr.h"
#include "base/slab.h"
#include "hca/window.h"
#include "hca/wire.h"
#include "memory/gpu.h"
#include "memory/huge.h"
#include "memory/share.h"
#include <sys/mman.h>
#include <unistd.h>

#define ACCESS_KNOWN                                                                                        \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
     IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND)

#define PIN_PAGE 4096u

/* Entries of the table are allocated in turn, so that a stale key finds no region. Entries that were used
 * once take memory in every process that has accessed them; therefore only a window of the table is used,
 * with at least twice as many entries as regions. */
#define WINDOW_LEAST 1024u

static struct lock table_lock;
static uint32_t window_start, window = WINDOW_LEAST, window_hint, regions;
static uint16_t variant[MR_MAX]; /* low bits of the key, different for each use of an entry */
static bool taken[MR_MAX];

/* Returns unpredictable bits for a key, requested from the kernel in bulk. The table's lock is held. */
static uint16_t random_key_bits(void)
{
    static uint16_t pool[256];
    static unsigned left;
    if (!left) {
        random_bytes(pool, sizeof(pool));
        left = ARRAY_LEN(pool);
    }
    return pool[--left] & MR_VARIANT;
}

/* Allocates an entry in the window; returns 0 if all entries are in use. The table's lock is held. */
static uint32_t mr_window_allocate(void)
{
    for (uint32_t i = 0; i < window; i++) {
        uint32_t offset = (window_hint + i) % window, at = (window_start + offset) % MR_MAX;
        if (!at || taken[at])
            continue;
        taken[at] = true;
        window_hint = offset + 1;
        regions++;
        return at;
    }
    return 0;
}

uint32_t mr_number_allocate(void)
{
    spinlock_acquire(&table_lock);
    if (!window_start)
        window_start = 1 + (uint32_t)(random_u64() % (MR_MAX - 1)); /* the first key is unpredictable */
    if (2 * regions >= window && window < MR_MAX)
        window *= 2;
    uint32_t found = mr_window_allocate();
    spinlock_release(&table_lock);
    return found;
}

/* Claims this entry of the table if it is free: an imported region has the key of the exported one. */
static bool claim_table_entry(uint32_t idx)
{
    if (!idx || idx >= MR_MAX)
        return false;
    spinlock_acquire(&table_lock);
    bool mine = !taken[idx];
    taken[idx] = true;
    regions += mine;
    spinlock_release(&table_lock);
    return mine;
}

void mr_table_release(uint32_t idx)
{
    spinlock_acquire(&table_lock);
    taken[idx] = false;
    regions--;
    spinlock_release(&table_lock);
}

/* Returns a key that the entry has not had before. */
uint32_t mr_key_make(uint32_t idx)
{
    spinlock_acquire(&table_lock);
    uint16_t old = variant[idx];
    while (variant[idx] == old)
        variant[idx] = random_key_bits();
    uint32_t key = idx << MR_SHIFT | variant[idx];
    spinlock_release(&table_lock);
    return key;
}

static void mr_publish(struct mr *mr, uint32_t key, uint32_t pd, uint64_t iova, uint32_t access)
{
    struct sh_mr *s = mr->sh;
    struct mapping m;
    s->pd = pd;
    s->access = access;
    s->iova = iova;
    spinlock_acquire(&table_lock); /* mr_advise_huge_pages may be using the entry */
    s->addr = (uintptr_t)mr->ibv.addr;
    s->length = mr->ibv.length;
    spinlock_release(&table_lock);
    s->fd = -1;
    atomic_store_explicit(&s->moved, 0, memory_order_relaxed);
    if (s->length && !(access & (IBV_ACCESS_ON_DEMAND | MR_GPU)) && mapping_find(s->addr, s->length, &m)) {
        if (m.kind == MAP_SHARED_FILE)
            s->fd = mr_open_mapping(&m);
        else if (m.kind == MAP_PRIVATE_ANON && huge_take_credit(s->length))
            huge_collapse_pages(s->addr, s->length, m.start, m.end);
        s->file_off = m.offset + (s->addr - m.start);
    }
    s->serial = mr_next_serial();
    mr->ibv.lkey = mr->ibv.rkey = key;
    atomic_store_explicit(&s->rkey, key, memory_order_release);
}

/* Called when a region was used repeatedly: moves it to huge pages. The memory may be unmapped or reused
 * at any time; the program cannot observe the change. */
void mr_advise_huge_pages(uint32_t idx, uint32_t key)
{
    if (!idx || idx >= MR_MAX)
        return;
    struct sh_mr *s = &proc.arena->mr[idx];
    struct mapping m;
    spinlock_acquire(&table_lock);
    bool there = atomic_load(&s->rkey) == key;
    uint64_t addr = there ? s->addr : 0, length = there ? s->length : 0;
    spinlock_release(&table_lock);
    huge_renew_credit(length);
    if (there && mapping_find(addr, length, &m) && m.kind == MAP_PRIVATE_ANON &&
        !huge_collapse_pages(addr, length, m.start, m.end))
        atomic_store_explicit(&s->moved, 0, memory_order_relaxed);
}

/* Invalidates the key, so that no new access finds the region, and waits for the end of earlier accesses:
 * frames between machines, requests of queue pairs of this process, other processes. */
void mr_end_access(struct sh_mr *s)
{
    uint32_t idx = (uint32_t)(s - proc.arena->mr);
    atomic_store(&s->rkey, 0);
    if (wire_far) {
        wire_far->lock();
        wire_far->retract(s);
        wire_far->unlock();
    }
    qp_wait_lock_holders();
    if (hold_wait(idx))
        share_release_dead();
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

static bool is_access_supported(struct ibv_pd *pd, uint64_t access)
{
    return (!(access & IBV_ACCESS_ON_DEMAND) || ctx_has_feature(ctx_from_ibv(pd->context), FEATURE_ODP)) &&
           (!(access & IBV_ACCESS_MW_BIND) || ctx_has_feature(ctx_from_ibv(pd->context), FEATURE_MW));
}

static bool access_legal(uint64_t access)
{
    uint64_t remote_write = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (access & ~(uint64_t)(ACCESS_KNOWN | IBV_ACCESS_OPTIONAL_RANGE))
        return false;
    return !(access & remote_write) || (access & IBV_ACCESS_LOCAL_WRITE);
}

/* Waits for the time of `pin=`, in which an adapter's driver pins every page and writes its address to the
 * adapter's table. softib pins nothing. */
static void pin_pages(const void *addr, size_t length)
{
    const uint64_t pages = ((uintptr_t)addr % PIN_PAGE + length + PIN_PAGE - 1) / PIN_PAGE;
    for (uint64_t until = now_ns() + pages * proc.fab.pin; now_ns() < until;)
        ;
}

struct ibv_mr *mr_make(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, uint32_t access,
                       uint32_t key)
{
    struct mr *mr = slab_new(sizeof(*mr));
    bool claimed = mr && key && claim_table_entry(key >> MR_SHIFT);
    uint32_t idx = claimed ? key >> MR_SHIFT : mr ? mr_number_allocate() : 0;
    if (!idx) {
        slab_free(mr, sizeof(*mr));
        errno = ENOMEM;
        return NULL;
    }
    mr->sh = &proc.arena->mr[idx];
    mr->access = access;
    mr->ibv.context = pd->context;
    mr->ibv.pd = pd;
    mr->ibv.addr = addr;
    mr->ibv.length = length;
    mr->ibv.handle = idx;
    if (claimed) {
        spinlock_acquire(&table_lock);
        variant[idx] = key & MR_VARIANT;
        spinlock_release(&table_lock);
    }
    mr_publish(mr, claimed ? key : mr_key_make(idx), pd_key(pd), iova, access);
    atomic_fetch_add(&((struct pd *)pd)->refs, 1);
    return &mr->ibv;
}

/* Registers memory of a CUDA device, which the driver shares by an IPC handle. */
static struct ibv_mr *register_gpu(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                   uint64_t access)
{
    struct gpu_handle handle = {.offset = 0};
    if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND) || wire_far) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    errno = gpu_export((uintptr_t)addr, length, &handle);
    const uint64_t at = errno ? 0 : arena_alloc(sizeof(handle));
    if (!at) {
        errno = errno ? errno : ENOMEM;
        return NULL;
    }
    memcpy(peer_arena_address(proc.self, at), &handle, sizeof(handle));
    struct ibv_mr *ibv = mr_make(pd, addr, length, access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
                                 (uint32_t)(access & ~(uint64_t)MR_GPU) | MR_GPU, 0);
    if (!ibv) {
        arena_free(at, sizeof(handle));
        return NULL;
    }
    struct mr *mr = CONTAINER_OF(ibv, struct mr, ibv);
    mr->gpu_handle = mr->sh->file_off = at;
    return ibv;
}

static struct ibv_mr *mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                  uint64_t access)
{
    if (!is_access_supported(pd, access)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!access_legal(access) || (uintptr_t)addr + length < (uintptr_t)addr) {
        errno = EINVAL;
        return NULL;
    }
    if (length && gpu_is_device_memory((uintptr_t)addr))
        return register_gpu(pd, addr, length, iova, access);
    const bool on_demand = access & IBV_ACCESS_ON_DEMAND;
    if (!on_demand && !mapping_is_present((uintptr_t)addr, length)) { /* pages cannot be pinned */
        errno = EFAULT;
        return NULL;
    }
    struct ibv_mr *mr =
        mr_make(pd, addr, length, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, (uint32_t)access, 0);
    if (mr && proc.fab.pin && !on_demand)
        pin_pages(addr, length);
    return mr;
}

SOFTIB_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return mr_register(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

SOFTIB_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                          int access)
{
    return mr_register(pd, addr, length, iova, (unsigned)access);
}

SOFTIB_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                           unsigned access)
{
    return mr_register(pd, addr, length, iova, access);
}

/* Registers a dma-buf: by a mapping if processors can map it, else as memory of a CUDA device at address
 * `iova`, which programs set to the address of the memory. Other dma-bufs are rejected. */
SOFTIB_API struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t off, size_t length, uint64_t iova,
                                            int fd, int access)
{
    if (!is_access_supported(pd, (unsigned)access)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    /* softcuda exports a file whose position is the memory's offset; other dma-bufs have position 0. */
    const off_t begin = lseek(fd, 0, SEEK_CUR);
    off += begin > 0 ? (uint64_t)begin : 0;
    const uint64_t skip = off & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    if (!access_legal((unsigned)access) || !length || length + skip < length) {
        errno = EINVAL;
        return NULL;
    }
    void *map = mmap(NULL, length + skip, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(off - skip));
    if (map == MAP_FAILED && errno != EBADF && gpu_is_device_memory(iova))
        return register_gpu(pd, (void *)(uintptr_t)iova, length, iova, (unsigned)access);
    if (map == MAP_FAILED) {
        errno = errno == EBADF ? EBADF : EOPNOTSUPP;
        return NULL;
    }
    struct ibv_mr *ibv = mr_make(pd, (char *)map + skip, length, iova, (uint32_t)access, 0);
    if (!ibv) {
        munmap(map, length + skip);
        return NULL;
    }
    struct mr *mr = CONTAINER_OF(ibv, struct mr, ibv);
    mr->map = map;
    mr->map_length = length + skip;
    if (proc.fab.pin)
        pin_pages(map, length);
    return ibv;
}

SOFTIB_API int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
                            int access)
{
    struct mr *mr = CONTAINER_OF(ibv, struct mr, ibv);
    if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || !flags || mr->map || mr->gpu_handle ||
        ((flags & IBV_REREG_MR_CHANGE_ACCESS) && !access_legal((unsigned)access)) ||
        ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && !mapping_is_present((uintptr_t)addr, length))) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if (window_is_bound_to(ibv->handle)) {
        errno = EBUSY;
        return IBV_REREG_MR_ERR_INPUT;
    }
    const uint32_t key = ibv->rkey; /* unchanged for peers that have the key */
    uint64_t iova = mr->sh->iova;
    mr_end_access(mr->sh);
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        atomic_fetch_sub(&((struct pd *)ibv->pd)->refs, 1);
        atomic_fetch_add(&((struct pd *)pd)->refs, 1);
        ibv->pd = pd;
    }
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        ibv->addr = addr;
        ibv->length = length;
        iova = (uintptr_t)addr;
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS)
        mr->access = (uint32_t)access;
    mr_publish(mr, key, pd_key(ibv->pd), iova, mr->access);
    return 0;
}

void mr_add_to_count(struct ibv_mr *ibv, atomic_int *count)
{
    CONTAINER_OF(ibv, struct mr, ibv)->device_memory = count;
    atomic_fetch_add(count, 1);
}

SOFTIB_API int ibv_dereg_mr(struct ibv_mr *ibv)
{
    struct mr *mr = CONTAINER_OF(ibv, struct mr, ibv);
    if (window_is_bound_to(ibv->handle))
        return EBUSY;
    mr_end_access(mr->sh);
    if (mr->map)
        munmap(mr->map, mr->map_length);
    if (mr->gpu_handle)
        arena_free(mr->gpu_handle, sizeof(struct gpu_handle));
    mr_table_release(ibv->handle);
    if (mr->device_memory)
        atomic_fetch_sub(mr->device_memory, 1);
    atomic_fetch_sub(&((struct pd *)ibv->pd)->refs, 1);
    slab_free(mr, sizeof(*mr));
    return 0;
}

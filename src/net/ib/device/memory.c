/* memory.c: registers the user's memory for put and get through the registration cache.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/keepheap.h"
#include "base/counter.h"
#include "boot/boot.h"
#include "gpu/gpu.h"
#include "net/ib/ib.h"
#include "net/memlock.h"

static COUNTER(dmabufs, "reg_gpu_dmabuf", "Registrations of GPU memory by dma-buf.");
static COUNTER(peers, "reg_gpu_peermem", "Registrations of GPU memory by ibv_reg_mr (nv_peer_mem).");
static COUNTER(refusals, "reg_gpu_refused",
               "Registrations of GPU memory that were refused; such messages move through host memory.");

/* Registers the part of an allocation of GPU memory that lies in these pages: the first and the last page may
 * also contain other allocations. NULL: neither the GPU library nor the adapter can register GPU memory. */
static struct ibv_mr *register_device_memory(const struct ib_device *d, const struct gpu_range *allocation,
                                             uintptr_t pages, size_t pages_len)
{
    const uintptr_t start = MAX(pages, allocation->start);
    const size_t len = MIN(pages + pages_len, allocation->start + allocation->size) - start;
    void *const address = (void *)start;
    int fd;
    uint64_t offset;
    struct ibv_mr *mr = NULL;
    if (d->verbs.reg_dmabuf_mr && gpu_open_dmabuf(address, len, &fd, &offset) == 0) {
        mr = d->verbs.reg_dmabuf_mr(d->pd, offset, len, (uintptr_t)address, fd, ib_device_access_flags(d));
        close(fd);
        counter_add(&dmabufs, mr != NULL);
    }
    if (!mr) {
        mr = d->verbs.reg_mr(d->pd, address, len, ib_device_access_flags(d));
        counter_add(mr ? &peers : &refusals, 1);
    }
    return mr;
}

static int pin_device_memory(const struct ib_device *d, const struct gpu_range *allocation, void *address,
                             size_t len, struct ibv_mr **out)
{
    *out = register_device_memory(d, allocation, (uintptr_t)address, len);
    return *out ? 0
                : err_set(MPI_ERR_BUFFER, "%s cannot register %zu bytes of GPU memory at %p", d->name, len,
                          address);
}

static int register_on_device(const struct ib_device *d, void *address, size_t len, struct ibv_mr **out)
{
    struct ibv_mr *mr = d->verbs.reg_mr(d->pd, address, len, ib_device_access_flags(d));
    if (!mr && (errno == EFAULT || errno == EACCES)) /* read-only memory, such as constants */
        mr = d->verbs.reg_mr(d->pd, address, len, IBV_ACCESS_REMOTE_READ);
    if (!mr && (errno == ENOMEM || errno == EAGAIN || errno == ENOSPC))
        return memlock_limit() == UINT64_MAX
                   ? err_set(MPI_ERR_NO_MEM, "%s has no free memory region", d->name)
                   : memlock_set_error(len, memlock_limit(), d->name);
    if (!mr)
        return err_set(MPI_ERR_BUFFER, "%s cannot register %zu bytes at %p: %s", d->name, len, address,
                       err_reason(errno));
    *out = mr;
    return 0;
}

static void memory_deregister(void *ctx, void *handle)
{
    struct ib *ib = ctx;
    struct ib_region *r = handle;
    for (uint32_t i = 0; i < IB_ADAPTERS_MAX; i++)
        if (r->mr[i])
            ib->device.verbs.dereg_mr(r->mr[i]);
    free(r);
}

static int memory_register(void *ctx, void *address, size_t len, void **handle)
{
    struct ib *ib = ctx;
    struct ib_region *r = calloc(1, sizeof(*r));
    int rc = r ? 0 : err_set(MPI_ERR_NO_MEM, "out of memory for a registration");
    for (uint32_t i = 0; i < ib->nadapters && rc == 0; i++) {
        if (ib_adapter_is_gone(&ib->adapters[i]))
            continue;
        const struct ib_device *d = ib->adapters[i].device;
        rc = ib->registering ? pin_device_memory(d, ib->registering, address, len, &r->mr[i])
                             : register_on_device(d, address, len, &r->mr[i]);
        if (rc == 0) {
            r->lkey[i] = r->mr[i]->lkey;
            r->rkey[i] = r->mr[i]->rkey;
        }
    }
    if (rc != 0 && r)
        memory_deregister(ib, r);
    if (rc == 0)
        *handle = r;
    return rc;
}

int ib_memory_open(struct ib *ib)
{
    static const struct regcache_ops ops = {.pin = memory_register, .unpin = memory_deregister};
    int rc = regcache_open(&ops, ib, regcache_budget(ib->base.net->boot->nlocal), &ib->regcache);
    if (rc == 0 && regcache_watch(ib->regcache))
        keepheap_set_thresholds(); /* so that freed large blocks stay registered [Liu04 4.1.2] */
    return rc;
}

void ib_memory_close(struct ib *ib)
{
    if (ib->regcache)
        regcache_close(ib->regcache);
}

static struct net_key region_key(const struct ib_region *r)
{
    _Static_assert(IB_ADAPTERS_MAX == 4, "two keys to a word");
    return (struct net_key){
        {r->rkey[0] | (uint64_t)r->rkey[1] << 32, r->rkey[2] | (uint64_t)r->rkey[3] << 32}};
}

/* alone: see regcache_get. */
static int memory_get_entry(struct transport *t, const void *address, size_t len, bool alone,
                            struct net_mem *mem, struct net_key *key)
{
    struct regcache_entry *e;
    const int rc = regcache_get(ib_of(t)->regcache, address, len, alone, &e);
    if (rc != 0)
        return rc;
    t->pin = regcache_get_pin_cost(ib_of(t)->regcache);
    *mem = (struct net_mem){.address = (uintptr_t)address, .length = len, .handle = e};
    *key = region_key(e->handle);
    return 0;
}

static void drop_allocation(struct ib *ib, struct ib_allocation *a)
{
    if (a->size > 0)
        regcache_invalidate(ib->regcache, a->start, a->size);
    a->size = 0;
}

/* The GPU library may free memory and reuse its addresses without unmapping them, so that no memory hook
 * reports the release. `allocations` therefore lists the GPU memory that has registrations. Returns 0, or
 * MPI_ERR_BUFFER if the memory cannot be registered. */
static int check_allocation(struct ib *ib, const void *address, size_t len, struct gpu_range *range)
{
    if (ib->gpu_refused || gpu_find_range(address, range) != 0 ||
        len > range->size - ((uintptr_t)address - range->start) || gpu_synchronize_copies(address) != 0)
        return MPI_ERR_BUFFER;
    struct ib_allocation *listed =
        &ib->allocations[range->id % IB_ALLOCATIONS]; /* ids are consecutive numbers */
    if (listed->start != range->start || listed->id != range->id) {
        drop_allocation(ib, listed);
        regcache_invalidate(ib->regcache, range->start, range->size); /* stale registrations */
    }
    *listed = (struct ib_allocation){.start = range->start, .size = range->size, .id = range->id};
    return 0;
}

/* Drops the registrations of one listed allocation if the program has freed it: the registrations keep the
 * memory allocated. Each call checks the next allocation. */
static void check_next_allocation(struct ib *ib)
{
    struct gpu_range range;
    struct ib_allocation *a = &ib->allocations[ib->allocation_checked++ % IB_ALLOCATIONS];
    if (a->size > 0 && (gpu_find_range((void *)(uintptr_t)a->start, &range) != 0 || range.id != a->id))
        drop_allocation(ib, a);
}

void ib_memory_sweep(struct ib *ib)
{
    check_next_allocation(ib);
    regcache_sweep(ib->regcache);
}

int ib_memory_register(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                       struct net_key *key)
{
    struct gpu_range range;
    if (likely(!gpu_memory_is_device(address)))
        return memory_get_entry(t, address, len, false, mem, key);
    int rc = check_allocation(ib_of(t), address, len, &range);
    if (rc)
        return rc;
    ib_of(t)->registering = &range;
    rc = memory_get_entry(t, address, len, true, mem, key);
    ib_of(t)->registering = NULL;
    /* CUDA memory pools, which have no context, may be refused although other GPU memory is accepted. */
    ib_of(t)->gpu_refused |= rc == MPI_ERR_BUFFER && range.context;
    return rc;
}

int ib_memory_register_piece(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                             struct net_key *key)
{
    return memory_get_entry(t, address, len, true, mem, key);
}

void ib_memory_release(struct transport *t, struct net_mem *mem)
{
    regcache_put(ib_of(t)->regcache, mem->handle);
}

static bool has_key(const void *handle, const void *key)
{
    const struct net_key mine = region_key(handle);
    return memcmp(&mine, key, sizeof(mine)) == 0;
}

bool ib_memory_is_registered(const struct ib *ib, uint64_t address, size_t len, const struct net_key *key)
{
    return regcache_in_use(ib->regcache, (uintptr_t)address, len, has_key, key);
}

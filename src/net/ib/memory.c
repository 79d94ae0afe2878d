/* memory.c: registers the user's memory for put and get through the registration cache.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "boot/boot.h"
#include "net/heap.h"
#include "net/ib/ib.h"
#include "net/memlock.h"

static int pin(void *ctx, void *address, size_t len, void **handle)
{
    struct ib *ib = ctx;
    struct ibv_mr *mr = ib->device.verbs.reg_mr(ib->device.pd, address, len, ib_device_access(&ib->device));
    if (!mr && (errno == EFAULT || errno == EACCES)) /* a constant: it can be read but not written */
        mr = ib->device.verbs.reg_mr(ib->device.pd, address, len, IBV_ACCESS_REMOTE_READ);
    if (!mr && (errno == ENOMEM || errno == EAGAIN || errno == ENOSPC))
        return memlock_limit() == UINT64_MAX
                   ? err_set(MPI_ERR_NO_MEM, "%s has no free memory region", ib->device.name)
                   : memlock_refuse(len, memlock_limit(), ib->device.name);
    if (!mr)
        return err_set(MPI_ERR_BUFFER, "%s cannot register %zu bytes at %p: %s", ib->device.name, len,
                       address, strerror(errno));
    *handle = mr;
    return 0;
}

static void unpin(void *ctx, void *handle)
{
    struct ib *ib = ctx;
    ib->device.verbs.dereg_mr(handle);
}

int ib_memory_open(struct ib *ib)
{
    static const struct regcache_ops ops = {.pin = pin, .unpin = unpin};
    int rc = regcache_open(&ops, ib, regcache_budget(ib->base.net->boot->nlocal), &ib->regcache);
    if (rc == 0 && regcache_watch(ib->regcache))
        heap_keep();
    return rc;
}

void ib_memory_close(struct ib *ib)
{
    if (ib->regcache)
        regcache_close(ib->regcache);
}

int ib_register(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                struct net_key *key)
{
    struct ib *ib = ib_of(t);
    struct regcache_entry *e;
    int rc = regcache_get(ib->regcache, address, len, &e);
    if (rc != 0)
        return rc;
    *mem = (struct net_mem){.address = (uintptr_t)address, .length = len, .handle = e};
    *key = (struct net_key){{((struct ibv_mr *)e->handle)->rkey}};
    return 0;
}

void ib_release(struct transport *t, struct net_mem *mem)
{
    regcache_put(ib_of(t)->regcache, mem->handle);
}

/* import.c: devices and memory regions of another context or process, imported by file descriptor
 * (export.c) and handle. The number of a protection domain contains its process (pd.c), so that the number
 * is sufficient to import it. A region of the same process needs no mapping. A region of another process
 * is mapped, with the same key if that is free; its memory must be a shared mapping of a file or of a
 * memfd.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/registry.h"
#include "verbs/mr.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct mr_import {
    void *map;
    size_t length;
};

SOFTIB_API struct ibv_context *ibv_import_device(int fd)
{
    uint32_t slot, hca;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ctx *c = NULL;
    if (fcntl(fd, F_GETFD) < 0)
        errno = EBADF;
    else if (list && proc_join(&machine)) {
        const bool known = export_read(fd, &slot, &hca);
        const bool can =
            known && !fabric_lacks_feature(&proc.fab, fabric_port_index(&proc.fab, proc.fab.node, hca, 1),
                                           FEATURE_IMPORT);
        c = can ? ctx_open((struct device *)list[hca], fd) : NULL;
        if (c)
            c->exporter = slot;
        else if (!can)
            errno = known ? EOPNOTSUPP : ENODEV;
    }
    const int why = errno;
    ibv_free_device_list(list);
    errno = why;
    return c ? &c->v.context : NULL;
}

/* Reads a region's current description from its owner's arena. */
static bool read_region(struct peer *owner, uint32_t idx, struct sh_mr *out)
{
    const struct sh_mr *s = &owner->arena->mr[idx];
    const uint32_t key = atomic_load(&s->rkey);
    atomic_store(&out->rkey, key);
    out->pd = s->pd;
    out->access = s->access;
    out->iova = s->iova;
    out->length = s->length;
    out->addr = s->addr;
    out->file_off = s->file_off;
    out->fd = s->fd;
    atomic_thread_fence(memory_order_acquire); /* the description is read before the key is checked again */
    return key && atomic_load(&s->rkey) == key;
}

/* Imports a region of this process: the same region in another context. */
static struct ibv_mr *import_own_region(struct ibv_pd *pd, const struct sh_mr *s, uint32_t idx)
{
    struct mr *mr = calloc(1, sizeof(*mr));
    if (!mr)
        return NULL;
    mr->sh = &proc.arena->mr[idx];
    mr->access = s->access;
    mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .length = s->length, .handle = idx};
    mr->ibv.lkey = mr->ibv.rkey = atomic_load(&s->rkey);
    return &mr->ibv;
}

static bool map_owner_memory(const struct peer *owner, const struct sh_mr *s, struct mr_import *at,
                             char **addr)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skip = s->file_off & (page - 1);
    if (s->fd < 0) {
        errno = EOPNOTSUPP;
        return false;
    }
    const int fd = shared_open_checked(owner->pid, s->fd, s->file_off, s->length);
    if (fd < 0)
        return false;
    at->length = s->length + skip;
    at->map = mmap(NULL, at->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(s->file_off - skip));
    close(fd);
    if (at->map == MAP_FAILED)
        return false;
    *addr = (char *)at->map + skip;
    return true;
}

static struct ibv_mr *import_peer_region(struct ibv_pd *pd, const struct peer *owner, const struct sh_mr *s)
{
    char *addr;
    struct mr_import *at = calloc(1, sizeof(*at));
    if (!at || !map_owner_memory(owner, s, at, &addr)) {
        const int why = at ? errno : ENOMEM;
        free(at);
        errno = why;
        return NULL;
    }
    struct ibv_mr *ibv = mr_make(pd, addr, s->length, s->iova, s->access, atomic_load(&s->rkey));
    if (!ibv) {
        munmap(at->map, at->length);
        free(at);
        return NULL;
    }
    CONTAINER_OF(ibv, struct mr, ibv)->import = at;
    return ibv;
}

SOFTIB_API struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    const uint32_t slot = ctx_from_ibv(pd->context)->exporter;
    struct sh_mr s;
    struct peer *owner = handle && handle < MR_MAX ? peer_get(slot) : NULL;
    if (!owner || !read_region(owner, handle, &s) || s.pd != pd_key(pd)) {
        if (owner)
            peer_release(owner);
        errno = ENOENT;
        return NULL;
    }
    struct ibv_mr *ibv = owner->self ? import_own_region(pd, &s, handle) : import_peer_region(pd, owner, &s);
    const int why = errno;
    peer_release(owner);
    errno = why;
    return ibv;
}

SOFTIB_API void ibv_unimport_mr(struct ibv_mr *ibv)
{
    struct mr *mr = CONTAINER_OF(ibv, struct mr, ibv);
    struct mr_import *at = mr->import;
    if (!at) {
        free(mr);
        return;
    }
    ibv_dereg_mr(ibv); /* frees the entry of this process, not that of the owner */
    munmap(at->map, at->length);
    free(at);
}

/* odp.c: on-demand paging: regions whose pages are not pinned, implicit regions (the whole address space),
 * prefetching. softib never pins pages. A request for a page that is not mapped at that time fails
 * (memory/region.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* Linux 5.14; on older kernels pages are populated when they are used */
#define MADV_POPULATE_WRITE 23
#endif

_Static_assert(MR_ON_DEMAND == IBV_ACCESS_ON_DEMAND, "shm.h names it without verbs.h");

void odp_fill_caps(struct ibv_device_attr_ex *a)
{
    const uint32_t datagram = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV,
                   unreliable = datagram | IBV_ODP_SUPPORT_WRITE,
                   reliable = unreliable | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
    a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    a->odp_caps.per_transport_caps.rc_odp_caps = reliable;
    a->odp_caps.per_transport_caps.uc_odp_caps = unreliable;
    a->odp_caps.per_transport_caps.ud_odp_caps = datagram;
    a->xrc_odp_caps = reliable;
}

static struct sh_mr *odp_find_region(struct ibv_pd *pd, const struct ibv_sge *s)
{
    const uint32_t idx = s->lkey >> MR_SHIFT;
    struct sh_mr *r = idx && idx < MR_MAX ? &proc.arena->mr[idx] : NULL;
    const bool known = r && atomic_load(&r->rkey) == s->lkey && !mr_window_type(r) && r->pd == pd_key(pd) &&
                       r->access & IBV_ACCESS_ON_DEMAND;
    return known && s->addr >= r->iova && s->length <= r->length && s->addr - r->iova <= r->length - s->length
               ? r
               : NULL;
}

static int fetch_pages(const struct sh_mr *r, const struct ibv_sge *s, bool write)
{
    const uint64_t addr = r->addr + (s->addr - r->iova), page = (uint64_t)sysconf(_SC_PAGESIZE),
                   start = addr & ~(page - 1);
    if (!madvise((void *)(uintptr_t)start, addr + s->length - start,
                 write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
        return 0;
    return errno == EINVAL ? 0 : EFAULT;
}

int odp_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *s,
               uint32_t n)
{
    const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    if (!ctx_has_feature(ctx_from_ibv(pd->context), FEATURE_ODP))
        return EOPNOTSUPP;
    if ((unsigned)advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
        flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !n)
        return EINVAL;
    for (uint32_t i = 0; i < n; i++) {
        const struct sh_mr *r = odp_find_region(pd, &s[i]);
        if (!r)
            return ENOENT;
        if (write && !(r->access & IBV_ACCESS_LOCAL_WRITE))
            return EPERM;
        /* NO_FAULT covers only pages that are present, which need no action. Only FLUSH reports failures. */
        int err = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ? 0 : fetch_pages(r, &s[i], write);
        if (err && flags & IBV_ADVISE_MR_FLAG_FLUSH)
            return err;
    }
    return 0;
}

/* shared.c: receive queues that all connections share [Shipman06 5.2]: one for small frames and control
 * messages, one for large frames, each with log2(n) * k + b buffers. Buffers are reposted when half of them
 * are in use, or when the adapter reports that few are left (the limit event). Memory does not grow with the
 * number of peers. Many senders cannot exhaust the queue, because each needs credits and because a queue that
 * ran low grows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/counter.h"
#include "base/tunable.h"
#include "net/ib/ib.h"
#include "net/ib/policy/posted.h"
#include "net/ib/queue/xrc.h"

static LABORATORY_INT(
    factor, "IB_SHARED_FACTOR", 16, 0, 4096,
    "Shared receive queues: k in log2(ranks) * k + b, the number of buffers of each queue.");
static LABORATORY_INT(
    base, "IB_SHARED_BASE", 64, 8, 65536,
    "Shared receive queues: b in log2(ranks) * k + b, the number of buffers of each queue.");

static COUNTER(limit_events, "ib_shared_limit_events",
               "Limit events of shared receive queues: fewer buffers than the limit were left.");
static COUNTER(refills, "ib_shared_refills", "Times a shared receive queue was refilled.");

static void shared_arm_limit(struct ib_shared *s)
{
    struct ibv_srq_attr a = {.srq_limit = MAX(s->target / 4, 1)};
    s->ib->device.verbs.modify_srq(s->srq, &a, IBV_SRQ_LIMIT);
}

static void shared_fill(struct ib_shared *s)
{
    counter_add(&refills, 1);
    while (s->posted < s->target) {
        struct ib_buffer *b = ib_buffer_get(s->pool);
        if (!b && s->posted == 0)
            ib_fatal(s->ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
        if (!b)
            return; /* the queue works with fewer buffers */
        struct ibv_sge piece = {
            .addr = (uintptr_t)b->data, .length = (uint32_t)s->pool->size, .lkey = b->lkey[s->adapter]};
        struct ibv_recv_wr wr = {.wr_id = (uintptr_t)b, .sg_list = &piece, .num_sge = 1}, *bad;
        b->lane = NULL;
        b->shared = s;
        int rc = ibv_post_srq_recv(s->srq, &wr, &bad);
        if (rc != 0)
            ib_fatal(s->ib, NULL, "a shared receive buffer was refused (%s)", err_reason(rc));
        list_append(&s->buffers, &b->link);
        s->posted++;
    }
}

void ib_shared_refill(struct ib_shared *s)
{
    if (unlikely(s->posted <= s->target / 2))
        shared_fill(s);
}

void ib_shared_grow(struct ib_shared *s, uint32_t n)
{
    s->target = MIN(s->target + n, s->capacity);
}

void ib_shared_refill_low(struct ib_shared *s)
{
    counter_add(&limit_events, 1);
    ib_shared_grow(s, s->target / 2);
    shared_fill(s);
    shared_arm_limit(s);
}

static int shared_create(struct ib *ib, struct ib_adapter *a, struct ib_shared *s, struct ib_pool *pool)
{
    uint32_t first = posted_shared_buffers(ib->base.net->size, (uint32_t)factor.value, (uint32_t)base.value);
    s->ib = ib;
    s->adapter = a->index;
    s->pool = pool;
    s->capacity = (uint32_t)MIN((int64_t)a->device->attr.max_srq_wr, (int64_t)16 * first);
    s->target = MIN(first, s->capacity);
    list_init(&s->buffers);
    struct ibv_srq_init_attr init = {.srq_context = s, .attr = {.max_wr = s->capacity, .max_sge = 1}};
    s->srq = ib->xrc ? ib_xrc_create_srq(ib, a, s, s->capacity)
                     : ib->device.verbs.create_srq(a->device->pd, &init);
    if (!s->srq)
        return err_set(
            MPI_ERR_OTHER,
            "%s: cannot create a shared receive queue of %u entries (%s); FISHPLATE_IB_RECEIVE=peer does "
            "not need one",
            a->device->name, s->capacity, err_reason(errno));
    a->cq_used += (int)s->capacity;
    shared_fill(s);
    shared_arm_limit(s);
    return 0;
}

int ib_shared_open(struct ib *ib, uint32_t adapter)
{
    struct ib_shared *s = ib->shared[adapter];
    if (ib->lanes == 1)
        return 0;
    int rc = s[0].srq ? 0 : shared_create(ib, &ib->adapters[adapter], &s[0], &ib->small);
    return rc || s[1].srq ? rc : shared_create(ib, &ib->adapters[adapter], &s[1], &ib->large);
}

void ib_shared_close(struct ib *ib)
{
    for (int i = 0; i < IB_ADAPTERS_MAX * IB_LANES; i++) {
        struct ib_shared *s = &ib->shared[i / IB_LANES][i % IB_LANES];
        if (s->srq)
            ib->device.verbs.destroy_srq(s->srq);
    }
}

/* rq_ring.c: the ring of a receive queue, of one QP or shared by several. The owner appends receive
 * requests to the ring in its arena; a process that delivers a message consumes one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/hca.h"

static size_t ring_bytes(const struct sh_rq *rq)
{
    return (size_t)rq->size * rq->stride;
}

bool rq_make(struct sh_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
    uint32_t size = 16;
    while (size < max_wr)
        size *= 2;
    memset(rq, 0, sizeof(*rq));
    rq->size = size;
    rq->limit_wr = max_wr;
    rq->max_sge = max_sge;
    rq->stride = (uint32_t)(sizeof(struct sh_rwqe) + (max_sge ? max_sge : 1) * sizeof(struct sh_sge));
    uint64_t ring = arena_alloc(ring_bytes(rq));
    atomic_store(&rq->ring, ring);
    atomic_store(&rq->live, ring != 0);
    return ring != 0;
}

void rq_destroy(struct sh_rq *rq)
{
    shlock_lock(&rq->lock);
    uint64_t ring = atomic_load(&rq->ring);
    atomic_store(&rq->live, 0);
    atomic_store(&rq->head, atomic_load(&rq->tail));
    shlock_unlock(&rq->lock);
    arena_free(ring, ring_bytes(rq));
}

static struct sh_rwqe *rq_slot(struct peer *p, struct sh_rq *rq, uint64_t i)
{
    char *ring = peer_arena_address(p, atomic_load_explicit(&rq->ring, memory_order_relaxed));
    return LIKELY(ring != NULL) ? (void *)(ring + (i & (rq->size - 1)) * rq->stride) : NULL;
}

int rq_post(struct sh_rq *rq, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
        return EINVAL;
    uint64_t total = 0;
    for (int i = 0; i < wr->num_sge; i++)
        total += wr->sg_list[i].length;
    shlock_lock(&rq->lock);
    uint64_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&rq->head, memory_order_relaxed) >= rq->limit_wr) {
        shlock_unlock(&rq->lock);
        return ENOMEM;
    }
    struct sh_rwqe *e = rq_slot(proc.self, rq, tail);
    e->wr_id = wr->wr_id;
    e->nsge = (uint32_t)wr->num_sge;
    e->total = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
    for (int i = 0; i < wr->num_sge; i++)
        e->sge[i] = (struct sh_sge){wr->sg_list[i].addr, wr->sg_list[i].length, wr->sg_list[i].lkey};
    atomic_store_explicit(&rq->tail, tail + 1, memory_order_release);
    shlock_unlock(&rq->lock);
    return 0;
}

bool rq_pop(struct peer *owner, uint32_t index, bool is_srq, struct rwqe *out)
{
    struct sh_rq *rq = &owner->arena->rq[index];
    bool low = false;
    if (atomic_load_explicit(&rq->tail, memory_order_acquire) ==
        atomic_load_explicit(&rq->head, memory_order_relaxed))
        return false;
    shlock_lock(&rq->lock);
    uint64_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&rq->tail, memory_order_acquire) - head;
    struct sh_rwqe *e = left ? rq_slot(owner, rq, head) : NULL;
    if (LIKELY(e != NULL)) {
        out->wr_id = e->wr_id;
        out->nsge = e->nsge <= MAX_SGE ? e->nsge : MAX_SGE;
        out->total = e->total;
        memcpy(out->sge, e->sge, out->nsge * sizeof(struct sh_sge));
        atomic_store_explicit(&rq->head, head + 1, memory_order_release);
        uint32_t limit = atomic_load_explicit(&rq->srq_limit, memory_order_relaxed);
        low = is_srq && limit && left - 1 < limit && atomic_exchange(&rq->srq_limit, 0);
    }
    shlock_unlock(&rq->lock);
    if (UNLIKELY(low))
        peer_post_event(owner, SHEV_SRQ_LIMIT, index - QP_MAX, 0);
    return e != NULL;
}

int rq_resize(struct sh_rq *rq, uint32_t max_wr)
{
    struct sh_rq fresh;
    if (!rq_make(&fresh, max_wr, rq->max_sge))
        return ENOMEM;
    shlock_lock(&rq->lock);
    uint64_t head = atomic_load(&rq->head), tail = atomic_load(&rq->tail);
    int r = tail - head > max_wr ? EINVAL : 0;
    uint64_t drop = atomic_load(r ? &fresh.ring : &rq->ring);
    size_t drop_bytes = ring_bytes(r ? &fresh : rq);
    if (!r) {
        for (uint64_t i = head; i != tail; i++)
            memcpy(rq_slot(proc.self, &fresh, i), rq_slot(proc.self, rq, i), rq->stride);
        rq->size = fresh.size;
        rq->limit_wr = max_wr;
        atomic_store(&rq->ring, atomic_load(&fresh.ring));
    }
    shlock_unlock(&rq->lock);
    arena_free(drop, drop_bytes);
    return r;
}

/*
 * Receive queues, a QP's own and shared ones: a ring of receive requests in the arena that the owner
 * fills and whoever delivers a message empties.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "hca.h"
#include <stdlib.h>

static struct lock table_lock;
static uint32_t table_hint;
static struct srq *table[SRQ_MAX];
static bool taken[SRQ_MAX];

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
    shlock_take(&rq->lock);
    uint64_t ring = atomic_load(&rq->ring);
    atomic_store(&rq->live, 0);
    atomic_store(&rq->head, atomic_load(&rq->tail));
    shlock_drop(&rq->lock);
    arena_free(ring, ring_bytes(rq));
}

static struct sh_rwqe *slot(struct peer *p, struct sh_rq *rq, uint64_t i)
{
    char *ring = peer_at(p, atomic_load_explicit(&rq->ring, memory_order_relaxed));
    return LIKELY(ring != NULL) ? (void *)(ring + (i & (rq->size - 1)) * rq->stride) : NULL;
}

int rq_post(struct sh_rq *rq, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
        return EINVAL;
    uint64_t total = 0;
    for (int i = 0; i < wr->num_sge; i++)
        total += wr->sg_list[i].length;
    shlock_take(&rq->lock);
    uint64_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&rq->head, memory_order_relaxed) >= rq->limit_wr) {
        shlock_drop(&rq->lock);
        return ENOMEM;
    }
    struct sh_rwqe *e = slot(proc.self, rq, tail);
    e->wr_id = wr->wr_id;
    e->nsge = (uint32_t)wr->num_sge;
    e->total = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
    for (int i = 0; i < wr->num_sge; i++)
        e->sge[i] = (struct sh_sge){wr->sg_list[i].addr, wr->sg_list[i].length, wr->sg_list[i].lkey};
    atomic_store_explicit(&rq->tail, tail + 1, memory_order_release);
    shlock_drop(&rq->lock);
    return 0;
}

bool rq_pop(struct peer *owner, uint32_t index, bool is_srq, struct rwqe *out)
{
    struct sh_rq *rq = &owner->arena->rq[index];
    bool low = false;
    if (atomic_load_explicit(&rq->tail, memory_order_acquire) ==
        atomic_load_explicit(&rq->head, memory_order_relaxed))
        return false;
    shlock_take(&rq->lock);
    uint64_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&rq->tail, memory_order_acquire) - head;
    struct sh_rwqe *e = left ? slot(owner, rq, head) : NULL;
    if (LIKELY(e != NULL)) {
        out->wr_id = e->wr_id;
        out->nsge = e->nsge <= MAX_SGE ? e->nsge : MAX_SGE;
        out->total = e->total;
        memcpy(out->sge, e->sge, out->nsge * sizeof(struct sh_sge));
        atomic_store_explicit(&rq->head, head + 1, memory_order_release);
        uint32_t limit = atomic_load_explicit(&rq->srq_limit, memory_order_relaxed);
        low = is_srq && limit && left - 1 < limit && atomic_exchange(&rq->srq_limit, 0);
    }
    shlock_drop(&rq->lock);
    if (UNLIKELY(low))
        peer_event(owner, SHEV_SRQ_LIMIT, index - QP_MAX, 0);
    return e != NULL;
}

static uint32_t table_take(void)
{
    uint32_t found = SRQ_MAX;
    lock_take(&table_lock);
    for (uint32_t i = 0; i < SRQ_MAX && found == SRQ_MAX; i++)
        if (!taken[(table_hint + i) % SRQ_MAX])
            found = (table_hint + i) % SRQ_MAX;
    if (found < SRQ_MAX) {
        taken[found] = true;
        table_hint = found + 1;
    }
    lock_drop(&table_lock);
    return found;
}

/* Events find the queue from here on, or no longer. */
static void table_set(uint32_t idx, struct srq *s)
{
    lock_take(&table_lock);
    table[idx] = s;
    taken[idx] = s != NULL;
    lock_drop(&table_lock);
}

SOFTIB_API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
    if (!a->attr.max_wr || a->attr.max_wr > MAX_WR || a->attr.max_sge > MAX_SGE) {
        errno = EINVAL;
        return NULL;
    }
    struct srq *s = calloc(1, sizeof(*s));
    uint32_t idx = s ? table_take() : SRQ_MAX;
    if (idx == SRQ_MAX) {
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    if (!a->attr.max_sge)
        a->attr.max_sge = 1;
    s->idx = idx;
    s->sh = &proc.arena->rq[QP_MAX + idx];
    s->ibv.context = pd->context;
    s->ibv.srq_context = a->srq_context;
    s->ibv.pd = pd;
    s->ibv.handle = idx;
    s->max_sge = a->attr.max_sge;
    pthread_mutex_init(&s->ibv.mutex, NULL);
    pthread_cond_init(&s->ibv.cond, NULL);
    if (!rq_make(s->sh, a->attr.max_wr, a->attr.max_sge)) {
        table_set(idx, NULL);
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    atomic_fetch_add(&((struct pd *)pd)->refs, 1);
    table_set(idx, s);
    return &s->ibv;
}

/* A larger or smaller ring in place; what is posted stays in order. */
static int srq_resize(struct srq *s, uint32_t max_wr)
{
    struct sh_rq fresh, *rq = s->sh;
    if (!max_wr || max_wr > MAX_WR)
        return EINVAL;
    if (!rq_make(&fresh, max_wr, s->max_sge))
        return ENOMEM;
    shlock_take(&rq->lock);
    uint64_t head = atomic_load(&rq->head), tail = atomic_load(&rq->tail);
    int r = tail - head > max_wr ? EINVAL : 0;
    uint64_t drop = atomic_load(r ? &fresh.ring : &rq->ring);
    size_t drop_bytes = ring_bytes(r ? &fresh : rq);
    if (!r) {
        for (uint64_t i = head; i != tail; i++)
            memcpy(slot(proc.self, &fresh, i), slot(proc.self, rq, i), rq->stride);
        rq->size = fresh.size;
        rq->limit_wr = max_wr;
        atomic_store(&rq->ring, atomic_load(&fresh.ring));
    }
    shlock_drop(&rq->lock);
    arena_free(drop, drop_bytes);
    return r;
}

SOFTIB_API int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *a, int mask)
{
    struct srq *s = (struct srq *)ibv;
    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return EINVAL;
    if (mask & IBV_SRQ_MAX_WR) {
        int r = srq_resize(s, a->max_wr);
        if (r)
            return r;
    }
    if (!(mask & IBV_SRQ_LIMIT))
        return 0;
    if (a->srq_limit > s->sh->limit_wr)
        return EINVAL;
    atomic_store(&s->sh->srq_limit, a->srq_limit);
    /* Armed below the limit already: the event comes at once. */
    if (a->srq_limit && atomic_load(&s->sh->tail) - atomic_load(&s->sh->head) < a->srq_limit &&
        atomic_exchange(&s->sh->srq_limit, 0))
        peer_event(proc.self, SHEV_SRQ_LIMIT, s->idx, 0);
    return 0;
}

SOFTIB_API int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *a)
{
    struct srq *s = (struct srq *)ibv;
    a->max_wr = s->sh->limit_wr;
    a->max_sge = s->max_sge;
    a->srq_limit = atomic_load(&s->sh->srq_limit);
    return 0;
}

SOFTIB_API int ibv_destroy_srq(struct ibv_srq *ibv)
{
    struct srq *s = (struct srq *)ibv;
    if (atomic_load(&s->refs))
        return EBUSY;
    lock_take(&table_lock);
    table[s->idx] = NULL; /* the number stays taken until the ring is gone */
    lock_drop(&table_lock);
    async_purge(ctx_of(ibv->context), &s->async_delivered);
    async_wait(&ibv->events_completed, &s->async_delivered, &ibv->mutex, &ibv->cond);
    rq_destroy(s->sh);
    table_set(s->idx, NULL);
    atomic_fetch_sub(&((struct pd *)ibv->pd)->refs, 1);
    pthread_mutex_destroy(&ibv->mutex);
    pthread_cond_destroy(&ibv->cond);
    free(s);
    return 0;
}

int srq_post(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    for (; wr; wr = wr->next) {
        int r = rq_post(((struct srq *)ibv)->sh, wr);
        if (r) {
            *bad = wr;
            return r;
        }
    }
    return 0;
}

void srq_limit_event(uint32_t idx)
{
    lock_take(&table_lock);
    struct srq *s = idx < SRQ_MAX ? table[idx] : NULL;
    if (s) {
        struct ibv_async_event e = {.event_type = IBV_EVENT_SRQ_LIMIT_REACHED};
        e.element.srq = &s->ibv;
        async_report(ctx_of(s->ibv.context), &e, &s->async_delivered);
    }
    lock_drop(&table_lock);
}

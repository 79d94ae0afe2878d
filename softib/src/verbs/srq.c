/* srq.c: shared receive queues. The ring itself, which a QP's own queue has too, is in hca/rq_ring.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include <stdlib.h>

static struct lock table_lock;
static uint32_t table_hint;
static struct srq *table[SRQ_MAX];
static bool taken[SRQ_MAX];

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
    if (!ctx_has(ctx_of(pd->context), FEATURE_SRQ)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
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

SOFTIB_API int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *a, int mask)
{
    struct srq *s = (struct srq *)ibv;
    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return EINVAL;
    if (mask & IBV_SRQ_MAX_WR) {
        int r = a->max_wr && a->max_wr <= MAX_WR ? rq_resize(s->sh, a->max_wr) : EINVAL;
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

/* srq.c: shared receive queues. Their ring, like that of a QP's own receive queue, is in hca/rq_ring.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/hold.h"
#include "verbs/verbs.h"
#include <stdlib.h>

static struct lock table_lock;
static uint32_t table_hint;
static struct srq *table[SRQ_MAX];
static bool taken[SRQ_MAX];

static uint32_t srq_number_allocate(void)
{
    uint32_t found = SRQ_MAX;
    spinlock_acquire(&table_lock);
    for (uint32_t i = 0; i < SRQ_MAX && found == SRQ_MAX; i++)
        if (!taken[(table_hint + i) % SRQ_MAX])
            found = (table_hint + i) % SRQ_MAX;
    if (found < SRQ_MAX) {
        taken[found] = true;
        table_hint = found + 1;
    }
    spinlock_release(&table_lock);
    return found;
}

/* Sets the table entry in which events find the queue; NULL frees it. */
static void set_table_entry(uint32_t idx, struct srq *s)
{
    spinlock_acquire(&table_lock);
    table[idx] = s;
    taken[idx] = s != NULL;
    spinlock_release(&table_lock);
}

static struct srq *srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
    if (!ctx_has_feature(ctx_from_ibv(pd->context), FEATURE_SRQ)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!a->attr.max_wr || a->attr.max_wr > MAX_WR || a->attr.max_sge > MAX_SGE) {
        errno = EINVAL;
        return NULL;
    }
    struct srq *s = calloc(1, sizeof(*s));
    uint32_t idx = s ? srq_number_allocate() : SRQ_MAX;
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
        set_table_entry(idx, NULL);
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    atomic_fetch_add(&((struct pd *)pd)->refs, 1);
    set_table_entry(idx, s);
    return s;
}

SOFTIB_API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
    struct srq *s = srq_create(pd, a);
    return s ? &s->ibv : NULL;
}

/* Adds the queue to its domain, where senders find it by number. */
static void add_to_domain(struct srq *s, struct xrcd *x, struct cq *cq)
{
    s->xrc = &proc.arena->xrc[s->idx];
    s->xrcd = x;
    s->cq = cq;
    atomic_fetch_add(&x->refs, 1);
    atomic_fetch_add(&cq->refs, 1);
    atomic_store(&s->xrc->pd, pd_key(s->ibv.pd));
    atomic_store(&s->xrc->cq, cq->idx);
    atomic_store(&s->xrc->number, proc.slot << SRQ_BITS | s->idx);
    atomic_store(&s->xrc->domain, x->key);
}

/* Removes the queue from its domain and waits until no sender uses it. */
static void remove_from_domain(struct srq *s)
{
    atomic_store(&s->xrc->domain, 0);
    atomic_store(&s->xrc->number, 0);
    for (unsigned turn = 0; atomic_load(&s->xrc->users);)
        spin_wait(&turn);
    hold_wait(HOLD_XRC | s->idx);
    atomic_fetch_sub(&s->xrcd->refs, 1);
    atomic_fetch_sub(&s->cq->refs, 1);
}

struct ibv_srq *srq_create_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *a)
{
    const uint32_t all =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    enum ibv_srq_type type = a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? a->srq_type : IBV_SRQT_BASIC;
    (void)c;
    if (a->comp_mask & ~all || (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd ||
        (type == IBV_SRQT_XRC && ((a->comp_mask & all) != all || !a->xrcd || !a->cq))) {
        errno = EINVAL;
        return NULL;
    }
    struct ibv_srq_init_attr plain = {.srq_context = a->srq_context, .attr = a->attr};
    struct srq *s = srq_create(a->pd, &plain);
    if (!s)
        return NULL;
    a->attr = plain.attr;
    if (type == IBV_SRQT_XRC)
        add_to_domain(s, (struct xrcd *)a->xrcd, cq_from_ibv(a->cq));
    return &s->ibv;
}

int srq_number(struct ibv_srq *ibv, uint32_t *number)
{
    struct srq *s = (struct srq *)ibv;
    if (!s->xrc)
        return EOPNOTSUPP;
    *number = atomic_load(&s->xrc->number);
    return 0;
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
    /* If fewer requests than the limit are posted already, the event is raised now. */
    if (a->srq_limit && atomic_load(&s->sh->tail) - atomic_load(&s->sh->head) < a->srq_limit &&
        atomic_exchange(&s->sh->srq_limit, 0))
        peer_post_event(proc.self, SHEV_SRQ_LIMIT, s->idx, 0);
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
    spinlock_acquire(&table_lock);
    table[s->idx] = NULL; /* the entry's number remains allocated until the ring is destroyed */
    spinlock_release(&table_lock);
    async_purge(ctx_from_ibv(ibv->context), &s->async_delivered);
    async_wait(&ibv->events_completed, &s->async_delivered, &ibv->mutex, &ibv->cond);
    if (s->xrc)
        remove_from_domain(s);
    rq_destroy(s->sh);
    set_table_entry(s->idx, NULL);
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
    spinlock_acquire(&table_lock);
    struct srq *s = idx < SRQ_MAX ? table[idx] : NULL;
    if (s) {
        struct ibv_async_event e = {.event_type = IBV_EVENT_SRQ_LIMIT_REACHED};
        e.element.srq = &s->ibv;
        async_report(ctx_from_ibv(s->ibv.context), &e, &s->async_delivered);
    }
    spinlock_release(&table_lock);
}

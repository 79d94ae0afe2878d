/* qp.c: queue pairs: creation, modification, errors and destruction. This file updates the QP's entry in
 * the arena, which senders in other processes read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include "base/slab.h"
#include "hca/migrate.h"
#include <stdlib.h>

static int check_caps(struct ibv_qp_cap *c, enum ibv_qp_type t, const struct ibv_srq *srq)
{
    if (c->max_send_wr > MAX_WR || c->max_recv_wr > MAX_WR || c->max_send_sge > MAX_SGE ||
        c->max_recv_sge > MAX_SGE || c->max_inline_data > MAX_INLINE)
        return EINVAL;
    if (t != IBV_QPT_RC && t != IBV_QPT_UC && t != IBV_QPT_UD && t != IBV_QPT_XRC_SEND &&
        t != IBV_QPT_XRC_RECV)
        return EOPNOTSUPP;
    /* The number of entries of a ring is a power of two; programs use the additional ones. */
    uint32_t ring = 16;
    while (ring < c->max_send_wr)
        ring *= 2;
    c->max_send_wr = ring;
    if (!c->max_send_sge)
        c->max_send_sge = 1;
    if (!c->max_recv_sge)
        c->max_recv_sge = 1;
    if (srq || t == IBV_QPT_XRC_SEND || t == IBV_QPT_XRC_RECV)
        c->max_recv_wr = 0;
    return 0;
}

static struct ibv_context *init_context(const struct ibv_qp_init_attr_ex *a)
{
    return a->qp_type == IBV_QPT_XRC_RECV ? a->xrcd->context : a->pd->context;
}

/* Checks the objects passed for a type of QP: an XRC receive QP needs only a domain, an XRC send QP no
 * receive queue. */
static int check_objects(const struct ibv_qp_init_attr_ex *a)
{
    if (a->qp_type == IBV_QPT_XRC_RECV)
        return a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd && !a->srq ? 0 : EINVAL;
    if (a->qp_type == IBV_QPT_XRC_SEND)
        return a->pd && a->send_cq && !a->srq ? 0 : EINVAL;
    return a->pd && a->send_cq && a->recv_cq && (!a->srq || !((struct srq *)a->srq)->xrc) ? 0 : EINVAL;
}

static void qp_publish(struct qp *q, const struct ibv_qp_init_attr_ex *a)
{
    struct sh_qp *s = q->sh;
    struct srq *srq = (struct srq *)a->srq;
    memset(s, 0, sizeof(*s));
    atomic_store(&s->state, QP_NONE);
    atomic_store(&s->qpn, qp_to_ibv(q)->qp_num);
    atomic_store(&s->type, a->qp_type);
    atomic_store(&s->pd, qp_to_ibv(q)->pd ? pd_key(a->pd) : 0);
    atomic_store(&s->rcq, qp_to_ibv(q)->recv_cq ? cq_from_ibv(a->recv_cq)->idx : 0);
    atomic_store(&s->domain, q->xrcd ? q->xrcd->key : 0);
    atomic_store(&s->is_srq, srq != NULL);
    atomic_store(&s->rq, srq ? QP_MAX + srq->idx : q->idx);
    atomic_store(&s->state, IBV_QPS_RESET);
}

static void add_object_references(struct qp *q, int n)
{
    struct ibv_qp *v = qp_to_ibv(q);
    if (v->pd)
        atomic_fetch_add(&((struct pd *)v->pd)->refs, n);
    if (v->send_cq)
        atomic_fetch_add(&cq_from_ibv(v->send_cq)->refs, n);
    if (v->recv_cq)
        atomic_fetch_add(&cq_from_ibv(v->recv_cq)->refs, n);
    if (q->xrcd)
        atomic_fetch_add(&q->xrcd->refs, n);
    if (v->srq)
        atomic_fetch_add(&((struct srq *)v->srq)->refs, n);
}

static struct ibv_qp *qp_create(struct ibv_qp_init_attr_ex *a)
{
    int err = check_objects(a);
    if (!err)
        err = check_caps(&a->cap, a->qp_type, a->srq);
    if (!err && type_of_peer(a->qp_type) != a->qp_type &&
        !ctx_has_feature(ctx_from_ibv(init_context(a)), FEATURE_XRC))
        err = EOPNOTSUPP;
    if (!err && a->cap.max_inline_data && !ctx_has_feature(ctx_from_ibv(init_context(a)), FEATURE_INLINE))
        err = EINVAL; /* without the feature max_inline_data of the adapter is 0 */
    struct qp *q = err ? NULL : slab_new(sizeof(*q));
    if (!q) {
        errno = err ? err : ENOMEM;
        return NULL;
    }
    uint32_t nth = 0;
    size_t room = a->cap.max_send_sge * sizeof(struct ibv_sge);
    if (room < a->cap.max_inline_data)
        room = a->cap.max_inline_data;
    q->stride = (sizeof(struct wqe) + room + CACHELINE - 1) & ~(size_t)(CACHELINE - 1);
    /* Adapters grant the inline data that fits in a request, and programs that request none use it. */
    if (ctx_has_feature(ctx_from_ibv(init_context(a)), FEATURE_INLINE))
        a->cap.max_inline_data = (uint32_t)min_u64(q->stride - sizeof(struct wqe), MAX_INLINE);
    q->sq = slab_new(q->stride * a->cap.max_send_wr);
    q->idx = q->sq ? qp_number_allocate(&nth) : 0;
    struct ibv_qp *v = qp_to_ibv(q);
    v->qp_type = a->qp_type;
    v->srq = a->srq;
    if (!q->idx || (qp_has_receive_queue(q) &&
                    !rq_make(&proc.arena->rq[q->idx], a->cap.max_recv_wr, a->cap.max_recv_sge))) {
        if (q->idx)
            qp_number_free(q->idx);
        slab_free(q->sq, q->stride * a->cap.max_send_wr);
        slab_free(q, sizeof(*q));
        errno = ENOMEM;
        return NULL;
    }
    v->context = init_context(a);
    if (a->qp_type == IBV_QPT_XRC_RECV) {
        q->xrcd = (struct xrcd *)a->xrcd;
    } else {
        v->pd = a->pd;
        v->send_cq = a->send_cq;
        v->recv_cq = a->qp_type == IBV_QPT_XRC_SEND ? NULL : a->recv_cq;
    }
    v->qp_context = a->qp_context;
    v->handle = q->idx;
    v->qp_num = proc.slot << QP_BITS | q->idx;
    v->state = IBV_QPS_RESET;
    pthread_mutex_init(&v->mutex, NULL);
    pthread_cond_init(&v->cond, NULL);
    q->cap = q->attr.cap = a->cap;
    q->sig_all = a->sq_sig_all;
    q->wire = wire_near;
    q->task.run = sq_run_task;
    q->sh = &proc.arena->qp[q->idx];
    q->rng = (proc.fab.seed * 0x9E3779B97F4A7C15ull) ^ (((uint64_t)proc.slot << QP_BITS | nth) << 20 | 1);
    qp_publish(q, a);
    add_object_references(q, 1);
    qp_table_add(q);
    return v;
}

SOFTIB_API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    struct ibv_qp_init_attr_ex x = {.pd = pd, .comp_mask = IBV_QP_INIT_ATTR_PD};
    memcpy(&x, a, offsetof(struct ibv_qp_init_attr, sq_sig_all) + sizeof(int));
    struct ibv_qp *q = qp_create(&x);
    if (q)
        a->cap = x.cap;
    return q;
}

#define SEND_OPS                                                                                   \
    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |        \
     IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_BIND_MW | \
     IBV_QP_EX_WITH_LOCAL_INV)

struct ibv_qp *qp_create_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *a)
{
    uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    bool flags = a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS,
         ops = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    uint32_t owner = a->qp_type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
    if (a->comp_mask & ~known || !(a->comp_mask & owner) ||
        (flags && a->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) ||
        (ops &&
         (a->send_ops_flags & ~(uint64_t)SEND_OPS || !ctx_has_feature(ctx_from_ibv(c), FEATURE_QP_EX)))) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    struct ibv_qp *v = qp_create(a);
    if (!v)
        return NULL;
    struct qp *q = qp_from_ibv(v);
    q->no_self_mcast = flags && a->create_flags;
    q->has_ex = ops;
    if (ops)
        qp_bind_wr_ops(q);
    return v;
}

SOFTIB_API struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *v)
{
    return qp_from_ibv(v)->has_ex ? &qp_from_ibv(v)->ex : NULL;
}

static void qp_reset(struct qp *q)
{
    struct rwqe w;
    atomic_store(&q->sh->state, IBV_QPS_RESET);
    spinlock_acquire(&q->lock);
    q->wire->detach(q);
    q->wire = wire_near;
    qp_to_ibv(q)->state = IBV_QPS_RESET;
    q->tail = q->posted = q->next = q->done = 0;
    spinlock_release(&q->lock);
    qp_wait_deliveries(q);
    engine_cancel_task(&q->task); /* again: the wire may have deferred the task meanwhile */
    spinlock_acquire(&q->lock);
    atomic_store(&q->freed, 0);
    q->wait_until = 0;
    migrate_reset(q);
    ud_free_held(q);
    peer_release(q->peer);
    q->peer = NULL;
    while (qp_has_receive_queue(q) && rq_pop(proc.self, q->idx, false, &w))
        ;
    atomic_store(&q->sh->drained, 0);
    spinlock_release(&q->lock);
    cq_purge(cq_from_ibv(qp_to_ibv(q)->send_cq), qp_to_ibv(q)->qp_num);
    if (qp_to_ibv(q)->recv_cq != qp_to_ibv(q)->send_cq)
        cq_purge(cq_from_ibv(qp_to_ibv(q)->recv_cq), qp_to_ibv(q)->qp_num);
    struct ibv_qp_cap cap = q->cap;
    q->attr = (struct ibv_qp_attr){.cap = cap};
}

static int check_attributes(struct qp *q, const struct ibv_qp_attr *a, int mask)
{
    struct fab_place at;
    struct path p;
    const uint32_t hca = ctx_from_ibv(qp_to_ibv(q)->context)->hca;
    if (mask & IBV_QP_PORT && (a->port_num < 1 || a->port_num > proc.fab.ports))
        return EINVAL;
    if (mask & IBV_QP_PKEY_INDEX && a->pkey_index)
        return EINVAL;
    if (mask & IBV_QP_PATH_MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
        return EINVAL;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > MAX_RD_ATOM)
        return EINVAL;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > MAX_RD_ATOM)
        return EINVAL;
    if ((mask & IBV_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
        (mask & IBV_QP_TIMEOUT && a->timeout > 31) || (mask & IBV_QP_RETRY_CNT && a->retry_cnt > 7) ||
        (mask & IBV_QP_RNR_RETRY && a->rnr_retry > 7) ||
        (mask & IBV_QP_DEST_QPN && a->dest_qp_num > 0xffffff))
        return EINVAL;
    if (mask & IBV_QP_CUR_STATE && a->cur_qp_state != qp_to_ibv(q)->state)
        return EINVAL;
    if (mask & IBV_QP_AV) {
        if (!path_attr_legal(&a->ah_attr, hca))
            return EINVAL;
        path_from_attr(&a->ah_attr, hca, &p);
        if (!fabric_find_lid(&proc.fab, p.dlid, &at))
            return p.gid_type == GID_INFINIBAND ? EINVAL : EHOSTUNREACH;
    }
    if (mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) &&
        (!ctx_has_feature(ctx_from_ibv(qp_to_ibv(q)->context), FEATURE_APM) ||
         !migrate_attrs_fit(q, a, mask)))
        return EINVAL;
    return 0;
}

static void qp_set_attrs(struct qp *q, const struct ibv_qp_attr *a, int mask)
{
    struct ibv_qp_attr *d = &q->attr;
    struct sh_qp *s = q->sh;
    if (mask & IBV_QP_PORT) {
        d->port_num = a->port_num;
        q->linear = fabric_port_index(&proc.fab, proc.fab.node, ctx_from_ibv(qp_to_ibv(q)->context)->hca,
                                      a->port_num);
        atomic_store(&s->port, q->linear);
    }
    if (mask & IBV_QP_ACCESS_FLAGS)
        atomic_store(&s->access, d->qp_access_flags = a->qp_access_flags);
    if (mask & IBV_QP_QKEY)
        atomic_store(&s->qkey, d->qkey = a->qkey);
    if (mask & IBV_QP_PATH_MTU)
        atomic_store(&s->mtu, d->path_mtu = a->path_mtu);
    if (mask & IBV_QP_DEST_QPN)
        atomic_store(&s->dest_qpn, d->dest_qp_num = a->dest_qp_num);
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        atomic_store(&s->max_dest_rd, d->max_dest_rd_atomic = a->max_dest_rd_atomic);
    if (mask & IBV_QP_MIN_RNR_TIMER)
        atomic_store(&s->rnr_timer, d->min_rnr_timer = a->min_rnr_timer);
    if (mask & IBV_QP_AV) {
        d->ah_attr = a->ah_attr;
        path_from_attr(&a->ah_attr, ctx_from_ibv(qp_to_ibv(q)->context)->hca, &q->path);
        atomic_store(&s->roce_v2, q->path.gid_type == GID_ROCE_V2);
        atomic_store(&s->dlid, q->path.dlid);
    }
    if (mask & IBV_QP_TIMEOUT)
        d->timeout = a->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        q->retry_left = d->retry_cnt = a->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        q->rnr_left = d->rnr_retry = a->rnr_retry;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        d->max_rd_atomic = a->max_rd_atomic;
    if (mask & IBV_QP_RQ_PSN)
        d->rq_psn = a->rq_psn;
    if (mask & IBV_QP_SQ_PSN)
        d->sq_psn = a->sq_psn;
    if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
        d->en_sqd_async_notify = a->en_sqd_async_notify;
    if (mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE))
        migrate_set_attrs(q, a, mask);
}

/* Attaches the wire to the QP's peer. */
static int attach_peer_wire(struct qp *q)
{
    struct fab_place at;
    if (qp_to_ibv(q)->qp_type == IBV_QPT_UD || !fabric_find_lid(&proc.fab, q->path.dlid, &at))
        return 0;
    spinlock_acquire(&q->lock);
    bool ok = wire_to_node(at.node)->attach(q, at.node);
    spinlock_release(&q->lock);
    return ok ? 0 : ENOMEM;
}

static int change_state(struct qp *q, enum ibv_qp_state from, enum ibv_qp_state to)
{
    int r = to == IBV_QPS_RTR ? attach_peer_wire(q) : 0;
    if (r)
        return r;
    sq_lock(q);
    if (to == IBV_QPS_ERR) {
        qp_to_error(q);
    } else {
        q->attr.qp_state = qp_to_ibv(q)->state = to;
        atomic_store(&q->sh->state, to);
        if (to == IBV_QPS_RTS && from != IBV_QPS_RTS)
            q->wire->progress(q, 0);
        if (to == IBV_QPS_SQD && q->done == q->next)
            qp_report_drained(q);
    }
    sq_unlock(q);
    return 0;
}

/* Only the process that created an XRC queue pair can modify it, also through handles of ibv_open_qp. */
static int modify_opened(struct qp *q, struct ibv_qp_attr *a, int mask)
{
    if (qp_to_ibv(q)->qp_num >> QP_BITS != proc.slot)
        return EOPNOTSUPP;
    struct qp *created = xrc_find_local_qp(q);
    if (!created)
        return EINVAL;
    int r = ibv_modify_qp(qp_to_ibv(created), a, mask);
    qp_release(created);
    return r;
}

SOFTIB_API int ibv_modify_qp(struct ibv_qp *v, struct ibv_qp_attr *a, int mask)
{
    struct qp *q = qp_from_ibv(v);
    if (UNLIKELY(q->opened))
        return modify_opened(q, a, mask);
    enum ibv_qp_state from = v->state, to = mask & IBV_QP_STATE ? a->qp_state : from;
    if (!qp_transition_legal(v->qp_type, from, to, mask))
        return EINVAL;
    int r = check_attributes(q, a, mask);
    if (r)
        return r;
    if (to != IBV_QPS_RESET && to != IBV_QPS_ERR && hca_is_removed(ctx_from_ibv(v->context)->hca))
        return EIO;
    if (to == IBV_QPS_RESET) {
        engine_cancel_task(&q->task);
        qp_reset(q);
        return 0;
    }
    if (to != IBV_QPS_ERR)
        qp_set_attrs(q, a, mask);
    return to == from && to != IBV_QPS_ERR ? 0 : change_state(q, from, to);
}

static int query_opened(struct qp *q, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
    struct qp *created = xrc_find_local_qp(q);
    if (!created)
        return xrc_query_remote(q, a, init);
    int r = ibv_query_qp(qp_to_ibv(created), a, mask, init);
    qp_release(created);
    init->qp_context = qp_to_ibv(q)->qp_context;
    return r;
}

SOFTIB_API int ibv_query_qp(struct ibv_qp *v, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
    struct qp *q = qp_from_ibv(v);
    if (q->opened)
        return query_opened(q, a, mask, init);
    sq_lock(q); /* the engine thread may be moving the QP to the error state */
    *a = q->attr;
    unsigned s = atomic_load(&q->sh->state); /* a peer may have moved it to the error state */
    a->qp_state = a->cur_qp_state = s == IBV_QPS_ERR ? IBV_QPS_ERR : v->state;
    a->path_mig_state = (enum ibv_mig_state)atomic_load(&q->sh->mig);
    a->cap = q->cap;
    a->sq_draining = v->state == IBV_QPS_SQD && q->done != q->next;
    sq_unlock(q);
    *init = (struct ibv_qp_init_attr){
        .qp_context = v->qp_context,
        .send_cq = v->send_cq,
        .recv_cq = v->recv_cq,
        .srq = v->srq,
        .cap = q->cap,
        .qp_type = v->qp_type,
        .sq_sig_all = q->sig_all,
    };
    return 0;
}

SOFTIB_API int ibv_destroy_qp(struct ibv_qp *v)
{
    struct qp *q = qp_from_ibv(v);
    if (q->opened)
        return xrc_release(q);
    if (is_mcast_member(v->qp_num))
        return EBUSY;
    engine_cancel_task(&q->task);
    qp_reset(q);
    atomic_store(&q->sh->state, QP_NONE);
    atomic_store(&q->sh->qpn, 0);
    qp_table_remove(q);
    unsigned turn = 0;
    while (atomic_load(&q->task.busy))
        spin_wait(&turn);
    async_purge(ctx_from_ibv(v->context), &q->async_delivered);
    async_wait(&v->events_completed, &q->async_delivered, &v->mutex, &v->cond);
    if (qp_has_receive_queue(q))
        rq_destroy(&proc.arena->rq[q->idx]);
    add_object_references(q, -1);
    pthread_mutex_destroy(&v->mutex);
    pthread_cond_destroy(&v->cond);
    qp_number_free(q->idx);
    slab_free(q->sq, q->stride * q->cap.max_send_wr);
    slab_free(q, sizeof(*q));
    return 0;
}

int qp_post_recv(struct ibv_qp *v, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct qp *q = qp_from_ibv(v);
    int r = 0;
    if (!qp_has_receive_queue(q)) {
        *bad = wr;
        return EINVAL;
    }
    bool refuse = atomic_load_explicit(&q->sh->state, memory_order_relaxed) == IBV_QPS_RESET;
    for (; wr && !r; wr = r ? wr : wr->next)
        r = refuse ? EINVAL : rq_post(&proc.arena->rq[q->idx], wr);
    if (r)
        *bad = wr;
    atomic_thread_fence(memory_order_seq_cst); /* pairs with qp_to_error, which first sets the state */
    if (UNLIKELY(atomic_load(&q->sh->state) == IBV_QPS_ERR))
        qp_flush_receives(q);
    return r;
}

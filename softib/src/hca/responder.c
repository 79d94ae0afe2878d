/* responder.c: checks and executes requests at the target. Checks are in the order of an HCA: sender, state
 * of the QP, posted receive, length of the data, access rights.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/hold.h"
#include "hca/migrate.h"
#include "hca/window.h"

static bool responder_can_receive(unsigned state)
{
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

static bool is_addressed_to_port(const struct sh_qp *q, uint16_t dlid)
{
    return (uint32_t)(dlid >> proc.fab.lmc) == atomic_load_explicit(&q->port, memory_order_relaxed) + 1;
}

static bool responder_matches_request(const struct sh_qp *q, uint32_t qpn, const struct request *r)
{
    if (atomic_load_explicit(&q->qpn, memory_order_relaxed) != qpn ||
        atomic_load_explicit(&q->type, memory_order_relaxed) != r->type)
        return false;
    if (r->type == IBV_QPT_UD)
        return atomic_load_explicit(&q->qkey, memory_order_relaxed) == r->qkey &&
               (r->dlid >= MCAST_LID || is_addressed_to_port(q, r->dlid));
    return atomic_load_explicit(&q->dest_qpn, memory_order_relaxed) == r->src_qpn;
}

static bool is_from_connected_path(const struct sh_qp *q, const struct request *r)
{
    return is_addressed_to_port(q, r->dlid) &&
           atomic_load_explicit(&q->roce_v2, memory_order_relaxed) == r->roce_v2 &&
           (uint32_t)(r->slid >> proc.fab.lmc) ==
               (uint32_t)(atomic_load_explicit(&q->dlid, memory_order_relaxed) >> proc.fab.lmc);
}

/* Checks the path of a request, which may be the one that migrates the QP to its alternate path. */
static bool responder_check_path(struct target *t, const struct request *r)
{
    if (r->type == IBV_QPT_UD)
        return true;
    if (UNLIKELY(atomic_load_explicit(&t->qp->mig, memory_order_relaxed) != IBV_MIG_MIGRATED) &&
        !migrate_check_arrival(t, r))
        return false;
    return is_from_connected_path(t->qp, r);
}

/* Marks the receiver in use, before its state is read: the owner changes the state first and then waits
 * for users. */
static _Atomic uint64_t *responder_acquire_object(const struct peer *owner, uint32_t index,
                                                  atomic_uint *users)
{
    if (!owner->self)
        return hold_acquire(owner->slot, index);
    atomic_fetch_add(users, 1);
    return NULL;
}

static void responder_release_object(_Atomic uint64_t *hold, atomic_uint *users)
{
    if (hold)
        hold_release(hold);
    else
        atomic_fetch_sub_explicit(users, 1, memory_order_release);
}

enum answer target_find(struct peer *owner, uint32_t qpn, const struct request *r, struct target *t)
{
    struct sh_qp *q = &owner->arena->qp[qpn & (QP_MAX - 1)];
    t->owner = t->memory = owner;
    t->qp = q;
    t->xrc = NULL;
    if (UNLIKELY(atomic_load_explicit(&owner->arena->top, memory_order_relaxed) >
                 atomic_load_explicit(&owner->mapped, memory_order_relaxed)) &&
        !peer_map_more(owner))
        return ANS_REFUSED;
    t->hold = responder_acquire_object(owner, HOLD_QP | (qpn & (QP_MAX - 1)), &q->users);
    if (LIKELY(responder_can_receive(atomic_load(&q->state)) && responder_matches_request(q, qpn, r) &&
               responder_check_path(t, r)))
        return ANS_OK;
    responder_release_object(t->hold, &q->users);
    return ANS_DROP;
}

/* Finds the SRQ that an XRC request names. It must belong to the QP's domain, and may belong to another
 * process of the node. */
static bool xrc_find(struct target *t, const struct request *r)
{
    int why;
    struct peer *p = peer_find(r->srqn >> SRQ_BITS, &why);
    if (!p)
        return false;
    struct sh_xrc *x = &p->arena->xrc[r->srqn & (SRQ_MAX - 1)];
    t->xrc_hold = responder_acquire_object(p, HOLD_XRC | (r->srqn & (SRQ_MAX - 1)), &x->users);
    uint64_t domain = atomic_load(&x->domain);
    bool extended = atomic_load_explicit(&p->arena->top, memory_order_relaxed) <=
                        atomic_load_explicit(&p->mapped, memory_order_relaxed) ||
                    peer_map_more(p);
    if (extended && domain && domain == atomic_load(&t->qp->domain) && atomic_load(&x->number) == r->srqn) {
        t->memory = p;
        t->xrc = x;
        return true;
    }
    responder_release_object(t->xrc_hold, &x->users);
    peer_release(p);
    return false;
}

/* Finds the receive queue of a request. Returns false if the request names no SRQ of the domain; the QP
 * has failed then. */
static bool find_receive_memory(struct target *t, const struct request *r)
{
    if (LIKELY(r->type != IBV_QPT_XRC_RECV) || xrc_find(t, r))
        return true;
    target_fail(t, IBV_EVENT_QP_REQ_ERR);
    return false;
}

static uint32_t target_pd(const struct target *t)
{
    return atomic_load_explicit(UNLIKELY(t->xrc != NULL) ? &t->xrc->pd : &t->qp->pd, memory_order_relaxed);
}

static uint32_t target_cq(const struct target *t)
{
    return atomic_load_explicit(UNLIKELY(t->xrc != NULL) ? &t->xrc->cq : &t->qp->rcq, memory_order_relaxed);
}

static bool target_pop_receive(struct target *t, struct rwqe *w)
{
    if (UNLIKELY(t->xrc != NULL))
        return rq_pop(t->memory, QP_MAX + (uint32_t)(t->xrc - t->memory->arena->xrc), true, w);
    return rq_pop(t->owner, atomic_load_explicit(&t->qp->rq, memory_order_relaxed),
                  atomic_load_explicit(&t->qp->is_srq, memory_order_relaxed), w);
}

void target_release(struct target *t)
{
    if (UNLIKELY(t->xrc != NULL)) {
        responder_release_object(t->xrc_hold, &t->xrc->users);
        peer_release(t->memory);
        t->xrc = NULL;
    }
    responder_release_object(t->hold, &t->qp->users);
}

void target_fail(struct target *t, enum ibv_event_type why)
{
    unsigned s = atomic_load(&t->qp->state);
    while (responder_can_receive(s) && !atomic_compare_exchange_weak(&t->qp->state, &s, IBV_QPS_ERR))
        ;
    if (responder_can_receive(s))
        peer_post_event(t->owner, SHEV_QP_ERROR, atomic_load(&t->qp->qpn), why);
}

/* The LID in completions: 0 for RoCE ports. */
static uint16_t lid_for_completion(uint16_t lid)
{
    struct fab_place at;
    if (LIKELY(!proc.fab.roce) || !fabric_find_lid(&proc.fab, lid, &at))
        return lid;
    return proc.fab.port[at.linear].ethernet ? 0 : lid;
}

static void responder_complete(struct target *t, const struct request *r, uint64_t wr_id,
                               enum ibv_wc_status st, uint32_t len)
{
    struct sh_qp *q = t->qp;
    bool imm = r->opcode == IBV_WR_SEND_WITH_IMM || r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    bool inv = r->opcode == IBV_WR_SEND_WITH_INV;
    struct sh_cqe e = {
        .wr_id = wr_id,
        .stamp = 0,
        .status = st,
        .opcode = r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
        .byte_len = len,
        .imm = imm || inv ? r->imm : 0,
        .qp_num = atomic_load_explicit(&q->qpn, memory_order_relaxed),
        .src_qp = r->src_qpn,
        .wc_flags = (imm ? IBV_WC_WITH_IMM : 0) | (inv ? IBV_WC_WITH_INV : 0) | (r->has_grh ? IBV_WC_GRH : 0),
        .slid = lid_for_completion(r->slid),
        .sl = r->sl,
        .path_bits = (uint8_t)(r->dlid & ((1u << proc.fab.lmc) - 1)),
        .solicited = r->solicited,
    };
    if (atomic_load_explicit(&t->memory->arena->cq[target_cq(t)].stamped, memory_order_relaxed))
        e.stamp = now_ns();
    cq_push(t->memory, target_cq(t), &e);
}

static void landing_release(struct landing *l)
{
    for (int i = 0; i < l->nseg; i++)
        mr_release(&l->seg[i]);
    l->nseg = 0;
}

/* Consumes a receive request and finds its memory. UD data begins behind the route header. */
static enum answer prepare_receive(struct target *t, const struct request *r, struct landing *l,
                                   uint32_t *arg)
{
    struct sh_qp *q = t->qp;
    struct rwqe w;
    uint32_t pd = target_pd(t);
    uint64_t need = r->length + (r->type == IBV_QPT_UD ? GRH_BYTES : 0);
    if (!target_pop_receive(t, &w)) {
        *arg = atomic_load_explicit(&q->rnr_timer, memory_order_relaxed);
        return ANS_RNR;
    }
    l->consumed = true;
    l->wr_id = w.wr_id;
    if (r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        return ANS_OK;
    if (UNLIKELY(need > w.total)) {
        responder_complete(t, r, w.wr_id, IBV_WC_LOC_LEN_ERR, 0);
        target_fail(t, IBV_EVENT_QP_REQ_ERR);
        return ANS_INVALID;
    }
    for (uint32_t i = 0; i < w.nsge && need; i++) {
        uint64_t len = min_u64(need, w.sge[i].length);
        if (!len)
            continue;
        if (UNLIKELY(!mr_hold_remote(t->memory, w.sge[i].lkey, pd, w.sge[i].addr, len, IBV_ACCESS_LOCAL_WRITE,
                                     &l->seg[l->nseg]))) {
            landing_release(l);
            responder_complete(t, r, w.wr_id, IBV_WC_LOC_PROT_ERR, 0);
            target_fail(t, IBV_EVENT_QP_FATAL);
            return ANS_OP;
        }
        need -= len;
        l->nseg++;
    }
    return ANS_OK;
}

/* True if the QP's access flags permit the request. If not, the request fails as invalid, and the region's
 * access rights are not checked. */
static bool qp_permits_access(const struct sh_qp *q, uint32_t need)
{
    return atomic_load_explicit(&q->access, memory_order_relaxed) & need;
}

static bool hold_remote_region(struct target *t, const struct request *r, uint64_t len, uint32_t need,
                               struct rseg *s)
{
    if (UNLIKELY(!mr_hold_remote(t->memory, r->rkey, target_pd(t), r->raddr, len, need, s)))
        return false;
    if (LIKELY(window_permits_qp(s->mr, t)))
        return true;
    mr_release(s);
    return false;
}

static enum answer prepare_write(struct target *t, const struct request *r, struct landing *l)
{
    struct sh_qp *q = t->qp;
    if (!qp_permits_access(q, IBV_ACCESS_REMOTE_WRITE)) {
        if (type_is_reliable(r->type))
            target_fail(t, IBV_EVENT_QP_REQ_ERR);
        return ANS_INVALID;
    }
    if (!r->length)
        return ANS_OK;
    if (!hold_remote_region(t, r, r->length, IBV_ACCESS_REMOTE_WRITE, &l->seg[0])) {
        if (type_is_reliable(r->type))
            target_fail(t, IBV_EVENT_QP_ACCESS_ERR);
        return ANS_ACCESS;
    }
    l->nseg = 1;
    return ANS_OK;
}

enum answer target_prepare(struct target *t, const struct request *r, struct landing *l, uint32_t *arg)
{
    l->nseg = 0;
    l->consumed = false;
    if (!find_receive_memory(t, r))
        return ANS_INVALID;
    if (r->opcode == IBV_WR_RDMA_WRITE)
        return prepare_write(t, r, l);
    /* The sender has executed LOCAL_INV; the responder only advances the sequence number. */
    if (UNLIKELY(r->opcode == IBV_WR_LOCAL_INV))
        return ANS_OK;
    if (UNLIKELY(r->opcode == IBV_WR_SEND_WITH_INV && !window_find_by_key(t, r->imm))) {
        if (type_is_reliable(r->type))
            target_fail(t, IBV_EVENT_QP_ACCESS_ERR);
        return ANS_ACCESS;
    }
    if (r->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
        return prepare_receive(t, r, l, arg);
    enum answer a = prepare_write(t, r, l);
    if (a != ANS_OK)
        return a;
    /* The receive request is consumed last: a rejected write must not consume one. */
    struct landing taken = {.nseg = 0};
    a = prepare_receive(t, r, &taken, arg);
    l->consumed = taken.consumed;
    l->wr_id = taken.wr_id;
    if (a != ANS_OK)
        landing_release(l);
    return a;
}

enum answer target_find_memory(struct target *t, const struct request *r, uint64_t len, uint32_t need,
                               struct rseg *s)
{
    struct sh_qp *q = t->qp;
    s->mr = NULL;
    if (!qp_permits_access(q, need) || !atomic_load_explicit(&q->max_dest_rd, memory_order_relaxed) ||
        (need == IBV_ACCESS_REMOTE_ATOMIC && (r->raddr & 7))) {
        target_fail(t, IBV_EVENT_QP_REQ_ERR);
        return ANS_INVALID;
    }
    if (!find_receive_memory(t, r))
        return ANS_INVALID;
    if (!len)
        return ANS_OK;
    if (!hold_remote_region(t, r, len, need, s)) {
        target_fail(t, IBV_EVENT_QP_ACCESS_ERR);
        return ANS_ACCESS;
    }
    return ANS_OK;
}

/* Invalidates the window that a request names; earlier requests of this QP that used it have completed. */
static void invalidate_window_key(struct target *t, uint32_t key)
{
    struct sh_mr *s = window_find_by_key(t, key);
    if (s)
        atomic_compare_exchange_strong(&s->rkey, &key, 0);
}

enum answer target_finish(struct target *t, const struct request *r, struct landing *l, bool ok)
{
    landing_release(l);
    if (UNLIKELY(!ok)) {
        if (l->consumed)
            responder_complete(t, r, l->wr_id, IBV_WC_LOC_PROT_ERR, 0);
        if (r->type != IBV_QPT_UC)
            target_fail(t, IBV_EVENT_QP_FATAL);
        return ANS_OP;
    }
    if (UNLIKELY(r->opcode == IBV_WR_SEND_WITH_INV))
        invalidate_window_key(t, r->imm);
    if (l->consumed)
        responder_complete(t, r, l->wr_id, IBV_WC_SUCCESS,
                           r->length + (r->type == IBV_QPT_UD ? GRH_BYTES : 0));
    return ANS_OK;
}

void target_abandon(struct target *t, const struct request *r, struct landing *l, bool flush)
{
    landing_release(l);
    if (l->consumed && flush)
        responder_complete(t, r, l->wr_id, IBV_WC_WR_FLUSH_ERR, 0);
}

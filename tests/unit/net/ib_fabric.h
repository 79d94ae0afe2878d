/* ib_fabric.h: simulated adapters and a simulated network, offered to the InfiniBand transport as a
 * table of verbs. Nothing happens by itself: the test executes each packet, acknowledgement, failure
 * and datagram as one step, so every order of events can be produced and repeated. All simulated
 * processes share one address space; an RDMA write is a memcpy.
 *
 * A queue pair holds requests in the order they were posted: those before `done` have arrived at the
 * peer, but the acknowledgement has not returned; requests from `done` on have not arrived. When the
 * queue pair fails, every request without an acknowledgement fails, though it may have arrived.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_IB_FABRIC_H
#define FP_TESTS_IB_FABRIC_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/util.h"
#include "net/ib/device/verbs.h"

enum { FABRIC_NODES = 3, FABRIC_PORTS = 2, FABRIC_INLINE = 256, FABRIC_GRH = 40 };

struct fabric_adapter {
    struct verbs_context extended;
    struct ibv_pd pd;
    struct ibv_xrcd domain;
    uint16_t lid;
    uint64_t subnet;
    bool up;
};

struct fabric_request {
    struct ibv_send_wr wr;
    struct ibv_sge piece;
    char inlined[FABRIC_INLINE];
};

struct fabric_receive {
    uint64_t id;
    char *at;
    uint32_t length;
};

struct fabric_receives {
    struct fabric_receive *entries; /* ring buffer */
    uint32_t room, head, tail;
    uint32_t limit; /* fewer posted buffers than this cause one limit event for `owner` */
    void *owner;
};

struct fabric_srq {
    struct ibv_srq base;
    struct list link;
    struct ibv_cq *cq; /* XRC: completion queue of received messages */
    uint32_t number;
    struct fabric_receives receives;
};

struct fabric_qp {
    struct ibv_qp base;
    struct list link;
    struct fabric_adapter *adapter;
    uint16_t to_lid;
    uint32_t to_qpn;
    struct fabric_request *requests; /* ring buffer */
    uint32_t room, head, tail, done;
    struct fabric_receives own, *receives;
};

struct fabric_cq {
    struct ibv_cq base;
    struct ibv_wc *entries; /* ring buffer */
    uint32_t room, head, tail;
};

struct fabric_datagram {
    struct list link;
    uint16_t lid;
    uint32_t qpn, length;
    struct fabric_adapter *from;
    char data[512];
};

struct fabric_ah {
    struct ibv_ah base;
    uint16_t lid;
};

struct fabric_mr {
    struct ibv_mr base;
    bool alive;
};

static struct fabric {
    struct fabric_adapter adapters[FABRIC_NODES][FABRIC_PORTS];
    struct list qps, srqs, datagrams;
    uint32_t last_qp_number;
    bool keeps_completions;       /* completions outlive their queue pair */
    bool keeps_deregistered;      /* deregistered memory remains accessible */
    uint32_t inits_until_refusal; /* the n-th transition of an RC queue pair to INIT fails; 0: none fails */
    struct fabric_mr **mrs;
    uint32_t nmrs;
    uint32_t qps_created, qps_destroyed;
    void (*report_srq_limit)(void *owner); /* owner: the context given to create_srq */
} fabric;

static inline struct fabric_adapter *fabric_adapter_of(struct ibv_context *context)
{
    return (struct fabric_adapter *)(void *)((char *)context -
                                             offsetof(struct fabric_adapter, extended.context));
}

/* ---- completions ---- */

static inline void fabric_add_completion(struct ibv_cq *to, struct ibv_wc wc)
{
    struct fabric_cq *cq = (struct fabric_cq *)to;
    cq->entries[cq->head++ & (cq->room - 1)] = wc;
}

static inline int fabric_poll_cq(struct ibv_cq *from, int n, struct ibv_wc *wc)
{
    struct fabric_cq *cq = (struct fabric_cq *)from;
    int i = 0;
    for (; i < n && cq->tail != cq->head; i++)
        wc[i] = cq->entries[cq->tail++ & (cq->room - 1)];
    return i;
}

static inline int fabric_ignore_notify(struct ibv_cq *cq, int solicited)
{
    (void)cq;
    (void)solicited;
    return 0;
}

static inline struct ibv_cq *fabric_cq(struct ibv_context *context)
{
    struct fabric_cq *cq = calloc(1, sizeof(*cq));
    cq->base.context = context;
    cq->room = 1 << 13;
    cq->entries = calloc(cq->room, sizeof(*cq->entries));
    return &cq->base;
}

static inline int fabric_cq_destroy(struct ibv_cq *cq)
{
    free(((struct fabric_cq *)cq)->entries);
    free(cq);
    return 0;
}

static inline int fabric_cq_resize(struct ibv_cq *cq, int size)
{
    return (uint32_t)size <= ((struct fabric_cq *)cq)->room ? 0 : ENOMEM;
}

/* Removes the completions of one queue pair; the others keep their order. */
static inline void fabric_remove_completions(struct ibv_cq *from, uint32_t qpn)
{
    struct fabric_cq *cq = (struct fabric_cq *)from;
    uint32_t to = cq->tail;
    for (uint32_t at = cq->tail; at != cq->head; at++)
        if (cq->entries[at & (cq->room - 1)].qp_num != qpn)
            cq->entries[to++ & (cq->room - 1)] = cq->entries[at & (cq->room - 1)];
    cq->head = to;
}

/* ---- memory ---- */

static inline struct ibv_mr *fabric_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    struct fabric_mr *mr = calloc(1, sizeof(*mr));
    (void)access;
    fabric.mrs = realloc(fabric.mrs, (fabric.nmrs + 1) * sizeof(*fabric.mrs));
    fabric.mrs[fabric.nmrs++] = mr;
    mr->alive = true;
    mr->base = (struct ibv_mr){.context = pd->context,
                               .pd = pd,
                               .addr = address,
                               .length = length,
                               .lkey = fabric.nmrs,
                               .rkey = fabric.nmrs};
    return &mr->base;
}

static inline int fabric_dereg_mr(struct ibv_mr *mr)
{
    ((struct fabric_mr *)mr)->alive = fabric.keeps_deregistered;
    return 0;
}

static inline bool fabric_permits_access(const struct fabric_adapter *a, uint32_t key, uint64_t at,
                                         size_t length)
{
    const struct fabric_mr *mr = key >= 1 && key <= fabric.nmrs ? fabric.mrs[key - 1] : NULL;
    return mr && mr->alive && mr->base.context == &a->extended.context && at >= (uintptr_t)mr->base.addr &&
           at + length <= (uintptr_t)mr->base.addr + mr->base.length;
}

/* ---- queue pairs ---- */

static inline void fabric_post_receive(struct fabric_receives *r, const struct ibv_recv_wr *wr)
{
    r->entries[r->head++ & (r->room - 1)] =
        (struct fabric_receive){wr->wr_id, (char *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length};
}

static inline void fabric_open_receives(struct fabric_receives *r, uint32_t least)
{
    for (r->room = 16; r->room < least; r->room *= 2)
        ;
    r->entries = calloc(r->room, sizeof(*r->entries));
}

static inline struct ibv_qp *fabric_qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *a)
{
    struct fabric_qp *qp = calloc(1, sizeof(*qp));
    qp->adapter = fabric_adapter_of(context);
    qp->base = (struct ibv_qp){.context = context,
                               .qp_context = a->qp_context,
                               .pd = a->pd,
                               .send_cq = a->send_cq,
                               .recv_cq = a->recv_cq,
                               .srq = a->srq,
                               .qp_num = ++fabric.last_qp_number,
                               .qp_type = a->qp_type};
    for (qp->room = 16; qp->room < a->cap.max_send_wr; qp->room *= 2)
        ;
    qp->requests = calloc(qp->room, sizeof(*qp->requests));
    fabric_open_receives(&qp->own, a->cap.max_recv_wr);
    qp->receives = a->srq ? &((struct fabric_srq *)a->srq)->receives : &qp->own;
    list_append(&fabric.qps, &qp->link);
    fabric.qps_created++;
    return &qp->base;
}

/* Creates the target queue pair of an XRC connection. */
static inline struct ibv_qp *fabric_qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
    return fabric_qp_new(context, a);
}

static inline struct ibv_qp *fabric_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    return fabric_qp_new(pd->context, &(struct ibv_qp_init_attr_ex){.qp_context = a->qp_context,
                                                                    .pd = pd,
                                                                    .send_cq = a->send_cq,
                                                                    .recv_cq = a->recv_cq,
                                                                    .srq = a->srq,
                                                                    .cap = a->cap,
                                                                    .qp_type = a->qp_type});
}

static inline bool fabric_is_connected_type(const struct fabric_qp *qp)
{
    return qp->base.qp_type == IBV_QPT_RC || qp->base.qp_type == IBV_QPT_XRC_SEND;
}

static inline int fabric_qp_destroy(struct ibv_qp *base)
{
    struct fabric_qp *qp = (struct fabric_qp *)base;
    if (!fabric.keeps_completions && base->send_cq) {
        fabric_remove_completions(base->send_cq, base->qp_num);
        fabric_remove_completions(base->recv_cq, base->qp_num);
    }
    list_remove(&qp->link);
    free(qp->requests);
    free(qp->own.entries);
    free(qp);
    fabric.qps_destroyed++;
    return 0;
}

/* Moves the queue pair to the error state: the oldest unacknowledged request fails with `status`, all
 * others are flushed. */
static inline void fabric_qp_fail(struct fabric_qp *qp, enum ibv_wc_status status)
{
    qp->base.state = IBV_QPS_ERR;
    for (; qp->tail != qp->head; qp->tail++) {
        const struct fabric_request *r = &qp->requests[qp->tail & (qp->room - 1)];
        fabric_add_completion(
            qp->base.send_cq,
            (struct ibv_wc){.wr_id = r->wr.wr_id, .status = status, .qp_num = qp->base.qp_num});
        status = IBV_WC_WR_FLUSH_ERR;
    }
    qp->done = qp->tail;
    for (; qp->own.tail != qp->own.head; qp->own.tail++)
        fabric_add_completion(qp->base.recv_cq,
                              (struct ibv_wc){.wr_id = qp->own.entries[qp->own.tail & (qp->own.room - 1)].id,
                                              .status = IBV_WC_WR_FLUSH_ERR,
                                              .qp_num = qp->base.qp_num});
}

static inline int fabric_qp_modify(struct ibv_qp *base, struct ibv_qp_attr *a, int mask)
{
    struct fabric_qp *qp = (struct fabric_qp *)base;
    if (!(mask & IBV_QP_STATE))
        return ENOSYS;
    if (a->qp_state == IBV_QPS_INIT && base->qp_type == IBV_QPT_RC && fabric.inits_until_refusal &&
        --fabric.inits_until_refusal == 0)
        return ENOMEM;
    if (a->qp_state == IBV_QPS_ERR) {
        fabric_qp_fail(qp, IBV_WC_WR_FLUSH_ERR);
        return 0;
    }
    if (base->state == IBV_QPS_ERR)
        return EINVAL;
    base->state = a->qp_state;
    if (mask & IBV_QP_AV)
        qp->to_lid = a->ah_attr.dlid;
    if (mask & IBV_QP_DEST_QPN)
        qp->to_qpn = a->dest_qp_num;
    return 0;
}

static inline int fabric_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fabric_qp *qp = (struct fabric_qp *)base;
    (void)bad;
    if (base->state == IBV_QPS_ERR)
        fabric_add_completion(
            base->recv_cq,
            (struct ibv_wc){.wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR, .qp_num = base->qp_num});
    else if (qp->own.head - qp->own.tail == qp->own.room)
        return ENOMEM;
    else
        fabric_post_receive(&qp->own, wr);
    return 0;
}

static inline int fabric_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fabric_receives *r = &((struct fabric_srq *)srq)->receives;
    (void)bad;
    if (r->head - r->tail == r->room)
        return ENOMEM;
    fabric_post_receive(r, wr);
    return 0;
}

static inline void fabric_datagram(const struct fabric_qp *qp, const struct ibv_send_wr *wr)
{
    struct fabric_datagram *d = calloc(1, sizeof(*d));
    d->lid = ((struct fabric_ah *)wr->wr.ud.ah)->lid;
    d->qpn = wr->wr.ud.remote_qpn;
    d->from = qp->adapter;
    d->length = MIN(wr->sg_list->length, (uint32_t)sizeof(d->data));
    memcpy(d->data, (const void *)(uintptr_t)wr->sg_list->addr, d->length);
    list_append(&fabric.datagrams, &d->link);
    fabric_add_completion(qp->base.send_cq, (struct ibv_wc){.wr_id = wr->wr_id, .qp_num = qp->base.qp_num});
}

static inline int fabric_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct fabric_qp *qp = (struct fabric_qp *)base;
    (void)bad;
    if (base->qp_type == IBV_QPT_UD) {
        fabric_datagram(qp, wr);
        return 0;
    }
    if (base->state == IBV_QPS_ERR) {
        fabric_add_completion(
            base->send_cq,
            (struct ibv_wc){.wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR, .qp_num = base->qp_num});
        return 0;
    }
    if (base->state != IBV_QPS_RTS)
        return EINVAL;
    if (qp->head - qp->tail == qp->room)
        return ENOMEM;
    struct fabric_request *r = &qp->requests[qp->head++ & (qp->room - 1)];
    r->wr = *wr;
    r->piece = wr->num_sge ? *wr->sg_list : (struct ibv_sge){0};
    if (wr->send_flags & IBV_SEND_INLINE && r->piece.length > 0) {
        memcpy(r->inlined, (const void *)(uintptr_t)r->piece.addr, r->piece.length);
        r->piece.addr = (uintptr_t)r->inlined;
    }
    return 0;
}

static inline struct ibv_srq *fabric_srq_new(struct ibv_pd *pd, const struct ibv_srq_attr *a, void *context,
                                             struct ibv_cq *cq)
{
    struct fabric_srq *srq = calloc(1, sizeof(*srq));
    srq->base.context = pd->context;
    srq->base.pd = pd;
    srq->cq = cq;
    srq->number = ++fabric.last_qp_number;
    fabric_open_receives(&srq->receives, a->max_wr);
    srq->receives.owner = context;
    list_append(&fabric.srqs, &srq->link);
    return &srq->base;
}

static inline struct ibv_srq *fabric_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
    return fabric_srq_new(pd, &a->attr, a->srq_context, NULL);
}

static inline struct ibv_srq *fabric_srq_create_ex(struct ibv_context *context,
                                                   struct ibv_srq_init_attr_ex *a)
{
    (void)context;
    return fabric_srq_new(a->pd, &a->attr, a->srq_context, a->cq);
}

static inline int fabric_srq_number(struct ibv_srq *srq, uint32_t *number)
{
    *number = ((const struct fabric_srq *)srq)->number;
    return 0;
}

static inline struct fabric_srq *fabric_srq_find(uint32_t number)
{
    list_foreach(pos, &fabric.srqs) if (list_entry(pos, struct fabric_srq, link)->number ==
                                        number) return list_entry(pos, struct fabric_srq, link);
    return NULL;
}

static inline struct ibv_xrcd *fabric_xrcd_open(struct ibv_context *context, struct ibv_xrcd_init_attr *a)
{
    (void)a;
    fabric_adapter_of(context)->domain.context = context;
    return &fabric_adapter_of(context)->domain;
}

static inline int fabric_xrcd_close(struct ibv_xrcd *domain)
{
    (void)domain;
    return 0;
}

static inline int fabric_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *a, int mask)
{
    if (mask & IBV_SRQ_LIMIT)
        ((struct fabric_srq *)srq)->receives.limit = a->srq_limit;
    return 0;
}

static inline int fabric_srq_destroy(struct ibv_srq *srq)
{
    list_remove(&((struct fabric_srq *)srq)->link);
    free(((struct fabric_srq *)srq)->receives.entries);
    free(srq);
    return 0;
}

static inline struct ibv_ah *fabric_ah_create(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
    struct fabric_ah *ah = calloc(1, sizeof(*ah));
    ah->base.pd = pd;
    ah->lid = a->dlid;
    return &ah->base;
}

static inline int fabric_ah_destroy(struct ibv_ah *ah)
{
    free(ah);
    return 0;
}

static inline const char *fabric_status_text(enum ibv_wc_status status)
{
    return status == IBV_WC_WR_FLUSH_ERR    ? "flushed"
           : status == IBV_WC_RETRY_EXC_ERR ? "retry exceeded"
                                            : "error";
}

static inline struct verbs fabric_verbs(void)
{
    return (struct verbs){.reg_mr = fabric_reg_mr,
                          .dereg_mr = fabric_dereg_mr,
                          .create_qp = fabric_qp_create,
                          .modify_qp = fabric_qp_modify,
                          .destroy_qp = fabric_qp_destroy,
                          .create_srq = fabric_srq_create,
                          .modify_srq = fabric_srq_modify,
                          .destroy_srq = fabric_srq_destroy,
                          .create_ah = fabric_ah_create,
                          .destroy_ah = fabric_ah_destroy,
                          .resize_cq = fabric_cq_resize,
                          .destroy_cq = fabric_cq_destroy,
                          .wc_status_str = fabric_status_text};
}

/* ---- events; each returns false if the present state does not permit the event ---- */

static inline struct fabric_adapter *fabric_find_adapter(uint16_t lid)
{
    for (int n = 0; n < FABRIC_NODES; n++)
        for (int p = 0; p < FABRIC_PORTS; p++)
            if (fabric.adapters[n][p].lid == lid)
                return &fabric.adapters[n][p];
    return NULL;
}

static inline bool fabric_can_reach(const struct fabric_adapter *a, const struct fabric_adapter *b)
{
    return a && b && a->up && b->up && a->subnet == b->subnet;
}

static inline struct fabric_qp *fabric_find_qp(uint32_t qpn, const struct fabric_adapter *a)
{
    list_foreach(pos, &fabric.qps)
    {
        struct fabric_qp *qp = list_entry(pos, struct fabric_qp, link);
        if (qp->base.qp_num == qpn && qp->adapter == a)
            return qp;
    }
    return NULL;
}

/* The connected queue pair of the peer; NULL: requests do not arrive. */
static inline struct fabric_qp *fabric_find_peer(const struct fabric_qp *qp)
{
    const struct fabric_adapter *a = fabric_find_adapter(qp->to_lid);
    struct fabric_qp *other = fabric_can_reach(qp->adapter, a) ? fabric_find_qp(qp->to_qpn, a) : NULL;
    bool joined = other && (other->base.state == IBV_QPS_RTR || other->base.state == IBV_QPS_RTS) &&
                  other->to_qpn == qp->base.qp_num && other->to_lid == qp->adapter->lid;
    return joined ? other : NULL;
}

/* Executes a request at the peer. Returns false if the peer has no receive buffer for it. */
static inline bool fabric_execute(const struct fabric_request *r, struct fabric_qp *other)
{
    const enum ibv_wr_opcode op = r->wr.opcode;
    const bool send = op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM;
    const bool consumes_receive = send || op == IBV_WR_RDMA_WRITE_WITH_IMM;
    char *near = (char *)(uintptr_t)r->piece.addr, *far = (char *)(uintptr_t)r->wr.wr.rdma.remote_addr;
    const bool xrc = other->base.qp_type == IBV_QPT_XRC_RECV;
    struct fabric_srq *srq = xrc && consumes_receive ? fabric_srq_find(r->wr.qp_type.xrc.remote_srqn) : NULL;
    struct fabric_receives *rx = srq ? &srq->receives : other->receives;
    struct fabric_receive *into =
        consumes_receive && rx->tail != rx->head ? &rx->entries[rx->tail & (rx->room - 1)] : NULL;
    if (consumes_receive && !into)
        return false;
    if (op == IBV_WR_RDMA_READ)
        memcpy(near, far, r->piece.length);
    else if (r->piece.length > 0)
        memcpy(send ? into->at : far, near, r->piece.length);
    if (!consumes_receive)
        return true;
    rx->tail++;
    if (rx->head - rx->tail < rx->limit) {
        rx->limit = 0;
        fabric.report_srq_limit(rx->owner);
    }
    fabric_add_completion(srq ? srq->cq : other->base.recv_cq,
                          (struct ibv_wc){.wr_id = into->id,
                                          .opcode = send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
                                          .byte_len = r->piece.length,
                                          .wc_flags = op == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM,
                                          .imm_data = r->wr.imm_data,
                                          .qp_num = other->base.qp_num});
    return true;
}

static inline bool fabric_deliver_request(struct fabric_qp *qp)
{
    struct fabric_qp *other =
        qp->done != qp->head && qp->base.state == IBV_QPS_RTS ? fabric_find_peer(qp) : NULL;
    if (!other)
        return false;
    const struct fabric_request *r = &qp->requests[qp->done & (qp->room - 1)];
    bool one_sided =
        r->wr.opcode != IBV_WR_SEND && r->wr.opcode != IBV_WR_SEND_WITH_IMM && r->piece.length > 0;
    if (one_sided && !fabric_permits_access(other->adapter, r->wr.wr.rdma.rkey, r->wr.wr.rdma.remote_addr,
                                            r->piece.length)) {
        if (qp->done != qp->tail)
            return false; /* earlier requests must be acknowledged before this one fails */
        fabric_qp_fail(qp, IBV_WC_REM_ACCESS_ERR);
        fabric_qp_fail(other, IBV_WC_WR_FLUSH_ERR);
        return true;
    }
    if (!fabric_execute(r, other))
        return false;
    qp->done++;
    return true;
}

/* Acknowledges the oldest request that has arrived. */
static inline bool fabric_acknowledge_request(struct fabric_qp *qp)
{
    if (qp->tail == qp->done || !fabric_find_peer(qp))
        return false;
    const struct fabric_request *r = &qp->requests[qp->tail++ & (qp->room - 1)];
    if (r->wr.send_flags & IBV_SEND_SIGNALED)
        fabric_add_completion(qp->base.send_cq,
                              (struct ibv_wc){.wr_id = r->wr.wr_id, .qp_num = qp->base.qp_num});
    return true;
}

/* Fails the oldest request as after too many retries. `anyway`: even if the peer can be reached. */
static inline bool fabric_fail_request(struct fabric_qp *qp, bool anyway)
{
    if (!fabric_is_connected_type(qp) || qp->base.state != IBV_QPS_RTS || qp->tail == qp->head ||
        (!anyway && fabric_find_peer(qp)))
        return false;
    fabric_qp_fail(qp, IBV_WC_RETRY_EXC_ERR);
    return true;
}

/* Delivers a datagram, or loses it if its port cannot be reached. `again`: retain the datagram for
 * another delivery. */
static inline void fabric_deliver_datagram(struct fabric_datagram *d, bool again)
{
    struct fabric_adapter *a = fabric_find_adapter(d->lid);
    struct fabric_qp *qp = fabric_can_reach(d->from, a) ? fabric_find_qp(d->qpn, a) : NULL;
    if (qp && qp->own.tail != qp->own.head) {
        const struct fabric_receive *into = &qp->own.entries[qp->own.tail++ & (qp->own.room - 1)];
        memcpy(into->at + FABRIC_GRH, d->data, d->length);
        fabric_add_completion(qp->base.recv_cq, (struct ibv_wc){.wr_id = into->id,
                                                                .opcode = IBV_WC_RECV,
                                                                .byte_len = FABRIC_GRH + d->length,
                                                                .qp_num = qp->base.qp_num});
    }
    if (again)
        return;
    list_remove(&d->link);
    free(d);
}

/* ---- creating and destroying the fabric ---- */

static inline void fabric_open(bool one_network)
{
    fabric = (struct fabric){.last_qp_number = 1000};
    list_init(&fabric.qps);
    list_init(&fabric.srqs);
    list_init(&fabric.datagrams);
    for (int n = 0; n < FABRIC_NODES; n++)
        for (int p = 0; p < FABRIC_PORTS; p++) {
            struct fabric_adapter *a = &fabric.adapters[n][p];
            a->up = true;
            a->lid = (uint16_t)(1 + n * FABRIC_PORTS + p);
            a->subnet = one_network ? 1 : (uint64_t)p + 1;
            struct ibv_context *c = &a->extended.context;
            a->pd.context = c;
            c->abi_compat = __VERBS_ABI_IS_EXTENDED;
            c->ops = (struct ibv_context_ops){.poll_cq = fabric_poll_cq,
                                              .req_notify_cq = fabric_ignore_notify,
                                              .post_send = fabric_post_send,
                                              .post_recv = fabric_post_recv,
                                              .post_srq_recv = fabric_post_srq};
            a->extended.sz = sizeof(a->extended);
            a->extended.open_xrcd = fabric_xrcd_open;
            a->extended.close_xrcd = fabric_xrcd_close;
            a->extended.create_srq_ex = fabric_srq_create_ex;
            a->extended.create_qp_ex = fabric_qp_create_ex;
            a->extended.get_srq_num = fabric_srq_number;
        }
}

static inline void fabric_close(void)
{
    while (!list_empty(&fabric.datagrams)) {
        struct fabric_datagram *d = list_entry(fabric.datagrams.next, struct fabric_datagram, link);
        list_remove(&d->link);
        free(d);
    }
    for (uint32_t i = 0; i < fabric.nmrs; i++)
        free(fabric.mrs[i]);
    free(fabric.mrs);
}

#endif

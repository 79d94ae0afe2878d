/* qp.c: the queue pairs of identifiers and their states, and completion queues and shared receive queues
 * for programs that do not pass any.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void qp_ah_attr(const struct cm_id *p, struct ibv_ah_attr *out)
{
    *out = (struct ibv_ah_attr){.port_num = (uint8_t)p->here.port};
    if (!p->here.ethernet) {
        out->dlid = p->there.lid;
        return;
    }
    out->is_global = 1;
    out->grh.sgid_index = (uint8_t)p->here.gid_index;
    out->grh.hop_limit = 64;
    out->grh.traffic_class = p->tos;
    memcpy(out->grh.dgid.raw, p->there.gid, sizeof(p->there.gid));
}

static int default_access(const struct cm_id *p)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return p->device->attr.atomic_cap == IBV_ATOMIC_NONE ? access : access | IBV_ACCESS_REMOTE_ATOMIC;
}

static int fill_init_attr(const struct cm_id *p, enum ibv_qp_type type, struct ibv_qp_attr *a)
{
    a->qp_state = IBV_QPS_INIT;
    a->port_num = (uint8_t)p->here.port;
    if (type == IBV_QPT_UD) {
        a->qkey = p->qkey;
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    }
    a->qp_access_flags = (unsigned)default_access(p);
    return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static uint8_t min_u8(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

/* RDMA READs that this end executes at a time: its limit or, after a reply, the minimum of both ends. */
static uint8_t responder_read_depth(const struct cm_id *p)
{
    return p->peer.type == MESSAGE_REPLY ? min_u8(p->peer.initiator_depth, p->param.responder_resources)
                                         : p->param.responder_resources;
}

static uint8_t initiator_read_depth(const struct cm_id *p)
{
    return p->peer.type == MESSAGE_REPLY ? min_u8(p->peer.responder_resources, p->param.initiator_depth)
                                         : p->param.initiator_depth;
}

static int fill_rtr_attr(const struct cm_id *p, enum ibv_qp_type type, struct ibv_qp_attr *a)
{
    struct ibv_port_attr port = {.active_mtu = IBV_MTU_256};
    a->qp_state = IBV_QPS_RTR;
    if (type == IBV_QPT_UD)
        return IBV_QP_STATE;
    ibv_query_port(p->device->verbs, (uint8_t)p->here.port, &port);
    qp_ah_attr(p, &a->ah_attr);
    a->path_mtu = p->peer.mtu < port.active_mtu ? p->peer.mtu : port.active_mtu;
    a->dest_qp_num = p->peer.qp_num;
    a->rq_psn = p->peer.psn;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (type != IBV_QPT_RC && type != IBV_QPT_XRC_RECV)
        return mask;
    a->max_dest_rd_atomic = responder_read_depth(p);
    a->min_rnr_timer = 0; /* 655 ms, as in rdma_connect(3) */
    return mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int fill_rts_attr(const struct cm_id *p, enum ibv_qp_type type, struct ibv_qp_attr *a)
{
    a->qp_state = IBV_QPS_RTS;
    a->sq_psn = p->psn;
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (type == IBV_QPT_UD || type == IBV_QPT_UC)
        return mask;
    a->timeout = p->ack_timeout;
    if (type == IBV_QPT_XRC_RECV)
        return mask | IBV_QP_TIMEOUT;
    a->retry_cnt = p->param.retry_count & 7;
    a->rnr_retry = p->peer.rnr_retry_count & 7;
    a->max_rd_atomic = initiator_read_depth(p);
    return mask | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

static int qp_modify_state(struct cm_id *p, enum ibv_qp_state to)
{
    struct ibv_qp_attr a = {0};
    const enum ibv_qp_type type = p->id.qp->qp_type;
    int mask = to == IBV_QPS_INIT  ? fill_init_attr(p, type, &a)
               : to == IBV_QPS_RTR ? fill_rtr_attr(p, type, &a)
                                   : fill_rts_attr(p, type, &a);
    return ibv_modify_qp(p->id.qp, &a, mask);
}

int qp_move_to_ready_to_send(struct cm_id *p)
{
    int error = qp_modify_state(p, IBV_QPS_RTR);
    return error ? error : qp_modify_state(p, IBV_QPS_RTS);
}

void qp_to_error(struct cm_id *p)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    if (p->id.qp)
        ibv_modify_qp(p->id.qp, &a, IBV_QP_STATE);
}

SOFTIB_API int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
    struct cm_id *p = CM_OF(id);
    const enum ibv_qp_state to = qp_attr->qp_state;
    pthread_mutex_lock(&cm_lock);
    bool known = p->device && (to == IBV_QPS_INIT || ((to == IBV_QPS_RTR || to == IBV_QPS_RTS) &&
                                                      (p->peer.type || id_is_datagram(p))));
    if (known) {
        memset(qp_attr, 0, sizeof(*qp_attr));
        *qp_attr_mask = to == IBV_QPS_INIT  ? fill_init_attr(p, id->qp_type, qp_attr)
                        : to == IBV_QPS_RTR ? fill_rtr_attr(p, id->qp_type, qp_attr)
                                            : fill_rts_attr(p, id->qp_type, qp_attr);
    }
    pthread_mutex_unlock(&cm_lock);
    return known ? 0 : cm_return_error(EINVAL);
}

static struct ibv_cq *make_cq(struct cm_id *p, uint32_t entries, struct ibv_comp_channel **channel)
{
    *channel = ibv_create_comp_channel(p->id.verbs);
    if (!*channel)
        return NULL;
    struct ibv_cq *cq = ibv_create_cq(p->id.verbs, entries ? (int)entries : 1, p, *channel, 0);
    if (!cq) {
        ibv_destroy_comp_channel(*channel);
        *channel = NULL;
    }
    return cq;
}

static void destroy_own_cq(struct ibv_cq **cq, struct ibv_comp_channel **channel, bool *own)
{
    if (!*own)
        return;
    ibv_destroy_cq(*cq);
    ibv_destroy_comp_channel(*channel);
    *cq = NULL;
    *channel = NULL;
    *own = false;
}

static void destroy_own_qp_cqs(struct cm_id *p)
{
    destroy_own_cq(&p->id.send_cq, &p->id.send_cq_channel, &p->own_send_cq);
    destroy_own_cq(&p->id.recv_cq, &p->id.recv_cq_channel, &p->own_recv_cq);
}

static int create_missing_cqs(struct cm_id *p, struct ibv_qp_init_attr_ex *a)
{
    const bool sends = a->qp_type != IBV_QPT_XRC_RECV, receives = sends && a->qp_type != IBV_QPT_XRC_SEND;
    if (sends && !a->send_cq) {
        a->send_cq = p->id.send_cq = make_cq(p, a->cap.max_send_wr, &p->id.send_cq_channel);
        p->own_send_cq = a->send_cq;
        if (!a->send_cq)
            return errno;
    }
    if (receives && !a->recv_cq) {
        a->recv_cq = p->id.recv_cq = make_cq(p, a->cap.max_recv_wr, &p->id.recv_cq_channel);
        p->own_recv_cq = a->recv_cq;
        if (!a->recv_cq)
            return errno;
    }
    return 0;
}

/* Creates the protection domain and the queues that the program did not pass. */
static int qp_complete_attr(struct cm_id *p, struct ibv_qp_init_attr_ex *a)
{
    if (a->qp_type == IBV_QPT_XRC_RECV) {
        if (!(a->comp_mask & IBV_QP_INIT_ATTR_XRCD))
            a->xrcd = device_xrcd(p->device);
        a->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
        return a->xrcd ? 0 : errno;
    }
    if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd)
        a->pd = p->id.pd;
    a->comp_mask |= IBV_QP_INIT_ATTR_PD;
    if (a->pd->context != p->id.verbs)
        return EINVAL;
    if (!a->srq && a->qp_type != IBV_QPT_XRC_SEND)
        a->srq = p->id.srq;
    return 0;
}

static int make_qp(struct cm_id *p, struct ibv_qp_init_attr_ex *a)
{
    int error = !p->device || p->id.qp ? EINVAL : qp_complete_attr(p, a);
    if (!error)
        error = create_missing_cqs(p, a);
    if (error)
        return error;
    struct ibv_qp *qp = ibv_create_qp_ex(p->id.verbs, a);
    if (!qp)
        return errno;
    p->id.qp = qp;
    error = qp_modify_state(p, IBV_QPS_INIT);
    if (!error && qp->qp_type == IBV_QPT_UD) /* a UD QP needs no connection */
        error = qp_move_to_ready_to_send(p);
    if (error) {
        p->id.qp = NULL;
        ibv_destroy_qp(qp);
        return error;
    }
    if (qp->pd)
        p->id.pd = qp->pd;
    p->qp_num = qp->qp_num;
    return 0;
}

SOFTIB_API int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    struct cm_id *p = CM_OF(id);
    struct ibv_qp_init_attr_ex a = *attr;
    pthread_mutex_lock(&cm_lock);
    bool had_qp = id->qp;
    int error = make_qp(p, &a);
    if (error && !had_qp)
        destroy_own_qp_cqs(p);
    pthread_mutex_unlock(&cm_lock);
    if (!error)
        attr->cap = a.cap;
    return error ? cm_return_error(error) : 0;
}

SOFTIB_API int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex a = {.qp_context = attr->qp_context,
                                    .send_cq = attr->send_cq,
                                    .recv_cq = attr->recv_cq,
                                    .srq = attr->srq,
                                    .cap = attr->cap,
                                    .qp_type = attr->qp_type,
                                    .sq_sig_all = attr->sq_sig_all,
                                    .comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0,
                                    .pd = pd};
    int r = rdma_create_qp_ex(id, &a);
    if (!r)
        attr->cap = a.cap;
    return r;
}

SOFTIB_API void rdma_destroy_qp(struct rdma_cm_id *id)
{
    struct cm_id *p = CM_OF(id);
    pthread_mutex_lock(&cm_lock);
    multicast_detach_all(p);
    struct ibv_qp *qp = id->qp;
    id->qp = NULL;
    if (qp)
        ibv_destroy_qp(qp);
    destroy_own_qp_cqs(p);
    pthread_mutex_unlock(&cm_lock);
}

static int make_srq(struct cm_id *p, struct ibv_srq_init_attr_ex *a)
{
    if (!p->device || p->id.srq)
        return EINVAL;
    if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd)
        a->pd = p->id.pd;
    a->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    if (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a->srq_type == IBV_SRQT_XRC) {
        if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !a->xrcd)
            a->xrcd = device_xrcd(p->device);
        if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !a->cq) {
            a->cq = p->id.recv_cq = make_cq(p, a->attr.max_wr, &p->id.recv_cq_channel);
            p->own_srq_cq = a->cq;
        }
        a->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        if (!a->xrcd || !a->cq)
            return errno;
    }
    p->id.srq = ibv_create_srq_ex(p->id.verbs, a);
    return p->id.srq ? 0 : errno;
}

SOFTIB_API int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    struct cm_id *p = CM_OF(id);
    struct ibv_srq_init_attr_ex a = *attr;
    pthread_mutex_lock(&cm_lock);
    bool had_srq = id->srq;
    int error = make_srq(p, &a);
    if (error && !had_srq)
        destroy_own_cq(&id->recv_cq, &id->recv_cq_channel, &p->own_srq_cq);
    pthread_mutex_unlock(&cm_lock);
    if (!error)
        attr->attr = a.attr;
    return error ? cm_return_error(error) : 0;
}

SOFTIB_API int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    const bool xrc = id->qp_type == IBV_QPT_XRC_RECV;
    struct ibv_srq_init_attr_ex a = {.srq_context = attr->srq_context,
                                     .attr = attr->attr,
                                     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | (pd ? IBV_SRQ_INIT_ATTR_PD : 0),
                                     .srq_type = xrc ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
                                     .pd = pd};
    int r = rdma_create_srq_ex(id, &a);
    if (!r)
        attr->attr = a.attr;
    return r;
}

SOFTIB_API void rdma_destroy_srq(struct rdma_cm_id *id)
{
    struct cm_id *p = CM_OF(id);
    pthread_mutex_lock(&cm_lock);
    if (id->srq)
        ibv_destroy_srq(id->srq);
    id->srq = NULL;
    destroy_own_cq(&id->recv_cq, &id->recv_cq_channel, &p->own_srq_cq);
    pthread_mutex_unlock(&cm_lock);
}

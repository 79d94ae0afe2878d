/* send.c: posts send requests: checks a request, writes it to the send queue, and runs the queue.
 * Completions report errors that only an HCA can detect (keys, errors of the peer).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/send.h"
#include "verbs/verbs.h"
#include "hca/send_queue.h"
#include "hca/window.h"
#include <stdlib.h>

/* True if a type of QP supports the operation. */
static bool opcode_legal(enum ibv_qp_type t, enum ibv_wr_opcode op)
{
    static const uint32_t rc = 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM |
                               1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_RDMA_READ |
                               1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD |
                               1u << IBV_WR_SEND_WITH_INV | 1u << IBV_WR_BIND_MW | 1u << IBV_WR_LOCAL_INV;
    static const uint32_t uc = 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM |
                               1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_SEND_WITH_INV |
                               1u << IBV_WR_BIND_MW | 1u << IBV_WR_LOCAL_INV;
    static const uint32_t ud = 1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM;
    uint32_t set = t == IBV_QPT_RC || t == IBV_QPT_XRC_SEND ? rc
                   : t == IBV_QPT_UC                        ? uc
                   : t == IBV_QPT_UD                        ? ud
                                                            : 0;
    return (unsigned)op < 32 && (set >> op & 1);
}

static bool is_atomic(enum ibv_wr_opcode op)
{
    return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

void sq_begin_posting(struct qp *q)
{
    sq_lock(q);
    q->posting_in = qp_to_ibv(q)->state;
    q->tail = q->posted;
}

struct wqe *sq_begin_request(struct qp *q, int *err)
{
    unsigned state = q->posting_in;
    if (UNLIKELY(state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_ERR &&
                 state != IBV_QPS_SQE)) {
        *err = EINVAL;
        return NULL;
    }
    if (UNLIKELY(q->tail - atomic_load_explicit(&q->freed, memory_order_acquire) >= q->cap.max_send_wr)) {
        *err = ENOMEM;
        return NULL;
    }
    struct wqe *w = sq_get_wqe(q, q->tail);
    w->due = w->ack_at = 0;
    w->length = w->got = 0;
    w->nsge = w->is_inline = w->executed = w->settled = 0;
    w->flags = 0;
    w->srqn = 0;
    return w;
}

void sq_set_path(struct wqe *w, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    w->path = ((struct ah *)ah)->path;
    w->remote_qpn = qpn;
    w->remote_qkey = qkey;
}

int sq_set_sge_list(struct qp *q, struct wqe *w, const struct ibv_sge *sge, size_t n)
{
    uint64_t total = 0;
    if (n > q->cap.max_send_sge)
        return EINVAL;
    for (size_t i = 0; i < n; i++) {
        w->sge[i] = sge[i];
        total += sge[i].length;
    }
    w->nsge = (uint8_t)n;
    w->length = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
    return 0;
}

int sq_set_inline(struct qp *q, struct wqe *w, const struct ibv_data_buf *buf, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (buf[i].length > q->cap.max_inline_data - at)
            return ENOMEM;
        memcpy((char *)w->sge + at, buf[i].addr, buf[i].length);
        at += buf[i].length;
    }
    w->is_inline = 1;
    w->length = (uint32_t)at;
    return 0;
}

int sq_set_bind(struct qp *q, struct wqe *w, struct ibv_mw *mw, uint32_t rkey,
                const struct ibv_mw_bind_info *i)
{
    if (mw->pd != qp_to_ibv(q)->pd || (i->length && (!i->mr || i->mr->pd != mw->pd)))
        return EINVAL;
    w->compare = (uintptr_t)mw;
    w->rkey = rkey;
    w->raddr = i->addr;
    w->swap = i->length;
    w->imm = i->mw_access_flags;
    w->remote_qkey = i->length ? i->mr->lkey : 0;
    return 0;
}

/* Checks the complete request. As with an HCA, a message that is too long completes with an error. */
int sq_commit_request(struct qp *q, struct wqe *w)
{
    enum ibv_wr_opcode op = w->opcode;
    if (UNLIKELY(!opcode_legal(qp_to_ibv(q)->qp_type, op)))
        return EINVAL;
    if (UNLIKELY(w->is_inline && (op == IBV_WR_RDMA_READ || is_atomic(op))))
        return EINVAL;
    if (UNLIKELY(is_atomic(op) &&
                 (w->length != 8 || !ctx_has_feature(ctx_from_ibv(qp_to_ibv(q)->context), FEATURE_ATOMICS))))
        return EINVAL;
    if (UNLIKELY((op == IBV_WR_RDMA_READ || is_atomic(op)) && !q->attr.max_rd_atomic))
        return EINVAL;
    if (UNLIKELY(w->length > MAX_MSG))
        return EINVAL;
    if (UNLIKELY(proc.fab.paced && q->posting_in == IBV_QPS_RTS))
        q->wire->reserve(q, w);
    q->tail++;
    return 0;
}

static int send_wqe_from_wr(struct qp *q, const struct ibv_send_wr *wr)
{
    int err = 0;
    struct wqe *w = sq_begin_request(q, &err);
    if (!w)
        return err;
    w->wr_id = wr->wr_id;
    w->opcode = (uint8_t)((unsigned)wr->opcode < 32 ? wr->opcode : 31);
    w->flags = (uint8_t)wr->send_flags;
    w->imm = wr->imm_data;
    if (qp_to_ibv(q)->qp_type == IBV_QPT_UD) {
        if (!wr->wr.ud.ah)
            return EINVAL;
        sq_set_path(w, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
    } else if (is_atomic(wr->opcode)) {
        w->raddr = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        w->compare = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
    } else {
        w->raddr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
    }
    if (UNLIKELY(qp_to_ibv(q)->qp_type == IBV_QPT_XRC_SEND))
        w->srqn = wr->qp_type.xrc.remote_srqn;
    if (UNLIKELY(wr->opcode == IBV_WR_BIND_MW)) {
        const struct ibv_mw *mw = wr->bind_mw.mw;
        if (!mw || mw->type != IBV_MW_TYPE_2)
            return EINVAL;
        err = sq_set_bind(q, w, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
    }
    if (err || UNLIKELY(is_window_request(w->opcode)))
        return err ? err : sq_commit_request(q, w);
    if (wr->num_sge < 0)
        return EINVAL;
    if (wr->send_flags & IBV_SEND_INLINE) {
        for (int i = 0; i < wr->num_sge && !err; i++) {
            size_t n = wr->sg_list[i].length;
            if (n > q->cap.max_inline_data - w->length)
                return ENOMEM;
            memcpy((char *)w->sge + w->length, (void *)(uintptr_t)wr->sg_list[i].addr, n);
            w->length += (uint32_t)n;
        }
        w->is_inline = 1;
    } else if ((err = sq_set_sge_list(q, w, wr->sg_list, (size_t)wr->num_sge))) {
        return err;
    }
    return sq_commit_request(q, w);
}

void sq_end_posting(struct qp *q)
{
    unsigned state = qp_to_ibv(q)->state;
    q->posted = q->tail;
    if (UNLIKELY(state == IBV_QPS_ERR || state == IBV_QPS_SQE))
        sq_flush(q);
    else if (state == IBV_QPS_RTS)
        q->wire->progress(q, 0);
    sq_unlock(q);
}

int qp_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct qp *q = qp_from_ibv(ibv);
    int r = 0;
    sq_begin_posting(q);
    for (; wr; wr = wr->next)
        if (UNLIKELY((r = send_wqe_from_wr(q, wr)))) {
            *bad = wr;
            break;
        }
    sq_end_posting(q);
    return r;
}

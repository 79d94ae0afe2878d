/* wr_ex.c: the ibv_wr_* calls. A batch is built between wr_start and wr_complete, which posts it. If a
 * call in between has failed, wr_complete returns its error and posts nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/send.h"
#include "hca/send_queue.h"
#include "verbs/verbs.h"

static struct qp *wr_ex_qp(struct ibv_qp_ex *e)
{
    return CONTAINER_OF(e, struct qp, ex);
}

/* Completes the open request, when the next one begins or the batch ends. No setter can be called for it
 * afterwards. */
static void commit_open_request(struct qp *q)
{
    if (q->build_wqe && !q->build_err)
        q->build_err = sq_commit_request(q, q->build_wqe);
    q->build_wqe = NULL;
}

static struct wqe *wr_ex_begin(struct ibv_qp_ex *e, enum ibv_wr_opcode op)
{
    struct qp *q = wr_ex_qp(e);
    commit_open_request(q);
    if (q->build_err)
        return NULL;
    struct wqe *w = sq_begin_request(q, &q->build_err);
    if (!w)
        return NULL;
    w->wr_id = e->wr_id;
    w->flags = (uint8_t)e->wr_flags;
    w->opcode = (uint8_t)op;
    w->imm = 0;
    w->path = (struct path){0};
    q->build_wqe = w;
    return w;
}

static void wr_ex_start(struct ibv_qp_ex *e)
{
    struct qp *q = wr_ex_qp(e);
    sq_begin_posting(q);
    atomic_store_explicit(&q->builder, thread_unique_mark(), memory_order_relaxed);
    sq_unlock_wire(q); /* unlocked until the batch ends: the program may call other verbs in between */
    q->build_err = 0;
    q->build_wqe = NULL;
}

static int wr_ex_complete(struct ibv_qp_ex *e)
{
    struct qp *q = wr_ex_qp(e);
    commit_open_request(q);
    int r = q->build_err;
    sq_lock_wire(q);
    if (r)
        q->tail = q->posted;
    atomic_store_explicit(&q->builder, NULL, memory_order_relaxed);
    sq_end_posting(q);
    return r;
}

static void wr_ex_discard(struct ibv_qp_ex *e)
{
    struct qp *q = wr_ex_qp(e);
    q->build_wqe = NULL;
    sq_lock_wire(q);
    q->tail = q->posted;
    atomic_store_explicit(&q->builder, NULL, memory_order_relaxed);
    sq_end_posting(q);
}

static void wr_ex_set_remote(struct wqe *w, uint32_t rkey, uint64_t addr)
{
    if (!w)
        return;
    w->rkey = rkey;
    w->raddr = addr;
}

static void wr_send(struct ibv_qp_ex *e)
{
    wr_ex_begin(e, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *e, __be32 imm)
{
    struct wqe *w = wr_ex_begin(e, IBV_WR_SEND_WITH_IMM);
    if (w)
        w->imm = imm;
}

static void wr_send_inv(struct ibv_qp_ex *e, uint32_t rkey)
{
    struct wqe *w = wr_ex_begin(e, IBV_WR_SEND_WITH_INV);
    if (w)
        w->imm = rkey;
}

static void wr_write(struct ibv_qp_ex *e, uint32_t rkey, uint64_t addr)
{
    wr_ex_set_remote(wr_ex_begin(e, IBV_WR_RDMA_WRITE), rkey, addr);
}

static void wr_write_imm(struct ibv_qp_ex *e, uint32_t rkey, uint64_t addr, __be32 imm)
{
    struct wqe *w = wr_ex_begin(e, IBV_WR_RDMA_WRITE_WITH_IMM);
    wr_ex_set_remote(w, rkey, addr);
    if (w)
        w->imm = imm;
}

static void wr_read(struct ibv_qp_ex *e, uint32_t rkey, uint64_t addr)
{
    wr_ex_set_remote(wr_ex_begin(e, IBV_WR_RDMA_READ), rkey, addr);
}

static void wr_cas(struct ibv_qp_ex *e, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
    struct wqe *w = wr_ex_begin(e, IBV_WR_ATOMIC_CMP_AND_SWP);
    wr_ex_set_remote(w, rkey, addr);
    if (w) {
        w->compare = compare;
        w->swap = swap;
    }
}

static void wr_fadd(struct ibv_qp_ex *e, uint32_t rkey, uint64_t addr, uint64_t add)
{
    struct wqe *w = wr_ex_begin(e, IBV_WR_ATOMIC_FETCH_AND_ADD);
    wr_ex_set_remote(w, rkey, addr);
    if (w)
        w->compare = add;
}

static void set_ud(struct ibv_qp_ex *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    if (wr_ex_qp(e)->build_wqe)
        sq_set_path(wr_ex_qp(e)->build_wqe, ah, qpn, qkey);
}

static void wr_ex_record_error(struct qp *q, int err)
{
    if (err && !q->build_err)
        q->build_err = err;
}

static void set_inline_list(struct ibv_qp_ex *e, size_t n, const struct ibv_data_buf *buf)
{
    struct qp *q = wr_ex_qp(e);
    if (q->build_wqe)
        wr_ex_record_error(q, sq_set_inline(q, q->build_wqe, buf, n));
}

static void set_inline(struct ibv_qp_ex *e, void *addr, size_t length)
{
    struct ibv_data_buf b = {addr, length};
    set_inline_list(e, 1, &b);
}

static void set_sge_list(struct ibv_qp_ex *e, size_t n, const struct ibv_sge *sge)
{
    struct qp *q = wr_ex_qp(e);
    if (q->build_wqe)
        wr_ex_record_error(q, sq_set_sge_list(q, q->build_wqe, sge, n));
}

static void set_sge(struct ibv_qp_ex *e, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge s = {addr, length, lkey};
    set_sge_list(e, 1, &s);
}

static void wr_ex_unsupported(struct qp *q)
{
    commit_open_request(q);
    wr_ex_record_error(q, EOPNOTSUPP);
}

static void wr_local_inv(struct ibv_qp_ex *e, uint32_t rkey)
{
    struct wqe *w = wr_ex_begin(e, IBV_WR_LOCAL_INV);
    if (w)
        w->imm = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *e, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *i)
{
    struct qp *q = wr_ex_qp(e);
    struct wqe *w = wr_ex_begin(e, IBV_WR_BIND_MW);
    if (w)
        wr_ex_record_error(q, mw->type == IBV_MW_TYPE_2 ? sq_set_bind(q, w, mw, rkey, i) : EINVAL);
}

static void wr_tso(struct ibv_qp_ex *e, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
    (void)hdr, (void)hdr_sz, (void)mss;
    wr_ex_unsupported(wr_ex_qp(e));
}

static void set_xrc(struct ibv_qp_ex *e, uint32_t srqn)
{
    if (wr_ex_qp(e)->build_wqe)
        wr_ex_qp(e)->build_wqe->srqn = srqn;
}

void qp_bind_wr_ops(struct qp *q)
{
    struct ibv_qp_ex *e = &q->ex;
    e->wr_start = wr_ex_start;
    e->wr_complete = wr_ex_complete;
    e->wr_abort = wr_ex_discard;
    e->wr_send = wr_send;
    e->wr_send_imm = wr_send_imm;
    e->wr_send_inv = wr_send_inv;
    e->wr_rdma_write = wr_write;
    e->wr_rdma_write_imm = wr_write_imm;
    e->wr_rdma_read = wr_read;
    e->wr_atomic_cmp_swp = wr_cas;
    e->wr_atomic_fetch_add = wr_fadd;
    e->wr_local_inv = wr_local_inv;
    e->wr_bind_mw = wr_bind_mw;
    e->wr_send_tso = wr_tso;
    e->wr_set_ud_addr = set_ud;
    e->wr_set_xrc_srqn = set_xrc;
    e->wr_set_inline_data = set_inline;
    e->wr_set_inline_data_list = set_inline_list;
    e->wr_set_sge = set_sge;
    e->wr_set_sge_list = set_sge_list;
}

/* send_queue.c: completes, repeats and fails requests of a send queue.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/migrate.h"

uint64_t rnr_timer_ns(unsigned code)
{
    /* RNR timer values: table 45 of the InfiniBand architecture, in units of 10 us. */
    static const uint32_t t[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                   48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                   2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return t[code & 31] * 10 * NS_US;
}

uint64_t ack_timeout_ns(unsigned code)
{
    return code ? 4096ull << (code & 31) : 0;
}

int sq_fill_iov(struct qp *q, struct wqe *w, uint32_t need, struct iovec *iov)
{
    int n = 0;
    if (w->is_inline) {
        iov[0] = (struct iovec){w->sge, w->length};
        return 1;
    }
    for (int i = 0; i < w->nsge; i++) {
        char *at;
        if (!w->sge[i].length)
            continue;
        if (UNLIKELY(!mr_resolve_local(w->sge[i].lkey, pd_key(qp_to_ibv(q)->pd), w->sge[i].addr,
                                       w->sge[i].length, need, &at)))
            return -1;
        iov[n++] = (struct iovec){at, w->sge[i].length};
    }
    return n;
}

void sq_fill_request(struct qp *q, const struct wqe *w, struct request *r)
{
    r->opcode = w->opcode;
    r->solicited = w->flags & IBV_SEND_SOLICITED;
    r->has_grh = q->path.is_global;
    r->roce_v2 = q->path.gid_type == GID_ROCE_V2;
    r->arming = migrate_is_arming(q);
    r->type = (uint8_t)type_of_peer(qp_to_ibv(q)->qp_type);
    r->srqn = w->srqn;
    r->sl = q->path.sl;
    r->length = w->length;
    r->imm = w->imm;
    r->rkey = w->rkey;
    r->raddr = w->raddr;
    r->src_qpn = qp_to_ibv(q)->qp_num;
    r->slid = (uint16_t)(fabric_port_lid(&proc.fab, q->linear) + q->path.src_path_bits);
    r->dlid = q->path.dlid;
}

static enum ibv_wc_opcode completion_opcode(uint8_t opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    case IBV_WR_BIND_MW:
        return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
        return IBV_WC_LOCAL_INV;
    default:
        return IBV_WC_SEND;
    }
}

void sq_complete(struct qp *q, struct wqe *w, uint64_t index, enum ibv_wc_status st)
{
    if (st == IBV_WC_SUCCESS && !(w->flags & IBV_SEND_SIGNALED) && !q->sig_all)
        return;
    struct cq *cq = cq_from_ibv(qp_to_ibv(q)->send_cq);
    struct sh_cqe e = {
        .wr_id = w->wr_id,
        .status = st,
        .opcode = completion_opcode(w->opcode),
        .byte_len = w->length,
        .qp_num = qp_to_ibv(q)->qp_num,
        .sq_end = (uint32_t)(index + 1),
        .is_send = 1,
    };
    if (atomic_load_explicit(&cq->sh->stamped, memory_order_relaxed))
        e.stamp = now_ns();
    cq_push(proc.self, cq->idx, &e);
}

/* Flushes every request after the failed one, signalled or not. */
void sq_flush(struct qp *q)
{
    for (; q->done != q->posted; q->done++)
        sq_complete(q, sq_get_wqe(q, q->done), q->done, IBV_WC_WR_FLUSH_ERR);
    q->next = q->done;
    q->wait_until = 0;
}

void sq_run_task(struct task *t)
{
    struct qp *q = CONTAINER_OF(t, struct qp, task);
    sq_lock(q);
    q->wire->progress(q, now_ns());
    sq_unlock(q);
}

/* t_rc_errors.c: errors on a reliable connection and how they are reported: bad keys, bounds, rights,
 * lengths, local keys, no receive, a peer that is gone. Each case on a fresh QP; the failed QP flushes and
 * reports the error state.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static enum ibv_qp_state state_of(struct vt_qp *q)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    CHECK(!ibv_query_qp(q->qp, &a, IBV_QP_STATE, &i));
    return a.qp_state;
}

static void expect_flush(struct vt *t, struct vt_qp *q)
{
    CHECK(state_of(q) == IBV_QPS_ERR);
    CHECK(!vt_post(q, t, IBV_WR_SEND, 77, 0, 8, 0, 0));
    CHECK(vt_wc(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 77, "unsignalled requests are flushed too");
}

/* side 1 does one RDMA that must be refused with `want`. */
static void test_refused(struct vt *t, enum ibv_wr_opcode op, uint32_t rkey_xor, size_t roff, uint32_t len,
                         int access, enum ibv_wc_status want)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.access = access;
    vt_qp_make(t, o, &q);
    if (t->side == 1) {
        q.peer.rkey ^= rkey_xor;
        CHECK(!vt_post(&q, t, op, 1, 0, len, roff, IBV_SEND_SIGNALED));
        CHECK(!vt_post(&q, t, op, 2, 0, len, roff, 0));
        CHECK(vt_wc(t->cq, want).wr_id == 1);
        CHECK(vt_wc(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 2);
        expect_flush(t, &q);
    }
    vt_sync(t);
    vt_qp_end(&q);
    vt_sync(t);
}

static void local_key(struct vt *t)
{
    struct vt_qp q;
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey ^ 0x100};
        struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .wr_id = 4}, *bad;
        CHECK(!ibv_post_send(q.qp, &wr, &bad));
        vt_wc(t->cq, t->rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR);
        expect_flush(t, &q);
    }
    vt_sync(t);
    vt_qp_end(&q);
    vt_sync(t);
}

static void too_long(struct vt *t)
{
    struct vt_qp q;
    vt_qp_init(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 0) {
        vt_recv(&q, t, 1, 0, 10);
        vt_recv(&q, t, 2, 0, 10);
    }
    vt_qp_connect(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 0) {
        CHECK(vt_wc(t->cq, t->rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR).wr_id == 1);
        CHECK(vt_wc(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 2);
    } else {
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 1, 0, 11, 0, IBV_SEND_SIGNALED));
        vt_wc(t->cq, t->rxe ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR);
    }
    vt_sync(t);
    vt_qp_end(&q);
    vt_sync(t);
}

static void not_ready(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.rnr_retry = 2;
    o.rnr_timer = 4;
    vt_qp_make(t, o, &q);
    if (t->side == 1) {
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_RNR_RETRY_EXC_ERR);
        expect_flush(t, &q);
    }
    vt_sync(t);
    vt_qp_end(&q);
    vt_sync(t);
}

/* Retries go on for ever with 7, while the sender sleeps on its channel: it never calls in. */
static void test_patience(struct vt *t)
{
    struct vt_qp q;
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        struct ibv_cq *cq;
        void *user;
        vt_fill(t->buf, 5000, 6);
        CHECK(!ibv_req_notify_cq(t->cq, 0));
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 1, 0, 5000, 0, IBV_SEND_SIGNALED));
        vt_sync(t);
        CHECK(!ibv_get_cq_event(t->ch, &cq, &user) && cq == t->cq && user == t);
        ibv_ack_cq_events(cq, 1);
        vt_wc(t->cq, IBV_WC_SUCCESS);
    } else {
        vt_sync(t);
        CHECK(vt_quiet(t->cq, 20));
        vt_recv(&q, t, 1, 0, 8192);
        CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).byte_len == 5000);
        vt_expect(t->buf, 5000, 6, "after RNR");
    }
    vt_sync(t);
    vt_qp_end(&q);
    vt_sync(t);
}

/* The peer's QP vanishes; later requests time out. */
static void rc_errors_of_gone_peer(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 10;
    o.retry = 3;
    vt_qp_make(t, o, &q);
    if (t->side == 0)
        vt_qp_end(&q);
    vt_sync(t);
    if (t->side == 1) {
        CHECK(!vt_post(&q, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_RETRY_EXC_ERR);
        expect_flush(t, &q);
        vt_qp_end(&q);
    }
    vt_sync(t);
}

static void rc_errors_run_test(struct vt *t)
{
    int no_write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    test_refused(t, IBV_WR_RDMA_WRITE, 0x100, 0, 8, ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
    test_refused(t, IBV_WR_RDMA_WRITE, 0, BUF_BYTES - 4, 8, ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
    test_refused(t, IBV_WR_RDMA_WRITE, 0, 0, 8, no_write, IBV_WC_REM_INV_REQ_ERR);
    test_refused(t, IBV_WR_RDMA_READ, 0x100, 0, 8, ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
    test_refused(t, IBV_WR_RDMA_READ, 0, BUF_BYTES - 4, 8, ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
    local_key(t);
    too_long(t);
    not_ready(t);
    test_patience(t);
    rc_errors_of_gone_peer(t);
}

int main(void)
{
    return vt_run(rc_errors_run_test);
}

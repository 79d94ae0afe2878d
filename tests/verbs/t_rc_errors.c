/* t_rc_errors.c: errors of reliable connections and their reports: wrong keys, bounds, rights, lengths and
 * local keys, no receive, a destroyed peer QP. Each case uses a new QP; the failed QP flushes its requests
 * and reports the error state.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static enum ibv_qp_state query_state(struct vt_qp *q)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    CHECK(!ibv_query_qp(q->qp, &a, IBV_QP_STATE, &i));
    return a.qp_state;
}

static void expect_flush(struct vt *t, struct vt_qp *q)
{
    CHECK(query_state(q) == IBV_QPS_ERR);
    CHECK(!vt_post_request(q, t, IBV_WR_SEND, 77, 0, 8, 0, 0));
    CHECK(vt_expect_completion(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 77,
          "unsignalled requests are flushed too");
}

/* Side 1 posts an RDMA request that must fail with status `want`. */
static void test_refused(struct vt *t, enum ibv_wr_opcode op, uint32_t rkey_xor, size_t roff, uint32_t len,
                         int access, enum ibv_wc_status want)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.access = access;
    vt_qp_open(t, o, &q);
    if (t->side == 1) {
        q.peer.rkey ^= rkey_xor;
        CHECK(!vt_post_request(&q, t, op, 1, 0, len, roff, IBV_SEND_SIGNALED));
        CHECK(!vt_post_request(&q, t, op, 2, 0, len, roff, 0));
        CHECK(vt_expect_completion(t->cq, want).wr_id == 1);
        CHECK(vt_expect_completion(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 2);
        expect_flush(t, &q);
    }
    vt_sync(t);
    vt_qp_close(&q);
    vt_sync(t);
}

static void test_local_key(struct vt *t)
{
    struct vt_qp q;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey ^ 0x100};
        struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .wr_id = 4}, *bad;
        CHECK(!ibv_post_send(q.qp, &wr, &bad));
        vt_expect_completion(t->cq, t->rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR);
        expect_flush(t, &q);
    }
    vt_sync(t);
    vt_qp_close(&q);
    vt_sync(t);
}

static void test_message_too_long(struct vt *t)
{
    struct vt_qp q;
    vt_qp_create(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 0) {
        vt_post_receive(&q, t, 1, 0, 10);
        vt_post_receive(&q, t, 2, 0, 10);
    }
    vt_qp_connect(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 0) {
        CHECK(vt_expect_completion(t->cq, t->rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR).wr_id == 1);
        CHECK(vt_expect_completion(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 2);
    } else {
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 1, 0, 11, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, t->rxe ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR);
    }
    vt_sync(t);
    vt_qp_close(&q);
    vt_sync(t);
}

static void test_receiver_not_ready(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.rnr_retry = 2;
    o.rnr_timer = 4;
    vt_qp_open(t, o, &q);
    if (t->side == 1) {
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_RNR_RETRY_EXC_ERR);
        expect_flush(t, &q);
    }
    vt_sync(t);
    vt_qp_close(&q);
    vt_sync(t);
}

/* With rnr_retry 7 retries continue without limit, while the sender sleeps on its channel and calls no
 * verbs. */
static void test_unlimited_rnr_retries(struct vt *t)
{
    struct vt_qp q;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        struct ibv_cq *cq;
        void *user;
        vt_fill(t->buf, 5000, 6);
        CHECK(!ibv_req_notify_cq(t->cq, 0));
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 1, 0, 5000, 0, IBV_SEND_SIGNALED));
        vt_sync(t);
        CHECK(!ibv_get_cq_event(t->ch, &cq, &user) && cq == t->cq && user == t);
        ibv_ack_cq_events(cq, 1);
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    } else {
        vt_sync(t);
        CHECK(vt_has_no_completion(t->cq, 20));
        vt_post_receive(&q, t, 1, 0, 8192);
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).byte_len == 5000);
        vt_expect_bytes(t->buf, 5000, 6, "after RNR");
    }
    vt_sync(t);
    vt_qp_close(&q);
    vt_sync(t);
}

/* The peer destroys its QP; later requests time out. */
static void test_destroyed_peer_qp(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 10;
    o.retry = 3;
    vt_qp_open(t, o, &q);
    if (t->side == 0)
        vt_qp_close(&q);
    vt_sync(t);
    if (t->side == 1) {
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_RETRY_EXC_ERR);
        expect_flush(t, &q);
        vt_qp_close(&q);
    }
    vt_sync(t);
}

static void run_test(struct vt *t)
{
    int no_write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    test_refused(t, IBV_WR_RDMA_WRITE, 0x100, 0, 8, ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
    test_refused(t, IBV_WR_RDMA_WRITE, 0, BUF_BYTES - 4, 8, ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
    test_refused(t, IBV_WR_RDMA_WRITE, 0, 0, 8, no_write, IBV_WC_REM_INV_REQ_ERR);
    test_refused(t, IBV_WR_RDMA_READ, 0x100, 0, 8, ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
    test_refused(t, IBV_WR_RDMA_READ, 0, BUF_BYTES - 4, 8, ALL_ACCESS, IBV_WC_REM_ACCESS_ERR);
    test_local_key(t);
    test_message_too_long(t);
    test_receiver_not_ready(t);
    test_unlimited_rnr_retries(t);
    test_destroyed_peer_qp(t);
}

int main(void)
{
    return vt_run(run_test);
}

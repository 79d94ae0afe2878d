/* t_uc.c: unreliable connections: sends and writes with data, and the errors that the sender does not see.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>

/* RDMA READ is refused when it is posted or, by drivers that leave the check to the device, by its
 * completion. */
static void test_reads_are_refused(struct vt *t)
{
    struct vt_qp q;
    vt_qp_open(t, vt_defaults(IBV_QPT_UC), &q);
    int r = vt_post_request(&q, t, IBV_WR_RDMA_READ, 2, 0, 8, 0, 0);
    CHECK(r == EINVAL || (!r && t->rxe), "posting a READ on UC returned %d", r);
    if (!r)
        vt_expect_completion(t->cq, IBV_WC_LOC_QP_OP_ERR);
    vt_qp_close(&q);
}

/* A message to a queue pair that does not exist is lost without an error at the sender, also if there is no
 * process that could have it. */
static void test_peer_does_not_exist(struct vt *t)
{
    const uint32_t other_process = 1u << 22;
    struct vt_qp q;
    vt_qp_create(t, vt_defaults(IBV_QPT_UC), &q);
    q.me.qpn ^= other_process;
    vt_qp_connect(t, vt_defaults(IBV_QPT_UC), &q);
    for (int i = 0; i < 3; i++)
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 8, 0, 100000, 0, i == 2 ? IBV_SEND_SIGNALED : 0));
    CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == 8);
    vt_qp_close(&q);
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    vt_qp_create(t, vt_defaults(IBV_QPT_UC), &q);
    vt_post_receive(&q, t, 1, 0, 2u << 20);
    vt_qp_connect(t, vt_defaults(IBV_QPT_UC), &q);
    if (t->side == 1) {
        vt_fill(t->buf + (4u << 20), 1500000, 3);
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 1, 4u << 20, 1500000, 0, IBV_SEND_SIGNALED));
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).opcode == IBV_WC_SEND);
        vt_sync(t);
        /* No receive is posted: the message is lost without an error at the sender. */
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 3, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        vt_fill(t->buf, 700, 4);
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 4, 0, 700, 6u << 20, 0));
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE_WITH_IMM, 5, 0, 700, 6u << 20, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        vt_sync(t); /* every message has been written or lost */
        vt_sync(t); /* a receive is posted */
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE_WITH_IMM, 6, 0, 700, 6u << 20, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    } else {
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).byte_len == 1500000);
        vt_expect_bytes(t->buf, 1500000, 3, "UC send");
        vt_sync(t);
        vt_sync(t);
        CHECK(vt_has_no_completion(t->cq, 50));
        vt_post_receive(&q, t, 2, 0, 64);
        vt_sync(t);
        struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 700 && wc.wr_id == 2);
        vt_expect_bytes(t->buf + (6u << 20), 700, 4, "UC write");
    }
    vt_sync(t);
    vt_qp_close(&q);
    test_reads_are_refused(t);
    test_peer_does_not_exist(t);
}

int main(void)
{
    return vt_run(run_test);
}

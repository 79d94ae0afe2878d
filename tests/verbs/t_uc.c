/* t_uc.c: unreliable connections: sends and writes with data, and the errors they do not report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>

/* Refused when it is posted or, by a driver that leaves it to the device, by its completion. */
static void no_read(struct vt *t)
{
    struct vt_qp q;
    vt_qp_make(t, vt_defaults(IBV_QPT_UC), &q);
    int r = vt_post(&q, t, IBV_WR_RDMA_READ, 2, 0, 8, 0, 0);
    CHECK(r == EINVAL || (!r && t->rxe), "UC has no READ, and posting one gives %d", r);
    if (!r)
        vt_wc(t->cq, IBV_WC_LOC_QP_OP_ERR);
    vt_qp_end(&q);
}

static void uc_run_test(struct vt *t)
{
    struct vt_qp q;
    vt_qp_init(t, vt_defaults(IBV_QPT_UC), &q);
    vt_recv(&q, t, 1, 0, 2u << 20);
    vt_qp_connect(t, vt_defaults(IBV_QPT_UC), &q);
    if (t->side == 1) {
        vt_fill(t->buf + (4u << 20), 1500000, 3);
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 1, 4u << 20, 1500000, 0, IBV_SEND_SIGNALED));
        CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).opcode == IBV_WC_SEND);
        vt_sync(t);
        /* Nobody has posted a receive: it is lost, and this side does not know. */
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 3, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_SUCCESS);
        vt_fill(t->buf, 700, 4);
        CHECK(!vt_post(&q, t, IBV_WR_RDMA_WRITE, 4, 0, 700, 6u << 20, 0));
        CHECK(!vt_post(&q, t, IBV_WR_RDMA_WRITE_WITH_IMM, 5, 0, 700, 6u << 20, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_SUCCESS);
        vt_sync(t); /* A: both are lost or placed */
        vt_sync(t); /* B: a receive is posted */
        CHECK(!vt_post(&q, t, IBV_WR_RDMA_WRITE_WITH_IMM, 6, 0, 700, 6u << 20, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_SUCCESS);
    } else {
        CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).byte_len == 1500000);
        vt_expect(t->buf, 1500000, 3, "UC send");
        vt_sync(t);
        vt_sync(t);
        CHECK(vt_quiet(t->cq, 50));
        vt_recv(&q, t, 2, 0, 64);
        vt_sync(t);
        struct ibv_wc wc = vt_wc(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 700 && wc.wr_id == 2);
        vt_expect(t->buf + (6u << 20), 700, 4, "UC write");
    }
    vt_sync(t);
    vt_qp_end(&q);
    no_read(t);
}

int main(void)
{
    return vt_run(uc_run_test);
}

/* t_ports.c: ports and paths: every LID of a port (LMC) is a path to it and the completion says which was
 * taken; a port that goes down swallows what is sent through it and raises events; up again, it works again.
 * The tool takes it down.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <poll.h>

static void tool(const char *args)
{
    char cmd[512];
    snprintf(cmd, sizeof(cmd), "%s %s", getenv("SOFTIB_TOOL"), args);
    CHECK(system(cmd) == 0, "%s", cmd);
}

static void expect_event(struct vt *t, enum ibv_event_type want)
{
    struct ibv_async_event e;
    struct pollfd p = {.fd = t->ctx->async_fd, .events = POLLIN};
    CHECK(poll(&p, 1, 30000) == 1, "no event \"%s\"", ibv_event_type_str(want));
    CHECK(!ibv_get_async_event(t->ctx, &e) && e.event_type == want && e.element.port_num == 1, "\"%s\"",
          ibv_event_type_str(e.event_type));
    ibv_ack_async_event(&e);
}

static void post_ud(struct vt *t, struct vt_qp *q, struct ibv_ah *ah)
{
    struct ibv_sge s = {(uintptr_t)t->buf, 32, t->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = q->peer.qpn;
    wr.wr.ud.remote_qkey = 0x1111;
    CHECK(!ibv_post_send(q->qp, &wr, &bad));
    vt_wc(t->cq, IBV_WC_SUCCESS);
}

static void paths(struct vt *t, struct vt_qp *q)
{
    CHECK(t->port.lmc == 2 && t->port.lid % 4 == 0);
    for (unsigned k = 0; k < 4; k++) {
        if (t->side == 1) {
            struct ibv_ah_attr a = {
                .dlid = (uint16_t)(q->peer.lid + k), .port_num = 1, .src_path_bits = (uint8_t)(3 - k)};
            struct ibv_ah *ah = ibv_create_ah(t->pd, &a);
            CHECK(ah);
            vt_sync(t);
            post_ud(t, q, ah);
            CHECK(!ibv_destroy_ah(ah));
        } else {
            vt_recv(q, t, 1, 0, 256);
            vt_sync(t);
            struct ibv_wc wc = vt_wc(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.dlid_path_bits == k && wc.slid == q->peer.lid + 3 - k, "path %u, slid %u",
                  wc.dlid_path_bits, wc.slid);
        }
    }
    struct ibv_ah_attr a = {.dlid = q->peer.lid, .port_num = 1, .src_path_bits = 4};
    CHECK(!ibv_create_ah(t->pd, &a), "there is no fifth path");
}

static void down_and_up(struct vt *t, struct vt_qp *ud)
{
    struct vt_qp rc;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct ibv_port_attr pa;
    o.timeout = 10;
    o.retry = 2;
    vt_qp_make(t, o, &rc);
    vt_recv(ud, t, 9, 0, 256);
    vt_sync(t);
    struct ibv_ah *ah = vt_ah(t, &ud->peer);
    if (t->side == 0) {
        tool("ctl port down node0/hca0/1");
        expect_event(t, IBV_EVENT_PORT_ERR);
        CHECK(!ibv_query_port(t->ctx, 1, &pa) && pa.state == IBV_PORT_DOWN);
    }
    vt_sync(t);
    if (t->side == 1) {
        post_ud(t, ud, ah);
        CHECK(!vt_post(&rc, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_RETRY_EXC_ERR);
    }
    vt_sync(t);
    if (t->side == 0) {
        CHECK(vt_quiet(t->cq, 20), "through a port that is down");
        tool("ctl port up node0");
        expect_event(t, IBV_EVENT_PORT_ACTIVE);
    }
    vt_sync(t);
    if (t->side == 1)
        post_ud(t, ud, ah);
    else
        CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).wr_id == 9);
    CHECK(!ibv_destroy_ah(ah));
    vt_qp_end(&rc);
}

static void test(struct vt *t)
{
    struct vt_qp q;
    vt_qp_make(t, vt_defaults(IBV_QPT_UD), &q);
    paths(t, &q);
    down_and_up(t, &q);
    vt_sync(t);
    vt_qp_end(&q);
}

int main(void)
{
    return vt_run(test);
}

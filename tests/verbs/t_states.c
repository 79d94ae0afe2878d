/* t_states.c: the QP state machine and the checks of attributes, on one side: valid transitions work,
 * invalid ones are refused and change nothing. Also objects in use cannot be destroyed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>

static enum ibv_qp_state query_state(struct ibv_qp *q)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    CHECK(!ibv_query_qp(q, &a, IBV_QP_STATE, &i));
    return a.qp_state;
}

static void expect_refused(struct ibv_qp *q, struct ibv_qp_attr a, int mask, const char *what)
{
    enum ibv_qp_state before = query_state(q);
    CHECK(ibv_modify_qp(q, &a, mask) != 0, "%s was allowed", what);
    CHECK(query_state(q) == before, "%s changed the state", what);
}

static void move_to_state(struct ibv_qp *q, enum ibv_qp_state s)
{
    struct ibv_qp_attr a = {.qp_state = s};
    CHECK(!ibv_modify_qp(q, &a, IBV_QP_STATE), "cannot change to state %d", s);
    CHECK(query_state(q) == s);
}

static void run_test(struct vt *t)
{
    struct vt_qp v;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS};
    int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    vt_qp_create(t, o, &v);
    CHECK(query_state(v.qp) == IBV_QPS_INIT);
    struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
    if (!getenv("VERBS_GID")) /* some RoCE drivers accept a send in state INIT */
        CHECK(ibv_post_send(v.qp, &wr, &bad) == EINVAL && bad == &wr, "posted a send in state INIT");
    vt_post_receive(&v, t, 1, 0, 8);
    a.qp_state = IBV_QPS_RTS;
    expect_refused(v.qp, a, IBV_QP_STATE | IBV_QP_SQ_PSN, "INIT to RTS");
    a.qp_state = IBV_QPS_RTR;
    expect_refused(v.qp, a, IBV_QP_STATE, "RTR without a path");
    a.qp_state = IBV_QPS_RESET;
    move_to_state(v.qp, IBV_QPS_RESET);
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 99;
    expect_refused(v.qp, a, init, "port 99");
    a.port_num = 1;
    expect_refused(v.qp, a, IBV_QP_STATE | IBV_QP_PORT, "INIT without access flags");
    expect_refused(v.qp, a, init | IBV_QP_SQ_PSN, "an attribute that does not belong");
    CHECK(!ibv_modify_qp(v.qp, &a, init));
    vt_qp_connect(t, o, &v);
    CHECK(query_state(v.qp) == IBV_QPS_RTS);
    struct ibv_qp_attr got;
    struct ibv_qp_init_attr gi;
    CHECK(!ibv_query_qp(v.qp, &got, (IBV_QP_DEST_QPN << 1) - 1, &gi)); /* all attributes */
    CHECK(got.dest_qp_num == v.peer.qpn && got.timeout == o.timeout && got.rnr_retry == 7 &&
          got.path_mtu == IBV_MTU_1024);
    CHECK(gi.cap.max_send_wr >= 128 && gi.cap.max_inline_data >= 64 && gi.qp_type == IBV_QPT_RC);
    CHECK(ibv_destroy_cq(t->cq) == EBUSY, "destroyed a CQ in use");
    CHECK(ibv_dealloc_pd(t->pd) == EBUSY, "deallocated a PD in use");
    vt_sync(t);
    vt_post_receive(&v, t, 5, 0, 8);
    move_to_state(v.qp, IBV_QPS_ERR);
    CHECK(vt_expect_completion(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 5);
    vt_post_receive(&v, t, 6, 0, 8);
    if (!t->rxe) /* rxe in the kernel does not flush a receive posted in the error state */
        CHECK(vt_expect_completion(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 6,
              "a receive posted in the error state");
    move_to_state(v.qp, IBV_QPS_RESET);
    vt_sync(t);
    CHECK(!ibv_modify_qp(v.qp, &a, init)); /* the QP can be used again after RESET */
    vt_qp_connect(t, o, &v);
    if (t->side == 1) {
        CHECK(!vt_post_request(&v, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    }
    vt_sync(t);
    vt_qp_close(&v);
}

int main(void)
{
    return vt_run(run_test);
}

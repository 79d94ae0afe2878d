/* t_states.c: the QP state machine and the checks of attributes, on one side only: what is legal works, what
 * is not is refused and changes nothing. And objects in use are not destroyed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>

static enum ibv_qp_state state_of(struct ibv_qp *q)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    CHECK(!ibv_query_qp(q, &a, IBV_QP_STATE, &i));
    return a.qp_state;
}

static void states_refuse(struct ibv_qp *q, struct ibv_qp_attr a, int mask, const char *what)
{
    enum ibv_qp_state before = state_of(q);
    CHECK(ibv_modify_qp(q, &a, mask) != 0, "%s was allowed", what);
    CHECK(state_of(q) == before, "%s changed the state", what);
}

static void states_send_to(struct ibv_qp *q, enum ibv_qp_state s)
{
    struct ibv_qp_attr a = {.qp_state = s};
    CHECK(!ibv_modify_qp(q, &a, IBV_QP_STATE), "to state %d", s);
    CHECK(state_of(q) == s);
}

static void states_run_test(struct vt *t)
{
    struct vt_qp v;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS};
    int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    vt_qp_init(t, o, &v);
    CHECK(state_of(v.qp) == IBV_QPS_INIT);
    struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
    if (!getenv("VERBS_GID")) /* not every driver looks */
        CHECK(ibv_post_send(v.qp, &wr, &bad) == EINVAL && bad == &wr, "INIT does not send");
    vt_recv(&v, t, 1, 0, 8);
    a.qp_state = IBV_QPS_RTS;
    states_refuse(v.qp, a, IBV_QP_STATE | IBV_QP_SQ_PSN, "INIT to RTS");
    a.qp_state = IBV_QPS_RTR;
    states_refuse(v.qp, a, IBV_QP_STATE, "RTR without a path");
    a.qp_state = IBV_QPS_RESET;
    states_send_to(v.qp, IBV_QPS_RESET);
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 99;
    states_refuse(v.qp, a, init, "port 99");
    a.port_num = 1;
    states_refuse(v.qp, a, IBV_QP_STATE | IBV_QP_PORT, "INIT without access flags");
    states_refuse(v.qp, a, init | IBV_QP_SQ_PSN, "an attribute that does not belong");
    CHECK(!ibv_modify_qp(v.qp, &a, init));
    vt_qp_connect(t, o, &v);
    CHECK(state_of(v.qp) == IBV_QPS_RTS);
    struct ibv_qp_attr got;
    struct ibv_qp_init_attr gi;
    CHECK(!ibv_query_qp(v.qp, &got, (IBV_QP_DEST_QPN << 1) - 1, &gi)); /* every attribute there is */
    CHECK(got.dest_qp_num == v.peer.qpn && got.timeout == o.timeout && got.rnr_retry == 7 &&
          got.path_mtu == IBV_MTU_1024);
    CHECK(gi.cap.max_send_wr >= 128 && gi.cap.max_inline_data >= 64 && gi.qp_type == IBV_QPT_RC);
    CHECK(ibv_destroy_cq(t->cq) == EBUSY, "a CQ in use");
    CHECK(ibv_dealloc_pd(t->pd) == EBUSY, "a PD in use");
    vt_sync(t);
    vt_recv(&v, t, 5, 0, 8);
    states_send_to(v.qp, IBV_QPS_ERR);
    CHECK(vt_wc(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 5);
    vt_recv(&v, t, 6, 0, 8);
    if (!t->rxe) /* whose kernel half does not learn of it */
        CHECK(vt_wc(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 6, "a receive posted in the error state");
    states_send_to(v.qp, IBV_QPS_RESET);
    vt_sync(t);
    CHECK(!ibv_modify_qp(v.qp, &a, init)); /* the same QP lives again */
    vt_qp_connect(t, o, &v);
    if (t->side == 1) {
        CHECK(!vt_post(&v, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 64, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_SUCCESS);
    }
    vt_sync(t);
    vt_qp_end(&v);
}

int main(void)
{
    return vt_run(states_run_test);
}

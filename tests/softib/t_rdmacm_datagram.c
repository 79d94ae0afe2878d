/* t_rdmacm_datagram.c: datagram services and multicast groups of librdmacm on softib.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rdmacm_ends.h"

static void test_datagrams(void)
{
    struct rdma_cm_id *l = start_listener(RDMA_PS_UDP, 0),
                      *a = create_routed_id(RDMA_PS_UDP, get_source_port(l)), *p;
    static char out[32] = "a datagram", in[40 + 32];
    struct rdma_conn_param c = {.private_data = "lookup", .private_data_len = 7};
    struct ibv_wc wc;
    add_qp(a, IBV_QPT_UD);
    EXPECT(get_qp_state(a) == IBV_QPS_RTS);
    EXPECT(!rdma_connect(a, &c));
    struct rdma_cm_event *e = EXPECT_EVENT(passive, CONNECT_REQUEST);
    p = e->id;
    EXPECT(e->param.ud.private_data_len == 180 && !strcmp(e->param.ud.private_data, "lookup"));
    rdma_ack_cm_event(e);
    add_qp(p, IBV_QPT_UD);
    struct ibv_mr *mi = rdma_reg_msgs(p, in, sizeof(in)), *mo = rdma_reg_msgs(a, out, sizeof(out));
    EXPECT(!rdma_post_recv(p, NULL, in, sizeof(in), mi));
    c.qp_num = p->qp->qp_num;
    EXPECT(!rdma_accept(p, &c));
    e = EXPECT_EVENT(active, ESTABLISHED);
    EXPECT(e->param.ud.private_data_len == 136 && e->param.ud.qp_num == p->qp->qp_num &&
           e->param.ud.qkey == RDMA_UDP_QKEY);
    struct ibv_ah *ah = ibv_create_ah(a->pd, &e->param.ud.ah_attr);
    EXPECT(ah);
    EXPECT(!rdma_post_ud_send(a, NULL, out, sizeof(out), mo, 0, ah, e->param.ud.qp_num));
    rdma_ack_cm_event(e);
    EXPECT(rdma_get_send_comp(a, &wc) == 1 && !wc.status);
    EXPECT(rdma_get_recv_comp(p, &wc) == 1 && !wc.status && !strcmp(in + 40, "a datagram"));
    EXPECT_ERROR(rdma_disconnect(a), EINVAL);
    ibv_destroy_ah(ah);
    rdma_dereg_mr(mi);
    rdma_dereg_mr(mo);
    destroy_id(a);
    destroy_id(p);
    a = create_routed_id(RDMA_PS_UDP, get_source_port(l));
    EXPECT(!rdma_connect(a, &c));
    e = EXPECT_EVENT(passive, CONNECT_REQUEST);
    EXPECT(!rdma_reject(e->id, NULL, 0));
    p = e->id;
    rdma_ack_cm_event(e);
    destroy_id(p);
    EXPECT_AND_ACK(active, UNREACHABLE);
    destroy_id(a);
    destroy_id(l);
}

static void test_multicast(void)
{
    struct sockaddr_in group = make_address("239.1.2.3", 0), tcp = make_address("127.0.0.1", 9);
    struct rdma_cm_id *id = create_id(active, RDMA_PS_UDP);
    static char out[32] = "to a group", in[40 + 32];
    struct ibv_wc wc;
    EXPECT_ERROR(rdma_join_multicast(id, to_sockaddr(&group), NULL), EINVAL); /* not bound */
    EXPECT(!rdma_resolve_addr(id, NULL, to_sockaddr(&group), 1000));
    EXPECT_AND_ACK(active, ADDR_RESOLVED);
    EXPECT_ERROR(rdma_resolve_route(id, 1), EINVAL);
    EXPECT_ERROR(rdma_join_multicast(id, to_sockaddr(&tcp), NULL), EINVAL);
    add_qp(id, IBV_QPT_UD);
    struct rdma_cm_join_mc_attr_ex bad = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS,
                                          .addr = to_sockaddr(&group)};
    EXPECT_ERROR(rdma_join_multicast_ex(id, &bad, NULL), EINVAL);
    EXPECT(!rdma_join_multicast(id, to_sockaddr(&group), out));
    struct rdma_cm_event *e = EXPECT_EVENT(active, MULTICAST_JOIN);
    EXPECT(e->param.ud.private_data == out && e->param.ud.qp_num == 0xffffff &&
           e->param.ud.ah_attr.is_global);
    struct ibv_ah *ah = ibv_create_ah(id->pd, &e->param.ud.ah_attr);
    rdma_ack_cm_event(e);
    EXPECT(ah);
    struct ibv_mr *mi = rdma_reg_msgs(id, in, sizeof(in)), *mo = rdma_reg_msgs(id, out, sizeof(out));
    EXPECT(!rdma_post_recv(id, NULL, in, sizeof(in), mi));
    EXPECT(!rdma_post_ud_send(id, NULL, out, sizeof(out), mo, 0, ah, 0xffffff));
    EXPECT(rdma_get_send_comp(id, &wc) == 1 && !wc.status);
    EXPECT(rdma_get_recv_comp(id, &wc) == 1 && !wc.status && !strcmp(in + 40, "to a group"));
    EXPECT(!rdma_leave_multicast(id, to_sockaddr(&group)));
    EXPECT_ERROR(rdma_leave_multicast(id, to_sockaddr(&group)), EADDRNOTAVAIL);
    struct rdma_cm_join_mc_attr_ex only = {.comp_mask =
                                               RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
                                           .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
                                           .addr = to_sockaddr(&group)};
    EXPECT(!rdma_join_multicast_ex(id, &only, NULL));
    EXPECT_AND_ACK(active, MULTICAST_JOIN);
    rdma_dereg_mr(mi);
    rdma_dereg_mr(mo);
    ibv_destroy_ah(ah);
    destroy_id(id);
}

int main(void)
{
    open_channels();
    test_datagrams();
    test_multicast();
    return close_channels();
}

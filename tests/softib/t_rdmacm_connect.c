/* t_rdmacm_connect.c: connections of librdmacm on softib: requests, answers, rejects, queue pairs of the
 * program itself, synchronous endpoints, and the migration of identifiers between channels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rdmacm_ends.h"
#include <netdb.h>
#include <pthread.h>

static void exchange_message(struct rdma_cm_id *from, struct rdma_cm_id *to)
{
    static char out[64] = "a message", in[64];
    struct ibv_wc wc;
    struct ibv_mr *mo = rdma_reg_msgs(from, out, sizeof(out)), *mi = rdma_reg_msgs(to, in, sizeof(in));
    memset(in, 0, sizeof(in));
    EXPECT(!rdma_post_recv(to, NULL, in, sizeof(in), mi));
    EXPECT(!rdma_post_send(from, NULL, out, sizeof(out), mo, 0));
    EXPECT(rdma_get_send_comp(from, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    EXPECT(rdma_get_recv_comp(to, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(in));
    EXPECT(!strcmp(in, "a message"));
    rdma_dereg_mr(mo);
    rdma_dereg_mr(mi);
}

static void test_connection(void)
{
    struct rdma_cm_id *l = start_listener(RDMA_PS_TCP, 0),
                      *a = create_routed_id(RDMA_PS_TCP, get_source_port(l));
    struct rdma_conn_param c = {.private_data = "hello",
                                .private_data_len = 6,
                                .responder_resources = 3,
                                .initiator_depth = 5,
                                .retry_count = 6,
                                .rnr_retry_count = 4};
    struct rdma_conn_param too_long = {.private_data = active, .private_data_len = 57},
                           greedy = {.initiator_depth = 200};
    add_qp(a, IBV_QPT_RC);
    EXPECT(get_qp_state(a) == IBV_QPS_INIT);
    EXPECT_ERROR(rdma_connect(a, &too_long), EINVAL);
    EXPECT_ERROR(rdma_connect(a, &greedy), EINVAL);
    EXPECT_ERROR(rdma_accept(a, NULL), EINVAL);
    EXPECT_ERROR(rdma_disconnect(a), EINVAL);
    EXPECT(!rdma_connect(a, &c));
    EXPECT_ERROR(rdma_connect(a, &c), EINVAL);
    struct rdma_cm_event *e = EXPECT_EVENT(passive, CONNECT_REQUEST);
    struct rdma_cm_id *p = e->id;
    EXPECT(e->param.conn.responder_resources == 5 && e->param.conn.initiator_depth == 3);
    EXPECT(e->param.conn.retry_count == 6 && e->param.conn.rnr_retry_count == 4 && !e->param.conn.srq);
    EXPECT(e->param.conn.qp_num == a->qp->qp_num && e->param.conn.private_data_len == 56);
    EXPECT(!strcmp(e->param.conn.private_data, "hello"));
    rdma_ack_cm_event(e);
    EXPECT(rdma_get_dst_port(a) == rdma_get_src_port(p) && rdma_get_src_port(a) == rdma_get_dst_port(p));
    EXPECT(!memcmp(rdma_get_local_addr(a), rdma_get_peer_addr(p), sizeof(struct sockaddr_in)));
    add_qp(p, IBV_QPT_RC);
    struct rdma_conn_param answer = {.private_data = "welcome",
                                     .private_data_len = 8,
                                     .responder_resources = 2,
                                     .initiator_depth = 1,
                                     .rnr_retry_count = 7};
    EXPECT(!rdma_accept(p, &answer));
    EXPECT_ERROR(rdma_accept(p, &answer), EINVAL);
    EXPECT_ERROR(rdma_reject(p, NULL, 0), EINVAL);
    e = EXPECT_EVENT(active, ESTABLISHED);
    EXPECT(e->param.conn.private_data_len == 196 && !strcmp(e->param.conn.private_data, "welcome"));
    EXPECT(e->param.conn.responder_resources == 1 && e->param.conn.initiator_depth == 2);
    rdma_ack_cm_event(e);
    EXPECT_AND_ACK(passive, ESTABLISHED);
    struct ibv_qp_attr at;
    struct ibv_qp_init_attr in;
    ibv_query_qp(a->qp, &at,
                 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
                 &in);
    EXPECT(at.max_rd_atomic == 2 && at.max_dest_rd_atomic == 1 && at.retry_cnt == 6 && at.rnr_retry == 7);
    ibv_query_qp(p->qp, &at,
                 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
                 &in);
    EXPECT(at.max_rd_atomic == 1 && at.max_dest_rd_atomic == 2 && at.retry_cnt == 6 && at.rnr_retry == 4);
    exchange_message(a, p);
    exchange_message(p, a);
    EXPECT(!rdma_notify(p, IBV_EVENT_COMM_EST));
    EXPECT_ERROR(rdma_notify(p, IBV_EVENT_QP_FATAL), EINVAL);
    EXPECT(!rdma_disconnect(a));
    EXPECT_AND_ACK(active, DISCONNECTED);
    EXPECT_AND_ACK(passive, DISCONNECTED);
    EXPECT(get_qp_state(a) == IBV_QPS_ERR);
    EXPECT(!rdma_disconnect(p) && get_qp_state(p) == IBV_QPS_ERR);
    EXPECT(!rdma_disconnect(p));
    destroy_id(a);
    destroy_id(p);
    destroy_id(l);
}

static void test_rejects(void)
{
    struct rdma_cm_id *l = start_listener(RDMA_PS_TCP, 0),
                      *a = create_routed_id(RDMA_PS_TCP, get_source_port(l)), *p;
    struct rdma_conn_param c = {.private_data = "x", .private_data_len = 2, .qp_num = 5};
    struct rdma_cm_event *e;
    uint16_t port = get_source_port(l);
    EXPECT(!rdma_connect(a, &c));
    p = expect_request(l, "x", 56);
    EXPECT_ERROR(rdma_reject(p, "", 149), EINVAL);
    EXPECT(!rdma_reject(p, "no", 3));
    e = EXPECT_EVENT(active, REJECTED);
    EXPECT(e->status == 28 && e->param.conn.private_data_len == 148 &&
           !strcmp(e->param.conn.private_data, "no"));
    rdma_ack_cm_event(e);
    destroy_id(a);
    destroy_id(p);
    a = create_routed_id(RDMA_PS_TCP, port); /* a request that is not accepted */
    EXPECT(!rdma_connect(a, &c));
    destroy_id(expect_request(l, "x", 56));
    e = EXPECT_EVENT(active, REJECTED);
    EXPECT(e->status == 28);
    rdma_ack_cm_event(e);
    destroy_id(a);
    a = create_routed_id(RDMA_PS_TCP, port); /* a request that is withdrawn */
    EXPECT(!rdma_connect(a, &c));
    p = expect_request(l, "x", 56);
    destroy_id(a);
    e = EXPECT_EVENT(passive, REJECTED);
    EXPECT(e->status == 4 && e->id == p);
    rdma_ack_cm_event(e);
    EXPECT_ERROR(rdma_accept(p, NULL), EINVAL);
    destroy_id(p);
    /* The listener is destroyed before the program fetches the request. */
    a = create_routed_id(RDMA_PS_TCP, port);
    EXPECT(!rdma_connect(a, &c));
    destroy_id(l);
    e = EXPECT_EVENT(active, REJECTED);
    rdma_ack_cm_event(e);
    destroy_id(a);
    a = create_routed_id(RDMA_PS_TCP, port); /* no listener exists */
    EXPECT(!rdma_connect(a, &c));
    e = EXPECT_EVENT(active, REJECTED);
    EXPECT(e->status == 8);
    rdma_ack_cm_event(e);
    destroy_id(a);
    a = create_routed_id(RDMA_PS_UDP, port);
    EXPECT(!rdma_connect(a, NULL));
    e = EXPECT_EVENT(active, UNREACHABLE);
    EXPECT(e->status);
    rdma_ack_cm_event(e);
    destroy_id(a);
}

/* Creates a queue pair by ibv_create_qp, without librdmacm. */
static struct ibv_qp *create_own_qp(struct rdma_cm_id *id, struct ibv_cq **cq)
{
    *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    struct ibv_qp_init_attr a = {
        .qp_type = IBV_QPT_RC,
        .send_cq = *cq,
        .recv_cq = *cq,
        .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
    return ibv_create_qp(id->pd, &a);
}

static void modify_own_qp(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state to)
{
    struct ibv_qp_attr a = {.qp_state = to};
    int mask = 0;
    EXPECT(!rdma_init_qp_attr(id, &a, &mask) && a.qp_state == to);
    EXPECT(!ibv_modify_qp(qp, &a, mask));
}

static void test_own_qps(void)
{
    struct rdma_cm_id *l = start_listener(RDMA_PS_TCP, 0),
                      *a = create_routed_id(RDMA_PS_TCP, get_source_port(l));
    struct ibv_cq *cq[2];
    struct ibv_qp *qa = create_own_qp(a, &cq[0]);
    struct ibv_qp_attr fetched = {.qp_state = IBV_QPS_RTR};
    struct ibv_ece ece = {.vendor_id = 7, .options = 9};
    int mask;
    EXPECT_ERROR(rdma_init_qp_attr(a, &fetched, &mask), EINVAL);
    struct rdma_conn_param c = {.qp_num = qa->qp_num, .private_data = "q", .private_data_len = 2};
    EXPECT(!rdma_set_local_ece(a, &ece));
    EXPECT(!rdma_connect(a, &c));
    EXPECT_ERROR(rdma_establish(a), EINVAL);
    struct rdma_cm_id *p = expect_request(l, "q", 56);
    struct ibv_qp *qp = create_own_qp(p, &cq[1]);
    EXPECT(!rdma_get_remote_ece(p, &ece) && ece.vendor_id == 7 && ece.options == 9);
    c.qp_num = qp->qp_num;
    modify_own_qp(p, qp, IBV_QPS_INIT);
    modify_own_qp(p, qp, IBV_QPS_RTR);
    modify_own_qp(p, qp, IBV_QPS_RTS);
    EXPECT(!rdma_accept(p, &c));
    struct rdma_cm_event *e = EXPECT_EVENT(active, CONNECT_RESPONSE);
    EXPECT(e->param.conn.qp_num == qp->qp_num);
    rdma_ack_cm_event(e);
    modify_own_qp(a, qa, IBV_QPS_INIT);
    modify_own_qp(a, qa, IBV_QPS_RTR);
    modify_own_qp(a, qa, IBV_QPS_RTS);
    EXPECT(!rdma_establish(a));
    EXPECT_AND_ACK(passive, ESTABLISHED);
    EXPECT(!rdma_disconnect(p));
    EXPECT_AND_ACK(passive, DISCONNECTED);
    EXPECT_AND_ACK(active, DISCONNECTED);
    ibv_destroy_qp(qa);
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq[0]);
    ibv_destroy_cq(cq[1]);
    destroy_id(a);
    destroy_id(p);
    destroy_id(l);
}

/* Body of the thread of the active end; both ends are synchronous. */
static void *connect_synchronously(void *service)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
                                  .ai_connect = (void *)"first ",
                                  .ai_connect_len = 6},
                         *res;
    struct ibv_qp_init_attr a = {
        .sq_sig_all = 1, .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct rdma_cm_id *id;
    struct rdma_conn_param c = {.private_data = "second", .private_data_len = 7};
    EXPECT(!rdma_getaddrinfo("127.0.0.1", service, &hints, &res));
    EXPECT(!rdma_create_ep(&id, res, NULL, &a));
    EXPECT(!rdma_connect(id, &c));
    EXPECT(id->event && !strcmp(id->event->param.conn.private_data, "yes"));
    rdma_freeaddrinfo(res);
    EXPECT(!rdma_disconnect(id));
    destroy_id(id);
    return NULL;
}

static void test_endpoints(void)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = RAI_PASSIVE}, *res;
    struct ibv_qp_init_attr a = {
        .sq_sig_all = 1, .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    struct rdma_conn_param c = {.private_data = "yes", .private_data_len = 4};
    struct rdma_cm_id *l, *id;
    char service[8];
    pthread_t t;
    EXPECT(!rdma_getaddrinfo(NULL, "0", &hints, &res));
    EXPECT(!rdma_create_ep(&l, res, NULL, &a));
    rdma_freeaddrinfo(res);
    EXPECT_ERROR(rdma_get_request(l, &id), EINVAL);
    EXPECT(!rdma_listen(l, 0));
    snprintf(service, sizeof(service), "%u", get_source_port(l));
    pthread_create(&t, NULL, connect_synchronously, service);
    EXPECT(!rdma_get_request(l, &id));
    EXPECT(id->qp && !strcmp(id->event->param.conn.private_data, "first second"));
    EXPECT(!rdma_accept(id, &c));
    EXPECT(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
    rdma_disconnect(id);
    pthread_join(t, NULL);
    destroy_id(l);
    destroy_id(id);
    hints = (struct rdma_addrinfo){.ai_port_space = RDMA_PS_TCP};
    EXPECT(!rdma_getaddrinfo("127.0.0.1", "1", &hints, &res) && res->ai_dst_addr &&
           res->ai_qp_type == IBV_QPT_RC);
    EXPECT(!rdma_create_ep(&id, res, NULL, NULL));
    /* A synchronous call returns the error of the event. */
    EXPECT_ERROR(rdma_connect(id, NULL), ECONNREFUSED);
    EXPECT_ERROR(rdma_migrate_id(id, NULL), EINVAL);
    destroy_id(id);
    rdma_freeaddrinfo(res);
    hints.ai_qp_type = IBV_QPT_UD;
    EXPECT(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res) == EAI_SOCKTYPE);
    hints = (struct rdma_addrinfo){.ai_flags = 0x100};
    EXPECT(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res) == EAI_BADFLAGS);
    hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST};
    EXPECT(rdma_getaddrinfo("no number", "1", &hints, &res) == EAI_NONAME);
    EXPECT_ERROR(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
}

static void test_migration(void)
{
    struct rdma_cm_id *l = start_listener(RDMA_PS_TCP, 0),
                      *a = create_routed_id(RDMA_PS_TCP, get_source_port(l)),
                      *b = create_routed_id(RDMA_PS_TCP, get_source_port(l));
    struct rdma_event_channel *other = rdma_create_event_channel();
    EXPECT(!rdma_connect(a, NULL));
    struct pollfd p = {.fd = passive->fd, .events = POLLIN};
    while (!poll(&p, 1, 1))
        fetch_events(active);
    EXPECT(!rdma_migrate_id(l, other)); /* the pending request moves with the listener */
    EXPECT(l->channel == other);
    EXPECT(!rdma_connect(b, NULL));
    for (int i = 0; i < 2; i++) {
        struct rdma_cm_event *e = EXPECT_EVENT(other, CONNECT_REQUEST);
        struct rdma_cm_id *id = e->id;
        rdma_ack_cm_event(e);
        EXPECT(id->channel == other);
        EXPECT(!rdma_migrate_id(id, passive) && id->channel == passive);
        EXPECT(!rdma_reject(id, NULL, 0));
        destroy_id(id);
        EXPECT_AND_ACK(active, REJECTED);
    }
    EXPECT(poll(&p, 1, 0) == 0);
    destroy_id(a);
    destroy_id(b);
    destroy_id(l);
    rdma_destroy_event_channel(other);
}

int main(void)
{
    open_channels();
    test_connection();
    test_rejects();
    test_own_qps();
    test_endpoints();
    test_migration();
    return close_channels();
}

/* t_rdmacm.c: each call of librdmacm on softib, and what its error cases report. Both ends of a connection are in this
 * process, on channels of their own; only peers that die are processes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 60000

static struct rdma_event_channel *active, *passive;

static struct sockaddr_in v4(const char *ip, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &a.sin_addr);
    return a;
}

static struct sockaddr *sa(struct sockaddr_in *a)
{
    return (struct sockaddr *)a;
}

/* Events that were fetched while others were waited for. With wire=tcp the active side must fetch events for its requests to
 * go out, which other programs do in processes of their own. */
static struct {
    struct rdma_event_channel *channel;
    struct rdma_cm_event *event;
} early[16];

static void drive(struct rdma_event_channel *c)
{
    struct rdma_cm_event *e;
    int flags = fcntl(c->fd, F_GETFL);
    fcntl(c->fd, F_SETFL, flags | O_NONBLOCK);
    for (int i = 0; i < 16; i++)
        if (!early[i].event && !rdma_get_cm_event(c, &e)) {
            early[i].channel = c;
            early[i].event = e;
        }
    fcntl(c->fd, F_SETFL, flags);
}

static struct rdma_cm_event *take(struct rdma_event_channel *c)
{
    struct rdma_cm_event *e;
    struct pollfd p[2] = {{.fd = c->fd, .events = POLLIN}, {.fd = active->fd, .events = POLLIN}};
    for (int i = 0; i < 16; i++)
        if (early[i].event && early[i].channel == c) {
            e = early[i].event;
            memmove(&early[i], &early[i + 1], (size_t)(15 - i) * sizeof(early[0]));
            early[15].event = NULL;
            return e;
        }
    if (poll(p, 2, WAIT_MS) < 1)
        return NULL;
    drive(c);
    if (c != active)
        drive(active);
    return take(c);
}

/* The next event, which must be of that type; the caller acknowledges it. */
static struct rdma_cm_event *expect_at(int line, struct rdma_event_channel *c, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *e = take(c);
    if (!e) {
        printf("FAILED line %d: no event, %s expected\n", line, rdma_event_str(type));
        exit(1);
    }
    if (e->event != type) {
        printf("FAILED line %d: %s (status %d), %s expected\n", line, rdma_event_str(e->event), e->status,
               rdma_event_str(type));
        exit(1);
    }
    return e;
}
#define EVENT(c, type) expect_at(__LINE__, c, RDMA_CM_EVENT_##type)
#define PASS(c, type)  rdma_ack_cm_event(EVENT(c, type))

#define FAILS(call, error)                        \
    do {                                          \
        errno = 0;                                \
        EXPECT((call) == -1 && errno == (error)); \
    } while (0)

static struct rdma_cm_id *make(struct rdma_event_channel *c, enum rdma_port_space ps)
{
    struct rdma_cm_id *id = NULL;
    if (rdma_create_id(c, &id, (void *)0x77, ps)) {
        perror("rdma_create_id");
        exit(1);
    }
    return id;
}

static struct rdma_cm_id *listener(enum rdma_port_space ps, int backlog)
{
    struct sockaddr_in a = v4("0.0.0.0", 0);
    struct rdma_cm_id *id = make(passive, ps);
    EXPECT(!rdma_bind_addr(id, sa(&a)));
    EXPECT(!rdma_listen(id, backlog));
    EXPECT(rdma_get_src_port(id));
    return id;
}

/* An identifier with a route to the port. */
static struct rdma_cm_id *routed(enum rdma_port_space ps, uint16_t port)
{
    struct sockaddr_in a = v4("127.0.0.1", port);
    struct rdma_cm_id *id = make(active, ps);
    EXPECT(!rdma_resolve_addr(id, NULL, sa(&a), 1000));
    PASS(active, ADDR_RESOLVED);
    EXPECT(id->verbs && id->port_num && id->pd);
    EXPECT(!rdma_resolve_route(id, 1000));
    PASS(active, ROUTE_RESOLVED);
    EXPECT(id->route.num_paths == 1 && id->route.path_rec);
    return id;
}

static uint16_t port_of(struct rdma_cm_id *id)
{
    return ntohs(rdma_get_src_port(id));
}

static void add_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr a = {
        .qp_type = type,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    EXPECT(!rdma_create_qp(id, NULL, &a));
    EXPECT(id->qp && id->send_cq && id->recv_cq && id->send_cq_channel);
    FAILS(rdma_create_qp(id, NULL, &a), EINVAL);
}

static void drop(struct rdma_cm_id *id)
{
    rdma_destroy_ep(id);
}

static enum ibv_qp_state state_of(struct rdma_cm_id *id)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    return ibv_query_qp(id->qp, &a, IBV_QP_STATE, &i) ? IBV_QPS_UNKNOWN : a.qp_state;
}

/* A message from one to the other. */
static void talk(struct rdma_cm_id *from, struct rdma_cm_id *to)
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

static struct rdma_cm_id *take_request(struct rdma_cm_id *l, const char *private_data, unsigned length)
{
    struct rdma_cm_event *e = EVENT(passive, CONNECT_REQUEST);
    struct rdma_cm_id *id = e->id;
    EXPECT(e->listen_id == l && id != l && id->context == (void *)0x77 && id->verbs &&
           id->channel == passive);
    EXPECT(e->param.conn.private_data_len == length);
    EXPECT(e->param.conn.private_data && !strcmp(e->param.conn.private_data, private_data));
    EXPECT(ntohs(rdma_get_src_port(id)) == port_of(l));
    rdma_ack_cm_event(e);
    return id;
}

static void connection(void)
{
    struct rdma_cm_id *l = listener(RDMA_PS_TCP, 0), *a = routed(RDMA_PS_TCP, port_of(l));
    struct rdma_conn_param c = {.private_data = "hello",
                                .private_data_len = 6,
                                .responder_resources = 3,
                                .initiator_depth = 5,
                                .retry_count = 6,
                                .rnr_retry_count = 4};
    struct rdma_conn_param too_long = {.private_data = active, .private_data_len = 57},
                           greedy = {.initiator_depth = 200};
    add_qp(a, IBV_QPT_RC);
    EXPECT(state_of(a) == IBV_QPS_INIT);
    FAILS(rdma_connect(a, &too_long), EINVAL);
    FAILS(rdma_connect(a, &greedy), EINVAL);
    FAILS(rdma_accept(a, NULL), EINVAL);
    FAILS(rdma_disconnect(a), EINVAL);
    EXPECT(!rdma_connect(a, &c));
    FAILS(rdma_connect(a, &c), EINVAL);
    struct rdma_cm_event *e = EVENT(passive, CONNECT_REQUEST);
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
    FAILS(rdma_accept(p, &answer), EINVAL);
    FAILS(rdma_reject(p, NULL, 0), EINVAL);
    e = EVENT(active, ESTABLISHED);
    EXPECT(e->param.conn.private_data_len == 196 && !strcmp(e->param.conn.private_data, "welcome"));
    EXPECT(e->param.conn.responder_resources == 1 && e->param.conn.initiator_depth == 2);
    rdma_ack_cm_event(e);
    PASS(passive, ESTABLISHED);
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
    talk(a, p);
    talk(p, a);
    EXPECT(!rdma_notify(p, IBV_EVENT_COMM_EST));
    FAILS(rdma_notify(p, IBV_EVENT_QP_FATAL), EINVAL);
    EXPECT(!rdma_disconnect(a));
    PASS(active, DISCONNECTED);
    PASS(passive, DISCONNECTED);
    EXPECT(state_of(a) == IBV_QPS_ERR);
    EXPECT(!rdma_disconnect(p) && state_of(p) == IBV_QPS_ERR);
    EXPECT(!rdma_disconnect(p));
    drop(a);
    drop(p);
    drop(l);
}

static void rejects(void)
{
    struct rdma_cm_id *l = listener(RDMA_PS_TCP, 0), *a = routed(RDMA_PS_TCP, port_of(l)), *p;
    struct rdma_conn_param c = {.private_data = "x", .private_data_len = 2, .qp_num = 5};
    struct rdma_cm_event *e;
    uint16_t port = port_of(l);
    EXPECT(!rdma_connect(a, &c));
    p = take_request(l, "x", 56);
    FAILS(rdma_reject(p, "", 149), EINVAL);
    EXPECT(!rdma_reject(p, "no", 3));
    e = EVENT(active, REJECTED);
    EXPECT(e->status == 28 && e->param.conn.private_data_len == 148 &&
           !strcmp(e->param.conn.private_data, "no"));
    rdma_ack_cm_event(e);
    drop(a);
    drop(p);
    a = routed(RDMA_PS_TCP, port); /* one that is not accepted */
    EXPECT(!rdma_connect(a, &c));
    drop(take_request(l, "x", 56));
    e = EVENT(active, REJECTED);
    EXPECT(e->status == 28);
    rdma_ack_cm_event(e);
    drop(a);
    a = routed(RDMA_PS_TCP, port); /* one that is withdrawn */
    EXPECT(!rdma_connect(a, &c));
    p = take_request(l, "x", 56);
    drop(a);
    e = EVENT(passive, REJECTED);
    EXPECT(e->status == 4 && e->id == p);
    rdma_ack_cm_event(e);
    FAILS(rdma_accept(p, NULL), EINVAL);
    drop(p);
    a = routed(RDMA_PS_TCP, port); /* its listener goes before the program sees the request */
    EXPECT(!rdma_connect(a, &c));
    drop(l);
    e = EVENT(active, REJECTED);
    rdma_ack_cm_event(e);
    drop(a);
    a = routed(RDMA_PS_TCP, port); /* nobody listens */
    EXPECT(!rdma_connect(a, &c));
    e = EVENT(active, REJECTED);
    EXPECT(e->status == 8);
    rdma_ack_cm_event(e);
    drop(a);
    a = routed(RDMA_PS_UDP, port);
    EXPECT(!rdma_connect(a, NULL));
    e = EVENT(active, UNREACHABLE);
    EXPECT(e->status);
    rdma_ack_cm_event(e);
    drop(a);
}

static void addresses(void)
{
    struct sockaddr_in far = v4("192.0.2.1", 5), port0 = v4("198.18.0.2", 0), any = v4("0.0.0.0", 5),
                       other = v4("198.18.0.1", 9);
    struct sockaddr strange = {.sa_family = AF_UNIX};
    struct rdma_cm_event *e;
    struct rdma_cm_id *id = make(active, RDMA_PS_TCP), *two = make(active, RDMA_PS_TCP);
    FAILS(rdma_bind_addr(id, sa(&far)), EADDRNOTAVAIL);
    FAILS(rdma_bind_addr(id, &strange), EAFNOSUPPORT);
    FAILS(rdma_resolve_addr(id, NULL, &strange, 1), EAFNOSUPPORT);
    FAILS(rdma_resolve_addr(id, NULL, sa(&any), 1), EINVAL);
    FAILS(rdma_resolve_route(id, 1), EINVAL);
    FAILS(rdma_create_id(active, &id, NULL, 77), EINVAL);
    FAILS(rdma_bind_addr(id, sa(&port0)), EADDRNOTAVAIL); /* the other node's */
    EXPECT(!rdma_resolve_addr(id, NULL, sa(&far), 1));
    e = EVENT(active, ADDR_ERROR);
    EXPECT(e->status == -EHOSTUNREACH);
    rdma_ack_cm_event(e);
    EXPECT(!rdma_resolve_addr(id, sa(&far), sa(&other), 1));
    e = EVENT(active, ADDR_ERROR);
    EXPECT(e->status == -EADDRNOTAVAIL);
    rdma_ack_cm_event(e);
    other.sin_port = 0;
    EXPECT(!rdma_bind_addr(id, sa(&other)) && id->verbs && id->port_num == 1);
    other.sin_port = rdma_get_src_port(id);
    FAILS(rdma_bind_addr(id, sa(&other)), EINVAL);
    if (!getenv("RDMACM_TCP")) { /* there conflicts are found by rdma_listen */
        int yes = 1;
        FAILS(rdma_bind_addr(two, sa(&other)), EADDRINUSE);
        EXPECT(!rdma_set_option(two, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
        EXPECT(!rdma_bind_addr(two, sa(&other)));
        FAILS(rdma_listen(two, 1), EADDRINUSE);
    }
    port0.sin_port = htons(7);
    EXPECT(!rdma_resolve_addr(id, NULL, sa(&port0), 1)); /* from what it is bound to */
    PASS(active, ADDR_RESOLVED);
    EXPECT(rdma_get_src_port(id) == other.sin_port);
    drop(id);
    EXPECT(!rdma_listen(two, 1));
    drop(two);
}

static void options(void)
{
    struct rdma_cm_id *id = make(active, RDMA_PS_TCP);
    uint8_t tos = 8, timeout = 20, bad = 40;
    int yes = 1;
    struct ibv_ece ece = {.vendor_id = 7, .options = 9};
    struct ibv_path_data path = {0};
    EXPECT(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
    EXPECT(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
    EXPECT(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)));
    FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &bad, 1), EINVAL);
    FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &yes, sizeof(yes)), EINVAL);
    FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EINVAL);
    FAILS(rdma_set_option(id, RDMA_OPTION_ID, 99, &yes, sizeof(yes)), ENOSYS);
    FAILS(rdma_set_option(id, 99, 0, &yes, sizeof(yes)), ENOSYS);
    FAILS(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), EINVAL);
    EXPECT(!rdma_set_local_ece(id, &ece) && !rdma_get_remote_ece(id, &ece) && !ece.vendor_id);
    struct sockaddr_in a = v4("127.0.0.1", 9);
    EXPECT(!rdma_resolve_addr(id, NULL, sa(&a), 1));
    PASS(active, ADDR_RESOLVED);
    EXPECT(!rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
    PASS(active, ROUTE_RESOLVED);
    drop(id);
    EXPECT(!strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT"));
    EXPECT(rdma_event_str(99) && rdma_event_str(-1));
    int n = 0;
    struct ibv_context **list = rdma_get_devices(&n);
    EXPECT(list && n >= 1 && list[0] && !list[n]);
    rdma_free_devices(list);
    struct rdma_cm_event *none;
    fcntl(active->fd, F_SETFL, O_NONBLOCK);
    FAILS(rdma_get_cm_event(active, &none), EAGAIN);
    fcntl(active->fd, F_SETFL, 0);
    FAILS(rsocket(AF_INET, SOCK_STREAM, 0), EOPNOTSUPP);
    struct sockaddr_ib native = {.sib_family = AF_IB};
    id = make(active, RDMA_PS_TCP);
    FAILS(rdma_bind_addr(id, (struct sockaddr *)&native), EAFNOSUPPORT);
    FAILS(rdma_resolve_addr(id, NULL, (struct sockaddr *)&native, 1), EAFNOSUPPORT);
    drop(id);
}

/* A queue pair that the program makes and changes itself. */
static struct ibv_qp *own_qp(struct rdma_cm_id *id, struct ibv_cq **cq)
{
    *cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
    struct ibv_qp_init_attr a = {
        .qp_type = IBV_QPT_RC,
        .send_cq = *cq,
        .recv_cq = *cq,
        .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
    return ibv_create_qp(id->pd, &a);
}

static void advance(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state to)
{
    struct ibv_qp_attr a = {.qp_state = to};
    int mask = 0;
    EXPECT(!rdma_init_qp_attr(id, &a, &mask) && a.qp_state == to);
    EXPECT(!ibv_modify_qp(qp, &a, mask));
}

static void without_qp(void)
{
    struct rdma_cm_id *l = listener(RDMA_PS_TCP, 0), *a = routed(RDMA_PS_TCP, port_of(l));
    struct ibv_cq *cq[2];
    struct ibv_qp *qa = own_qp(a, &cq[0]);
    struct ibv_qp_attr early = {.qp_state = IBV_QPS_RTR};
    struct ibv_ece ece = {.vendor_id = 7, .options = 9};
    int mask;
    FAILS(rdma_init_qp_attr(a, &early, &mask), EINVAL);
    struct rdma_conn_param c = {.qp_num = qa->qp_num, .private_data = "q", .private_data_len = 2};
    EXPECT(!rdma_set_local_ece(a, &ece));
    EXPECT(!rdma_connect(a, &c));
    FAILS(rdma_establish(a), EINVAL);
    struct rdma_cm_id *p = take_request(l, "q", 56);
    struct ibv_qp *qp = own_qp(p, &cq[1]);
    EXPECT(!rdma_get_remote_ece(p, &ece) && ece.vendor_id == 7 && ece.options == 9);
    c.qp_num = qp->qp_num;
    advance(p, qp, IBV_QPS_INIT);
    advance(p, qp, IBV_QPS_RTR);
    advance(p, qp, IBV_QPS_RTS);
    EXPECT(!rdma_accept(p, &c));
    struct rdma_cm_event *e = EVENT(active, CONNECT_RESPONSE);
    EXPECT(e->param.conn.qp_num == qp->qp_num);
    rdma_ack_cm_event(e);
    advance(a, qa, IBV_QPS_INIT);
    advance(a, qa, IBV_QPS_RTR);
    advance(a, qa, IBV_QPS_RTS);
    EXPECT(!rdma_establish(a));
    PASS(passive, ESTABLISHED);
    EXPECT(!rdma_disconnect(p));
    PASS(passive, DISCONNECTED);
    PASS(active, DISCONNECTED);
    ibv_destroy_qp(qa);
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq[0]);
    ibv_destroy_cq(cq[1]);
    drop(a);
    drop(p);
    drop(l);
}

static void datagrams(void)
{
    struct rdma_cm_id *l = listener(RDMA_PS_UDP, 0), *a = routed(RDMA_PS_UDP, port_of(l)), *p;
    static char out[32] = "a datagram", in[40 + 32];
    struct rdma_conn_param c = {.private_data = "lookup", .private_data_len = 7};
    struct ibv_wc wc;
    add_qp(a, IBV_QPT_UD);
    EXPECT(state_of(a) == IBV_QPS_RTS);
    EXPECT(!rdma_connect(a, &c));
    struct rdma_cm_event *e = EVENT(passive, CONNECT_REQUEST);
    p = e->id;
    EXPECT(e->param.ud.private_data_len == 180 && !strcmp(e->param.ud.private_data, "lookup"));
    rdma_ack_cm_event(e);
    add_qp(p, IBV_QPT_UD);
    struct ibv_mr *mi = rdma_reg_msgs(p, in, sizeof(in)), *mo = rdma_reg_msgs(a, out, sizeof(out));
    EXPECT(!rdma_post_recv(p, NULL, in, sizeof(in), mi));
    c.qp_num = p->qp->qp_num;
    EXPECT(!rdma_accept(p, &c));
    e = EVENT(active, ESTABLISHED);
    EXPECT(e->param.ud.private_data_len == 136 && e->param.ud.qp_num == p->qp->qp_num &&
           e->param.ud.qkey == RDMA_UDP_QKEY);
    struct ibv_ah *ah = ibv_create_ah(a->pd, &e->param.ud.ah_attr);
    EXPECT(ah);
    EXPECT(!rdma_post_ud_send(a, NULL, out, sizeof(out), mo, 0, ah, e->param.ud.qp_num));
    rdma_ack_cm_event(e);
    EXPECT(rdma_get_send_comp(a, &wc) == 1 && !wc.status);
    EXPECT(rdma_get_recv_comp(p, &wc) == 1 && !wc.status && !strcmp(in + 40, "a datagram"));
    FAILS(rdma_disconnect(a), EINVAL);
    ibv_destroy_ah(ah);
    rdma_dereg_mr(mi);
    rdma_dereg_mr(mo);
    drop(a);
    drop(p);
    a = routed(RDMA_PS_UDP, port_of(l));
    EXPECT(!rdma_connect(a, &c));
    e = EVENT(passive, CONNECT_REQUEST);
    EXPECT(!rdma_reject(e->id, NULL, 0));
    p = e->id;
    rdma_ack_cm_event(e);
    drop(p);
    PASS(active, UNREACHABLE);
    drop(a);
    drop(l);
}

static void multicast(void)
{
    struct sockaddr_in group = v4("239.1.2.3", 0), tcp = v4("127.0.0.1", 9);
    struct rdma_cm_id *id = make(active, RDMA_PS_UDP);
    static char out[32] = "to a group", in[40 + 32];
    struct ibv_wc wc;
    FAILS(rdma_join_multicast(id, sa(&group), NULL), EINVAL); /* not bound */
    EXPECT(!rdma_resolve_addr(id, NULL, sa(&group), 1000));
    PASS(active, ADDR_RESOLVED);
    FAILS(rdma_resolve_route(id, 1), EINVAL);
    FAILS(rdma_join_multicast(id, sa(&tcp), NULL), EINVAL);
    add_qp(id, IBV_QPT_UD);
    struct rdma_cm_join_mc_attr_ex bad = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS, .addr = sa(&group)};
    FAILS(rdma_join_multicast_ex(id, &bad, NULL), EINVAL);
    EXPECT(!rdma_join_multicast(id, sa(&group), out));
    struct rdma_cm_event *e = EVENT(active, MULTICAST_JOIN);
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
    EXPECT(!rdma_leave_multicast(id, sa(&group)));
    FAILS(rdma_leave_multicast(id, sa(&group)), EADDRNOTAVAIL);
    struct rdma_cm_join_mc_attr_ex only = {.comp_mask =
                                               RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
                                           .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
                                           .addr = sa(&group)};
    EXPECT(!rdma_join_multicast_ex(id, &only, NULL));
    PASS(active, MULTICAST_JOIN);
    rdma_dereg_mr(mi);
    rdma_dereg_mr(mo);
    ibv_destroy_ah(ah);
    drop(id);
}

/* Both synchronous: the active side is a thread. */
static void *call(void *service)
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
    drop(id);
    return NULL;
}

static void endpoints(void)
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
    FAILS(rdma_get_request(l, &id), EINVAL);
    EXPECT(!rdma_listen(l, 0));
    snprintf(service, sizeof(service), "%u", port_of(l));
    pthread_create(&t, NULL, call, service);
    EXPECT(!rdma_get_request(l, &id));
    EXPECT(id->qp && !strcmp(id->event->param.conn.private_data, "first second"));
    EXPECT(!rdma_accept(id, &c));
    EXPECT(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
    rdma_disconnect(id);
    pthread_join(t, NULL);
    drop(l);
    drop(id);
    hints = (struct rdma_addrinfo){.ai_port_space = RDMA_PS_TCP};
    EXPECT(!rdma_getaddrinfo("127.0.0.1", "1", &hints, &res) && res->ai_dst_addr &&
           res->ai_qp_type == IBV_QPT_RC);
    EXPECT(!rdma_create_ep(&id, res, NULL, NULL));
    FAILS(rdma_connect(id, NULL), ECONNREFUSED); /* synchronous: the error of the event */
    FAILS(rdma_migrate_id(id, NULL), EINVAL);
    drop(id);
    rdma_freeaddrinfo(res);
    hints.ai_qp_type = IBV_QPT_UD;
    EXPECT(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res) == EAI_SOCKTYPE);
    hints = (struct rdma_addrinfo){.ai_flags = 0x100};
    EXPECT(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res) == EAI_BADFLAGS);
    hints = (struct rdma_addrinfo){.ai_flags = RAI_NUMERICHOST};
    EXPECT(rdma_getaddrinfo("no number", "1", &hints, &res) == EAI_NONAME);
    FAILS(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
}

static void migration(void)
{
    struct rdma_cm_id *l = listener(RDMA_PS_TCP, 0), *a = routed(RDMA_PS_TCP, port_of(l)),
                      *b = routed(RDMA_PS_TCP, port_of(l));
    struct rdma_event_channel *other = rdma_create_event_channel();
    EXPECT(!rdma_connect(a, NULL));
    struct pollfd p = {.fd = passive->fd, .events = POLLIN};
    while (!poll(&p, 1, 1))
        drive(active);
    EXPECT(!rdma_migrate_id(l, other)); /* with what has arrived */
    EXPECT(l->channel == other);
    EXPECT(!rdma_connect(b, NULL));
    for (int i = 0; i < 2; i++) {
        struct rdma_cm_event *e = EVENT(other, CONNECT_REQUEST);
        struct rdma_cm_id *id = e->id;
        rdma_ack_cm_event(e);
        EXPECT(id->channel == other);
        EXPECT(!rdma_migrate_id(id, passive) && id->channel == passive);
        EXPECT(!rdma_reject(id, NULL, 0));
        drop(id);
        PASS(active, REJECTED);
    }
    EXPECT(poll(&p, 1, 0) == 0);
    drop(a);
    drop(b);
    drop(l);
    rdma_destroy_event_channel(other);
}

/* Connects to a side that never answers, and to one whose backlog is full. */
static void silence(void)
{
    struct rdma_cm_id *l = listener(RDMA_PS_TCP, 1), *id[4];
    struct rdma_cm_event *e;
    int full = 0;
    setenv("SOFTIB_CM_SECONDS", "1", 1);
    for (int i = 0; i < 4; i++)
        id[i] = routed(RDMA_PS_TCP, port_of(l));
    for (int i = 0; i < 4; i++)
        EXPECT(!rdma_connect(id[i], NULL));
    unsetenv("SOFTIB_CM_SECONDS");
    for (int i = 0; i < 4; i++) {
        e = take(active);
        full += e->event == RDMA_CM_EVENT_REJECTED && e->status == 28;
        EXPECT(e->event == RDMA_CM_EVENT_REJECTED ||
               (e->event == RDMA_CM_EVENT_UNREACHABLE && e->status == -ETIMEDOUT));
        rdma_ack_cm_event(e);
    }
    EXPECT(full == 2 || getenv("RDMACM_TCP"));
    for (int i = 0; i < 4; i++)
        drop(id[i]);
    drop(l);
}

/* Bytes that are no messages do not keep others from connecting. */
static void garbage(void)
{
    struct rdma_cm_id *l = listener(RDMA_PS_TCP, 0), *a = routed(RDMA_PS_TCP, port_of(l));
    char line[512], wanted[16], bytes[4096];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(wanted, sizeof(wanted), "/%u/*", port_of(l));
    FILE *f = fopen("/proc/net/unix", "r");
    while (f && fgets(line, sizeof(line), f)) {
        char *at = strstr(line, "@softib-cm/");
        if (at && strstr(at, wanted))
            snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%.*s", (int)strcspn(at + 1, "\n"),
                     at + 1);
    }
    if (f)
        fclose(f);
    memset(bytes, 0x5a, sizeof(bytes));
    for (int i = 0; i < 300; i++) { /* more than may be there at once */
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (!connect(fd, (struct sockaddr *)&name,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.sun_path + 1))))
            EXPECT(i % 3 == 0 || send(fd, bytes, i % 3 == 1 ? 10 : sizeof(bytes), MSG_NOSIGNAL) > 0);
        close(fd);
    }
    struct rdma_conn_param c = {.private_data = "good", .private_data_len = 5};
    EXPECT(!rdma_connect(a, &c));
    struct rdma_cm_id *p = take_request(l, "good", 56);
    drop(p);
    PASS(active, REJECTED);
    drop(a);
    drop(l);
}

/* The child connects and dies; `die` is the stage at which it does. */
static void child(int port_pipe, int stage)
{
    uint16_t port;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(port_pipe, &port, sizeof(port)) != sizeof(port))
        exit(1);
    active = rdma_create_event_channel();
    struct rdma_cm_id *id = routed(RDMA_PS_TCP, port);
    add_qp(id, IBV_QPT_RC);
    rdma_connect(id, NULL);
    if (stage)
        PASS(active, ESTABLISHED);
    _exit(0);
}

static void deaths(const int pipes[2], const pid_t pids[2])
{
    for (int stage = getenv("RDMACM_TCP") != NULL; stage < 2; stage++) {
        struct rdma_cm_id *l = listener(RDMA_PS_TCP, 0);
        uint16_t port = port_of(l);
        EXPECT(write(pipes[stage], &port, sizeof(port)) == sizeof(port));
        struct rdma_cm_event *e = EVENT(passive, CONNECT_REQUEST);
        struct rdma_cm_id *p = e->id;
        rdma_ack_cm_event(e);
        add_qp(p, IBV_QPT_RC);
        if (!stage) {
            EXPECT(waitpid(pids[0], NULL, 0) == pids[0]);
            PASS(passive, REJECTED);
        } else {
            EXPECT(!rdma_accept(p, NULL));
            PASS(passive, ESTABLISHED);
            PASS(passive, DISCONNECTED);
            EXPECT(waitpid(pids[1], NULL, 0) == pids[1]);
        }
        drop(p);
        drop(l);
    }
}

int main(void)
{
    int pipes[2];
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        int p[2];
        if (pipe(p))
            return 1;
        pids[i] = fork();
        if (!pids[i])
            child(p[0], i);
        close(p[0]);
        pipes[i] = p[1];
    }
    active = rdma_create_event_channel();
    passive = rdma_create_event_channel();
    if (!active || !passive) {
        perror("rdma_create_event_channel");
        return 1;
    }
    connection();
    rejects();
    addresses();
    options();
    without_qp();
    datagrams();
    multicast();
    endpoints();
    migration();
    silence();
    if (!getenv("RDMACM_TCP"))
        garbage();
    deaths(pipes, pids);
    rdma_destroy_event_channel(active);
    rdma_destroy_event_channel(passive);
    printf(failures ? "%d failures\n" : "all calls are right\n", failures);
    return failures != 0;
}

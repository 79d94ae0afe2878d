/* t_xrc.c: extended reliable connections (XRC). One receive QP serves two processes of its node: each has
 * an SRQ in the XRC domain that they share through a file, and the sender names the SRQ in every request.
 * All operations, the order between the SRQs, waiting for a receive in an empty SRQ, and a number that is
 * no SRQ of the domain.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vt.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL  "XRC_KILL" /* set: the second receiver is killed instead of destroying its objects */
#define LARGE (1u << 20)
#define SMALL 4000u

struct xrc_end { /* a receiving process */
    uint32_t srqn, rkey;
    uint64_t buf;
};

static int domain_fd, helper_fd;

static void send_bytes(int fd, const void *p, size_t n)
{
    CHECK(send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n);
}

static void receive_bytes(int fd, void *p, size_t n)
{
    CHECK(recv(fd, p, n, MSG_WAITALL) == (ssize_t)n, "the other process has ended");
}

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd, int oflags)
{
    struct ibv_xrcd_init_attr a = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fd, oflags};
    return ibv_open_xrcd(ctx, &a);
}

static struct ibv_srq *make_srq(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_xrcd *x,
                                struct ibv_cq *cq)
{
    struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 16, .max_sge = 1},
                                     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                     .srq_type = IBV_SRQT_XRC,
                                     .pd = pd,
                                     .xrcd = x,
                                     .cq = cq};
    struct ibv_srq *srq = ibv_create_srq_ex(ctx, &a);
    CHECK(srq);
    return srq;
}

static void post_to_srq(struct ibv_srq *srq, struct ibv_mr *mr, uint64_t id, size_t off, uint32_t length)
{
    struct ibv_sge s = {(uintptr_t)mr->addr + off, length, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

/* The second process of the receiving node, which has an SRQ and memory but no queue pair. */
static void run_second_receiver(void)
{
    uint32_t qpn;
    char go = 1;
    receive_bytes(helper_fd, &go, 1); /* the first receiver has opened its device */
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    CHECK(ctx);
    ibv_free_device_list(list);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
    char *buf = mmap(NULL, 4 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, 4 * LARGE, ALL_ACCESS);
    CHECK(pd && cq && mr);
    CHECK(!open_domain(ctx, domain_fd, O_CREAT | O_EXCL) && errno == EINVAL,
          "created an XRC domain that exists");
    struct ibv_xrcd *x = open_domain(ctx, domain_fd, 0);
    CHECK(x, "cannot open the XRC domain of another process");
    struct ibv_srq *srq = make_srq(ctx, pd, x, cq);
    struct xrc_end me = {.rkey = mr->rkey, .buf = (uintptr_t)buf};
    CHECK(!ibv_get_srq_num(srq, &me.srqn));
    post_to_srq(srq, mr, 100, 0, LARGE);
    send_bytes(helper_fd, &me, sizeof(me));
    receive_bytes(helper_fd, &qpn, sizeof(qpn));
    struct ibv_qp_open_attr o = {.comp_mask =
                                     IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                                 .qp_num = qpn,
                                 .xrcd = x,
                                 .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *qp = ibv_open_qp(ctx, &o);
    struct ibv_qp_attr now;
    struct ibv_qp_init_attr init;
    CHECK(qp && !ibv_query_qp(qp, &now, IBV_QP_STATE, &init) && now.qp_state == IBV_QPS_RTS);
    o.qp_num = qpn ^ 1;
    CHECK(!ibv_open_qp(ctx, &o), "opened a queue pair number that is not in the domain");
    send_bytes(helper_fd, &go, 1);
    /* Three messages: a short one, a second one that finds no receive posted, a large one. */
    struct ibv_wc wc = vt_expect_completion(cq, IBV_WC_SUCCESS);
    CHECK(wc.wr_id == 100 && wc.byte_len == SMALL && wc.qp_num == qpn && wc.wc_flags & IBV_WC_WITH_IMM);
    vt_expect_bytes((unsigned char *)buf, SMALL, 1, "sent to the second process");
    CHECK(vt_has_no_completion(cq, 20));
    post_to_srq(srq, mr, 101, 0, SMALL);
    wc = vt_expect_completion(cq, IBV_WC_SUCCESS);
    CHECK(wc.wr_id == 101 && wc.byte_len == 10);
    post_to_srq(srq, mr, 102, LARGE, LARGE);
    wc = vt_expect_completion(cq, IBV_WC_SUCCESS);
    CHECK(wc.wr_id == 102 && wc.byte_len == LARGE);
    vt_expect_bytes((unsigned char *)buf + LARGE, LARGE, 3, "a large message for the second process");
    receive_bytes(helper_fd, &go, 1); /* all RDMA requests are complete */
    vt_expect_bytes((unsigned char *)buf + 2 * LARGE, LARGE, 4, "written to the second process");
    CHECK(*(uint64_t *)(void *)(buf + 3 * LARGE) == 7, "the atomic operation did not change the word");
    CHECK(ibv_close_xrcd(x) == EBUSY);
    if (getenv(KILL))
        kill(getpid(), SIGKILL);
    CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_close_xrcd(x) && !ibv_dereg_mr(mr) &&
          !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
    send_bytes(helper_fd, &go, 1);
    exit(0);
}

struct receiver_info {
    uint32_t qpn;
    uint16_t lid;
    union ibv_gid gid;
    struct xrc_end xrc_end[2];
};

static void connect_sender(struct vt *t, struct ibv_qp *qp, const struct receiver_info *to)
{
    bool sends = qp->qp_type == IBV_QPT_XRC_SEND;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = sends ? 0 : ALL_ACCESS,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = to->qpn,
                            .max_dest_rd_atomic = 4,
                            .min_rnr_timer = 12,
                            .ah_attr = {.dlid = to->lid, .port_num = 1},
                            .timeout = 18,
                            .retry_cnt = 6,
                            .rnr_retry = 7,
                            .max_rd_atomic = 4};
    if (t->gid_index >= 0) {
        a.ah_attr.is_global = 1;
        a.ah_attr.grh.dgid = to->gid;
        a.ah_attr.grh.sgid_index = (uint8_t)t->gid_index;
        a.ah_attr.grh.hop_limit = 64;
    }
    CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    a.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             (sends ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)));
    a.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
                             (sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
}

static void run_receiver(struct vt *t)
{
    char go = 1;
    struct ibv_xrcd *x = open_domain(t->ctx, domain_fd, O_CREAT);
    int ok = x != NULL, both;
    CHECK(x || errno == EOPNOTSUPP);
    vt_exchange(t, &ok, &both, sizeof(ok));
    if (!ok)
        vt_skip("the device has no XRC");
    send_bytes(helper_fd, &go, 1);
    struct receiver_info me = {.lid = t->port.lid, .gid = t->gid}, peer;
    receive_bytes(helper_fd, &me.xrc_end[1], sizeof(me.xrc_end[1]));
    struct ibv_srq *srq = make_srq(t->ctx, t->pd, x, t->cq);
    me.xrc_end[0] = (struct xrc_end){.rkey = t->mr->rkey, .buf = (uintptr_t)t->buf};
    CHECK(!ibv_get_srq_num(srq, &me.xrc_end[0].srqn) && me.xrc_end[0].srqn != me.xrc_end[1].srqn);
    struct ibv_qp_init_attr_ex a = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = x};
    struct ibv_qp *qp = ibv_create_qp_ex(t->ctx, &a);
    CHECK(qp);
    me.qpn = qp->qp_num;
    vt_exchange(t, &me, &peer, sizeof(me));
    connect_sender(t, qp, &peer);
    struct ibv_recv_wr none = {.wr_id = 1}, *bad;
    CHECK(ibv_post_recv(qp, &none, &bad) == EINVAL, "posted a receive to an XRC queue pair");
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send;
    CHECK(ibv_post_send(qp, &send, &bad_send) == EINVAL, "posted a send to an XRC target");
    post_to_srq(srq, t->mr, 1, 0, SMALL);
    send_bytes(helper_fd, &qp->qp_num, sizeof(qp->qp_num));
    receive_bytes(helper_fd, &go, 1);
    vt_sync(t);
    struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    CHECK(wc.wr_id == 1 && wc.byte_len == SMALL && wc.qp_num == qp->qp_num);
    vt_expect_bytes(t->buf, SMALL, 0, "sent to the process with the QP");
    vt_sync(t); /* all requests are complete */
    send_bytes(helper_fd, &go, 1);
    const bool killed = recv(helper_fd, &go, 1, MSG_WAITALL) != 1;
    CHECK(killed == (getenv(KILL) != NULL));
    vt_sync(t); /* requests to the destroyed SRQ are complete */
    struct ibv_async_event e;
    CHECK(!ibv_get_async_event(t->ctx, &e) && e.event_type == IBV_EVENT_QP_REQ_ERR && e.element.qp == qp,
          "event \"%s\"", ibv_event_type_str(e.event_type));
    ibv_ack_async_event(&e);
    vt_sync(t);
    CHECK(ibv_close_xrcd(x) == EBUSY, "closed an XRC domain in use");
    CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq) && !ibv_close_xrcd(x));
    CHECK(!open_domain(t->ctx, domain_fd, 0) && errno == EAGAIN,
          "opened an XRC domain that every process has closed");
}

static void execute_request(struct vt *t, struct ibv_qp *qp, const struct xrc_end *to, enum ibv_wr_opcode op,
                            size_t off, uint32_t length, size_t roff)
{
    struct ibv_sge s = {(uintptr_t)t->buf + off, length, t->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = op,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = to->buf + roff;
        wr.wr.atomic.rkey = to->rkey;
        wr.wr.atomic.compare_add = 7;
    } else {
        wr.wr.rdma.remote_addr = to->buf + roff;
        wr.wr.rdma.rkey = to->rkey;
    }
    wr.qp_type.xrc.remote_srqn = to->srqn;
    CHECK(!ibv_post_send(qp, &wr, &bad));
}

static void run_sender(struct vt *t)
{
    int ok = 1, both;
    struct receiver_info me = {.lid = t->port.lid, .gid = t->gid}, peer;
    vt_exchange(t, &ok, &both, sizeof(ok));
    if (!both)
        vt_skip("the device has no XRC");
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_SEND,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD,
                                    .pd = t->pd,
                                    .send_cq = t->cq,
                                    .cap = {.max_send_wr = 16, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp_ex(t->ctx, &a);
    CHECK(qp);
    me.qpn = qp->qp_num;
    vt_exchange(t, &me, &peer, sizeof(me));
    connect_sender(t, qp, &peer);
    vt_sync(t);
    const struct xrc_end *first = &peer.xrc_end[0], *second = &peer.xrc_end[1];
    vt_fill(t->buf, SMALL, 0);
    vt_fill(t->buf + SMALL, SMALL, 1);
    vt_fill(t->buf + LARGE, LARGE, 3);
    vt_fill(t->buf + 2 * LARGE, LARGE, 4);
    execute_request(t, qp, first, IBV_WR_SEND, 0, SMALL, 0);
    execute_request(t, qp, second, IBV_WR_SEND_WITH_IMM, SMALL, SMALL, 0);
    execute_request(t, qp, second, IBV_WR_SEND, 0, 10, 0); /* finds no receive request at first */
    execute_request(t, qp, second, IBV_WR_SEND, LARGE, LARGE, 0);
    execute_request(t, qp, second, IBV_WR_RDMA_WRITE, 2 * LARGE, LARGE, 2 * LARGE);
    execute_request(t, qp, second, IBV_WR_RDMA_READ, 3 * LARGE, LARGE, 2 * LARGE);
    execute_request(t, qp, second, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 3 * LARGE);
    static const enum ibv_wr_opcode order[] = {
        IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,       IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_WRITE,
        IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.wr_id == order[i], "completion %zu is out of order", i);
    }
    vt_expect_bytes(t->buf + 3 * LARGE, LARGE, 4, "read from the second process");
    vt_sync(t);
    vt_sync(t); /* the second process has destroyed its SRQ */
    execute_request(t, qp, second, IBV_WR_SEND, 0, 10, 0);
    vt_expect_completion(t->cq, IBV_WC_REM_INV_REQ_ERR);
    vt_sync(t);
    CHECK(!ibv_destroy_qp(qp));
}

static void run_test(struct vt *t)
{
    if (t->side == 0)
        run_receiver(t);
    else
        run_sender(t);
}

int main(void)
{
    int pair[2], status;
    FILE *file = tmpfile();
    CHECK(file && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    domain_fd = fileno(file);
    pid_t child = fork();
    CHECK(child >= 0);
    helper_fd = pair[child != 0];
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[1]);
        if (getenv("VERBS_NODES"))
            setenv("SOFTIB_NODE", "0", 1);
        run_second_receiver();
    }
    close(pair[0]);
    int r = vt_run(run_test);
    CHECK(waitpid(child, &status, 0) == child && (getenv(KILL) ? WIFSIGNALED(status) : !status),
          "the second process failed");
    return r;
}

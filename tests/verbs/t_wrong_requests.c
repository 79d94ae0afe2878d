/* t_wrong_requests.c: the results of wrong requests on two connected queue pairs: the error number of the
 * post, or the status of the request, the states of both queue pairs, the status of the receive, and the
 * event of the receiving queue pair.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "wrong_use.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

/* Two connected RC queue pairs, with their own completion queues. */
struct qp_pair {
    struct vt *t;
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    uint8_t rnr_retry;
};

static int connect_side(struct qp_pair *c, int side, int access)
{
    struct vt *t = c->t;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = (unsigned)access};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = c->qp[!side]->qp_num,
                              .max_dest_rd_atomic = 1,
                              .min_rnr_timer = 1,
                              .ah_attr = {.dlid = t->port.lid, .port_num = 1}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 3, .rnr_retry = c->rnr_retry, .max_rd_atomic = 1};
    if (t->gid_index >= 0) {
        rtr.ah_attr.is_global = 1;
        rtr.ah_attr.grh.dgid = t->gid;
        rtr.ah_attr.grh.sgid_index = (uint8_t)t->gid_index;
        rtr.ah_attr.grh.hop_limit = 4;
    }
    int rc = ibv_modify_qp(c->qp[side], &init,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    rc = rc ? rc
            : ibv_modify_qp(c->qp[side], &rtr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return rc ? rc
              : ibv_modify_qp(c->qp[side], &rts,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void open_pair(struct qp_pair *c, struct vt *t, int access)
{
    c->t = t;
    for (int i = 0; i < 2; i++) {
        CHECK((c->cq[i] = ibv_create_cq(t->ctx, 4 * ENTRIES, NULL, NULL, 0)));
        struct ibv_qp_init_attr a = {
            .send_cq = c->cq[i],
            .recv_cq = c->cq[i],
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = ENTRIES, .max_recv_wr = ENTRIES, .max_send_sge = 1, .max_recv_sge = 1}};
        CHECK((c->qp[i] = ibv_create_qp(t->pd, &a)));
    }
    for (int i = 0; i < 2; i++)
        CHECK(!connect_side(c, i, access));
}

static const char *state_name(struct ibv_qp *qp)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    CHECK(!ibv_query_qp(qp, &a, IBV_QP_STATE, &i));
    return a.qp_state <= IBV_QPS_ERR ? names[a.qp_state] : "?";
}

static const char *status_name(enum ibv_wc_status s)
{
    static const char *const names[] = {
        "SUCCESS",        "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR",   "LOC_PROT_ERR",
        "WR_FLUSH_ERR",   "MW_BIND_ERR", "BAD_RESP_ERR",  "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",
        "REM_ACCESS_ERR", "REM_OP_ERR",  "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR"};
    return (size_t)s < sizeof(names) / sizeof(names[0]) ? names[s] : "?";
}

/* Returns the name of the first event of this queue pair, or "-". */
static const char *first_event_name(struct vt *t, const struct ibv_qp *qp)
{
    struct pollfd fd = {t->ctx->async_fd, POLLIN, 0};
    const char *name = "-";
    while (poll(&fd, 1, 100) > 0) {
        struct ibv_async_event e;
        CHECK(!ibv_get_async_event(t->ctx, &e));
        const enum ibv_event_type type = e.event_type;
        if (type <= IBV_EVENT_PATH_MIG_ERR && type != IBV_EVENT_CQ_ERR && e.element.qp == qp)
            name = type == IBV_EVENT_QP_FATAL        ? "QP_FATAL"
                   : type == IBV_EVENT_QP_REQ_ERR    ? "QP_REQ_ERR"
                   : type == IBV_EVENT_QP_ACCESS_ERR ? "QP_ACCESS_ERR"
                   : type == IBV_EVENT_COMM_EST      ? name
                                                     : "another";
        ibv_ack_async_event(&e);
    }
    return name;
}

static void close_pair(struct qp_pair *c)
{
    for (int i = 0; i < 2; i++) {
        CHECK(!ibv_destroy_qp(c->qp[i]));
        CHECK(!ibv_destroy_cq(c->cq[i]));
    }
}

/* Prints the status of the request, both states, the status of the receive if one was posted, and the
 * receiver's event; closes the pair. */
static void report_and_close_pair(struct qp_pair *c, char *out, bool report_received_send)
{
    const enum ibv_wc_status any = IBV_WC_GENERAL_ERR;
    struct ibv_wc wc = {.status = any}, in = {.status = any};
    while (ibv_poll_cq(c->cq[0], 1, &wc) == 0)
        ;
    while (report_received_send && ibv_poll_cq(c->cq[1], 1, &in) == 0)
        ;
    const char *event = first_event_name(c->t, c->qp[1]);
    snprintf(out, RESULT_TEXT, "%s, %s, peer %s%s%s, %s", status_name(wc.status), state_name(c->qp[0]),
             state_name(c->qp[1]), report_received_send ? " " : "",
             report_received_send ? status_name(in.status) : "", event);
    close_pair(c);
}

static struct ibv_send_wr make_rdma_request(struct vt *t, enum ibv_wr_opcode op, size_t offset,
                                            uint32_t key_change)
{
    struct ibv_send_wr wr = {.opcode = op};
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)t->buf + offset;
        wr.wr.atomic.rkey = t->mr->rkey ^ key_change;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)t->buf + offset;
        wr.wr.rdma.rkey = t->mr->rkey ^ key_change;
    }
    return wr;
}

static void report_rdma(struct vt *t, char *out, int access, struct ibv_send_wr wr)
{
    struct qp_pair c = {.rnr_retry = 7};
    open_pair(&c, t, access);
    const int rc = post_send(c.qp[0], t, wr, 8);
    if (rc == 0) {
        report_and_close_pair(&c, out, false);
        return;
    }
    print_errno(out, rc);
    close_pair(&c);
}

static void try_write_with_wrong_key(struct vt *t, char *out)
{
    report_rdma(t, out, ALL_ACCESS, make_rdma_request(t, IBV_WR_RDMA_WRITE, 0, 0x5500));
}

static void try_write_beyond_region(struct vt *t, char *out)
{
    report_rdma(t, out, ALL_ACCESS, make_rdma_request(t, IBV_WR_RDMA_WRITE, BUF_BYTES - 4, 0));
}

static void try_write_without_permission(struct vt *t, char *out)
{
    report_rdma(t, out, IBV_ACCESS_REMOTE_READ, make_rdma_request(t, IBV_WR_RDMA_WRITE, 0, 0));
}

static void try_read_with_wrong_key(struct vt *t, char *out)
{
    report_rdma(t, out, ALL_ACCESS, make_rdma_request(t, IBV_WR_RDMA_READ, 0, 0x5500));
}

static void try_read_without_permission(struct vt *t, char *out)
{
    report_rdma(t, out, IBV_ACCESS_REMOTE_WRITE, make_rdma_request(t, IBV_WR_RDMA_READ, 0, 0));
}

static void try_atomic_without_permission(struct vt *t, char *out)
{
    report_rdma(t, out, IBV_ACCESS_REMOTE_WRITE, make_rdma_request(t, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0));
}

static void try_misaligned_atomic(struct vt *t, char *out)
{
    report_rdma(t, out, ALL_ACCESS, make_rdma_request(t, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 0));
}

static void try_send_with_wrong_local_key(struct vt *t, char *out)
{
    struct qp_pair c = {.rnr_retry = 7};
    open_pair(&c, t, ALL_ACCESS);
    struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey ^ 0x5500};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .sg_list = &s,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    CHECK(!ibv_post_send(c.qp[0], &wr, &bad));
    report_and_close_pair(&c, out, false);
}

static void report_received_send(struct vt *t, char *out, uint32_t bytes, uint32_t key_change)
{
    struct qp_pair c = {.rnr_retry = 7};
    open_pair(&c, t, ALL_ACCESS);
    CHECK(!post_receive(c.qp[1], t, bytes, t->mr->lkey ^ key_change));
    CHECK(!post_send(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    report_and_close_pair(&c, out, true);
}

static void try_send_to_short_receive(struct vt *t, char *out)
{
    report_received_send(t, out, 4, 0);
}

static void try_send_to_receive_with_wrong_key(struct vt *t, char *out)
{
    report_received_send(t, out, 64, 0x5500);
}

static void try_send_without_receive(struct vt *t, char *out)
{
    struct qp_pair c = {.rnr_retry = 1};
    open_pair(&c, t, ALL_ACCESS);
    CHECK(!post_send(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    report_and_close_pair(&c, out, false);
}

static void try_send_to_reset_peer(struct vt *t, char *out)
{
    struct qp_pair c = {.rnr_retry = 7};
    open_pair(&c, t, ALL_ACCESS);
    CHECK(!ibv_modify_qp(c.qp[1], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    CHECK(!post_send(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    report_and_close_pair(&c, out, false);
}

static void try_send_in_error_state(struct vt *t, char *out)
{
    struct qp_pair c = {.rnr_retry = 7};
    open_pair(&c, t, ALL_ACCESS);
    CHECK(!ibv_modify_qp(c.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
    CHECK(!post_send(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    report_and_close_pair(&c, out, false);
}

/* Reports the error number of the first request that exceeds the queue. */
static void report_full_queue(struct vt *t, char *out, bool receives)
{
    struct qp_pair c = {.rnr_retry = 7};
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    int rc = 0, n = 0;
    open_pair(&c, t, ALL_ACCESS);
    CHECK(!ibv_query_qp(c.qp[0], &a, IBV_QP_CAP, &i));
    const int most = (int)(receives ? i.cap.max_recv_wr : i.cap.max_send_wr);
    for (; rc == 0 && n <= 4 * most; n++)
        rc = receives ? post_receive(c.qp[0], t, 8, t->mr->lkey)
                      : post_send(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
    print_errno(out, rc);
    close_pair(&c);
}

static void try_send_to_full_queue(struct vt *t, char *out)
{
    report_full_queue(t, out, false);
}

static void try_receive_to_full_queue(struct vt *t, char *out)
{
    report_full_queue(t, out, true);
}

static void report_invalid_send(struct vt *t, char *out, struct ibv_send_wr wr, int pieces, uint32_t bytes)
{
    struct qp_pair c = {.rnr_retry = 7};
    struct ibv_sge s[3];
    struct ibv_send_wr *bad;
    open_pair(&c, t, ALL_ACCESS);
    for (int i = 0; i < 3; i++)
        s[i] = (struct ibv_sge){(uintptr_t)t->buf, bytes, t->mr->lkey};
    wr.sg_list = s;
    wr.num_sge = pieces;
    print_errno(out, ibv_post_send(c.qp[0], &wr, &bad));
    close_pair(&c);
}

static void try_send_with_wrong_opcode(struct vt *t, char *out)
{
    report_invalid_send(t, out, (struct ibv_send_wr){.opcode = (enum ibv_wr_opcode)99}, 1, 8);
}

static void try_send_with_too_much_inline(struct vt *t, char *out)
{
    report_invalid_send(t, out, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE}, 1,
                        65536);
}

static const struct wrong_use uses[] = {
    {"post_send: the queue is full", "ENOMEM", try_send_to_full_queue, NULL},
    {"post_recv: the queue is full", "ENOMEM", try_receive_to_full_queue, NULL},
    {"post_send: opcode 99", "EINVAL", try_send_with_wrong_opcode, "0"},
    {"post_send: longer than inline data may be", "ENOMEM", try_send_with_too_much_inline, "EINVAL"},
    {"post_send: state ERR", "WR_FLUSH_ERR, ERR, peer RTS, -", try_send_in_error_state, NULL},
    {"send: wrong local key", "LOC_PROT_ERR, ERR, peer RTS, -", try_send_with_wrong_local_key,
     "LOC_QP_OP_ERR, ERR, peer RTS, -"},
    {"send: receive is too short", "REM_INV_REQ_ERR, ERR, peer ERR LOC_LEN_ERR, QP_REQ_ERR",
     try_send_to_short_receive, "REM_OP_ERR, ERR, peer ERR LOC_QP_OP_ERR, -"},
    {"send: receive has a wrong local key", "REM_OP_ERR, ERR, peer ERR LOC_PROT_ERR, QP_FATAL",
     try_send_to_receive_with_wrong_key, "REM_OP_ERR, ERR, peer ERR LOC_QP_OP_ERR, -"},
    {"send: no receive, rnr_retry 1", "RNR_RETRY_EXC_ERR, ERR, peer RTS, -", try_send_without_receive, NULL},
    {"send: peer in state RESET", "RETRY_EXC_ERR, ERR, peer RESET, -", try_send_to_reset_peer, NULL},
    {"write: wrong remote key", "REM_ACCESS_ERR, ERR, peer ERR, QP_ACCESS_ERR", try_write_with_wrong_key,
     "REM_ACCESS_ERR, ERR, peer ERR, -"},
    {"write: beyond the region", "REM_ACCESS_ERR, ERR, peer ERR, QP_ACCESS_ERR", try_write_beyond_region,
     "REM_ACCESS_ERR, ERR, peer ERR, -"},
    {"write: the queue pair does not allow it", "REM_INV_REQ_ERR, ERR, peer ERR, QP_REQ_ERR",
     try_write_without_permission, "REM_INV_REQ_ERR, ERR, peer ERR, -"},
    {"read: wrong remote key", "REM_ACCESS_ERR, ERR, peer ERR, QP_ACCESS_ERR", try_read_with_wrong_key,
     "REM_ACCESS_ERR, ERR, peer ERR, -"},
    {"read: the queue pair does not allow it", "REM_INV_REQ_ERR, ERR, peer ERR, QP_REQ_ERR",
     try_read_without_permission, "REM_INV_REQ_ERR, ERR, peer ERR, -"},
    {"atomic: the queue pair does not allow it", "REM_INV_REQ_ERR, ERR, peer ERR, QP_REQ_ERR",
     try_atomic_without_permission, "REM_INV_REQ_ERR, ERR, peer ERR, -"},
    {"atomic: address not divisible by 8", "REM_INV_REQ_ERR, ERR, peer ERR, QP_REQ_ERR",
     try_misaligned_atomic, "EINVAL"},
};

static void run_table(struct vt *t)
{
    run_wrong_uses(t, uses, sizeof(uses) / sizeof(uses[0]));
}

int main(void)
{
    return vt_run(run_table);
}

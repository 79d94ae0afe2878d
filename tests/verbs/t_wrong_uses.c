/* t_wrong_uses.c: what verbs report when they are used wrongly: the error number of a call, or the status of the request that fails,
 * the states of both queue pairs and the event of the second one. Prints a table of all uses, marks those where the device differs
 * from softib, which follows the specification where it defines the result, and fails for a difference that is not known. Both
 * queue pairs are of one process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

enum { ENTRIES = 16, TEXT = 128 };

/* Two connected RC queue pairs, with their own completion queues. */
struct couple {
    struct vt *t;
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    uint8_t rnr_retry;
};

static void say_errno(char *out, int rc)
{
    const char *name = rc == 0            ? "0"
                       : rc == EINVAL     ? "EINVAL"
                       : rc == ENOMEM     ? "ENOMEM"
                       : rc == EBUSY      ? "EBUSY"
                       : rc == EFAULT     ? "EFAULT"
                       : rc == EOPNOTSUPP ? "EOPNOTSUPP"
                       : rc == EPERM      ? "EPERM"
                       : rc == ENOENT     ? "ENOENT"
                       : rc == ENODATA    ? "ENODATA"
                       : rc == EPROTOTYPE ? "EPROTOTYPE"
                       : rc == -1         ? "-1"
                                          : NULL;
    if (name)
        snprintf(out, TEXT, "%s", name);
    else
        snprintf(out, TEXT, "error %d", rc);
}

/* Of calls that return an object: destroys it if there is one. */
#define MADE(call, destroy)               \
    do {                                  \
        errno = 0;                        \
        void *made = (call);              \
        say_errno(out, made ? 0 : errno); \
        if (made)                         \
            destroy(made);                \
    } while (0)

static struct ibv_device_attr limits(struct vt *t)
{
    struct ibv_device_attr a;
    CHECK(!ibv_query_device(t->ctx, &a));
    return a;
}

static struct ibv_qp *make_qp(struct vt *t, enum ibv_qp_type type, uint32_t wr, uint32_t sge,
                              uint32_t inlined)
{
    struct ibv_qp_init_attr a = {.send_cq = t->cq,
                                 .recv_cq = t->cq,
                                 .qp_type = type,
                                 .cap = {.max_send_wr = wr,
                                         .max_recv_wr = wr,
                                         .max_send_sge = sge,
                                         .max_recv_sge = sge,
                                         .max_inline_data = inlined}};
    return ibv_create_qp(t->pd, &a);
}

/* ---- calls ---- */

static void cq_empty(struct vt *t, char *out)
{
    MADE(ibv_create_cq(t->ctx, 0, NULL, NULL, 0), ibv_destroy_cq);
}

static void cq_long(struct vt *t, char *out)
{
    MADE(ibv_create_cq(t->ctx, limits(t).max_cqe + 1, NULL, NULL, 0), ibv_destroy_cq);
}

static void cq_vector(struct vt *t, char *out)
{
    MADE(ibv_create_cq(t->ctx, ENTRIES, NULL, t->ch, t->ctx->num_comp_vectors), ibv_destroy_cq);
}

static void cq_resize(struct vt *t, char *out)
{
    say_errno(out, ibv_resize_cq(t->cq, limits(t).max_cqe + 1));
}

static void cq_busy(struct vt *t, char *out)
{
    struct ibv_qp *qp = make_qp(t, IBV_QPT_RC, 1, 1, 0);
    say_errno(out, ibv_destroy_cq(t->cq));
    CHECK(!ibv_destroy_qp(qp));
}

static void mr_rights(struct vt *t, char *out)
{
    MADE(ibv_reg_mr(t->pd, t->buf, 4096, IBV_ACCESS_REMOTE_WRITE), ibv_dereg_mr);
}

static void mr_nowhere(struct vt *t, char *out)
{
    MADE(ibv_reg_mr(t->pd, (void *)(uintptr_t)4096, 4096, IBV_ACCESS_LOCAL_WRITE), ibv_dereg_mr);
}

static void pd_busy(struct vt *t, char *out)
{
    say_errno(out, ibv_dealloc_pd(t->pd));
}

static void qp_long(struct vt *t, char *out)
{
    MADE(make_qp(t, IBV_QPT_RC, (uint32_t)limits(t).max_qp_wr + 1, 1, 0), ibv_destroy_qp);
}

static void qp_pieces(struct vt *t, char *out)
{
    MADE(make_qp(t, IBV_QPT_RC, 1, (uint32_t)limits(t).max_sge + 1, 0), ibv_destroy_qp);
}

static void qp_inline(struct vt *t, char *out)
{
    MADE(make_qp(t, IBV_QPT_RC, 1, 1, 1u << 20), ibv_destroy_qp);
}

static void qp_modify(struct vt *t, char *out, struct ibv_qp_attr a, int mask)
{
    struct ibv_qp *qp = make_qp(t, IBV_QPT_RC, 1, 1, 0);
    say_errno(out, ibv_modify_qp(qp, &a, mask));
    CHECK(!ibv_destroy_qp(qp));
}

static void qp_skip(struct vt *t, char *out)
{
    qp_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE);
}

static void qp_no_port(struct vt *t, char *out)
{
    qp_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT}, IBV_QP_STATE);
}

static void qp_bad_port(struct vt *t, char *out)
{
    qp_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 99},
              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void qp_bad_pkey(struct vt *t, char *out)
{
    qp_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 0xfffe},
              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static void qp_qkey(struct vt *t, char *out)
{
    qp_modify(t, out, (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1},
              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY);
}

static int post(struct ibv_qp *qp, struct vt *t, struct ibv_send_wr wr, uint32_t bytes)
{
    struct ibv_sge s = {(uintptr_t)t->buf, bytes, t->mr->lkey};
    struct ibv_send_wr *bad;
    wr.sg_list = &s;
    wr.num_sge = 1;
    wr.send_flags |= IBV_SEND_SIGNALED;
    return ibv_post_send(qp, &wr, &bad);
}

static int receive(struct ibv_qp *qp, struct vt *t, uint32_t bytes, uint32_t lkey)
{
    struct ibv_sge s = {(uintptr_t)t->buf + 65536, bytes, lkey};
    struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;
    return ibv_post_recv(qp, &wr, &bad);
}

static void send_reset(struct vt *t, char *out)
{
    struct ibv_qp *qp = make_qp(t, IBV_QPT_RC, 1, 1, 0);
    say_errno(out, post(qp, t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    CHECK(!ibv_destroy_qp(qp));
}

static void receive_reset(struct vt *t, char *out)
{
    struct ibv_qp *qp = make_qp(t, IBV_QPT_RC, 1, 1, 0);
    say_errno(out, receive(qp, t, 8, t->mr->lkey));
    CHECK(!ibv_destroy_qp(qp));
}

static void srq_long(struct vt *t, char *out)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = (uint32_t)limits(t).max_srq_wr + 1, .max_sge = 1}};
    MADE(ibv_create_srq(t->pd, &a), ibv_destroy_srq);
}

static void srq_limit(struct vt *t, char *out)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = ENTRIES, .max_sge = 1}};
    struct ibv_srq_attr limit = {.srq_limit = 1u << 20};
    struct ibv_srq *srq = ibv_create_srq(t->pd, &a);
    CHECK(srq);
    say_errno(out, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
    CHECK(!ibv_destroy_srq(srq));
}

static void srq_busy(struct vt *t, char *out)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = ENTRIES, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(t->pd, &a);
    struct ibv_qp_init_attr q = {.send_cq = t->cq,
                                 .recv_cq = t->cq,
                                 .srq = srq,
                                 .qp_type = IBV_QPT_RC,
                                 .cap = {.max_send_wr = 1, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(t->pd, &q);
    CHECK(srq && qp);
    say_errno(out, ibv_destroy_srq(srq));
    CHECK(!ibv_destroy_qp(qp));
    ibv_destroy_srq(srq);
}

static void port_zero(struct vt *t, char *out)
{
    struct ibv_port_attr a;
    say_errno(out, ibv_query_port(t->ctx, 0, &a));
}

static void port_none(struct vt *t, char *out)
{
    struct ibv_port_attr a;
    say_errno(out, ibv_query_port(t->ctx, 99, &a));
}

static void pkey_none(struct vt *t, char *out)
{
    __be16 key;
    say_errno(out, ibv_query_pkey(t->ctx, 1, t->port.pkey_tbl_len, &key) ? -1 : 0);
}

static void ah_port(struct vt *t, char *out)
{
    struct ibv_ah_attr a = {.dlid = t->port.lid, .port_num = 99};
    MADE(ibv_create_ah(t->pd, &a), ibv_destroy_ah);
}

static void group_of(struct vt *t, char *out, enum ibv_qp_type type, uint8_t first, bool leave)
{
    union ibv_gid gid = {.raw = {first, 0x12, [15] = 1}};
    struct ibv_qp *qp = make_qp(t, type, 1, 1, 0);
    CHECK(qp);
    say_errno(out, leave ? ibv_detach_mcast(qp, &gid, 0xc001) : ibv_attach_mcast(qp, &gid, 0xc001));
    CHECK(!ibv_destroy_qp(qp));
}

static void group_rc(struct vt *t, char *out)
{
    group_of(t, out, IBV_QPT_RC, 0xff, false);
}

static void group_gid(struct vt *t, char *out)
{
    group_of(t, out, IBV_QPT_UD, 0xfe, false);
}

static void group_leave(struct vt *t, char *out)
{
    group_of(t, out, IBV_QPT_UD, 0xff, true);
}

/* ---- requests ---- */

static int to_rts(struct couple *c, int side, int access)
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

static void couple_make(struct couple *c, struct vt *t, int access)
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
        CHECK(!to_rts(c, i, access));
}

static const char *state_of(struct ibv_qp *qp)
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

/* The event of this queue pair that comes first; "-": none does. */
static const char *event_of(struct vt *t, const struct ibv_qp *qp)
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

static void couple_drop(struct couple *c)
{
    for (int i = 0; i < 2; i++) {
        CHECK(!ibv_destroy_qp(c->qp[i]));
        CHECK(!ibv_destroy_cq(c->cq[i]));
    }
}

/* The end of a use: the request's status, both states, the second one's event and, if it had a receive, what became of that. */
static void couple_end(struct couple *c, char *out, bool received)
{
    const enum ibv_wc_status any = IBV_WC_GENERAL_ERR;
    struct ibv_wc wc = {.status = any}, in = {.status = any};
    while (ibv_poll_cq(c->cq[0], 1, &wc) == 0)
        ;
    while (received && ibv_poll_cq(c->cq[1], 1, &in) == 0)
        ;
    const char *event = event_of(c->t, c->qp[1]);
    snprintf(out, TEXT, "%s, %s, peer %s%s%s, %s", status_name(wc.status), state_of(c->qp[0]),
             state_of(c->qp[1]), received ? " " : "", received ? status_name(in.status) : "", event);
    couple_drop(c);
}

static struct ibv_send_wr rdma(struct vt *t, enum ibv_wr_opcode op, size_t offset, uint32_t key_change)
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

static void refused(struct vt *t, char *out, int access, struct ibv_send_wr wr)
{
    struct couple c = {.rnr_retry = 7};
    couple_make(&c, t, access);
    const int rc = post(c.qp[0], t, wr, 8);
    if (rc == 0) {
        couple_end(&c, out, false);
        return;
    }
    say_errno(out, rc);
    couple_drop(&c);
}

static void write_key(struct vt *t, char *out)
{
    refused(t, out, ALL_ACCESS, rdma(t, IBV_WR_RDMA_WRITE, 0, 0x5500));
}

static void write_bounds(struct vt *t, char *out)
{
    refused(t, out, ALL_ACCESS, rdma(t, IBV_WR_RDMA_WRITE, BUF_BYTES - 4, 0));
}

static void write_right(struct vt *t, char *out)
{
    refused(t, out, IBV_ACCESS_REMOTE_READ, rdma(t, IBV_WR_RDMA_WRITE, 0, 0));
}

static void read_key(struct vt *t, char *out)
{
    refused(t, out, ALL_ACCESS, rdma(t, IBV_WR_RDMA_READ, 0, 0x5500));
}

static void read_right(struct vt *t, char *out)
{
    refused(t, out, IBV_ACCESS_REMOTE_WRITE, rdma(t, IBV_WR_RDMA_READ, 0, 0));
}

static void atomic_right(struct vt *t, char *out)
{
    refused(t, out, IBV_ACCESS_REMOTE_WRITE, rdma(t, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0));
}

static void atomic_odd(struct vt *t, char *out)
{
    refused(t, out, ALL_ACCESS, rdma(t, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 0));
}

static void send_key(struct vt *t, char *out)
{
    struct couple c = {.rnr_retry = 7};
    couple_make(&c, t, ALL_ACCESS);
    struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey ^ 0x5500};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .sg_list = &s,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    CHECK(!ibv_post_send(c.qp[0], &wr, &bad));
    couple_end(&c, out, false);
}

static void received(struct vt *t, char *out, uint32_t bytes, uint32_t key_change)
{
    struct couple c = {.rnr_retry = 7};
    couple_make(&c, t, ALL_ACCESS);
    CHECK(!receive(c.qp[1], t, bytes, t->mr->lkey ^ key_change));
    CHECK(!post(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    couple_end(&c, out, true);
}

static void receive_short(struct vt *t, char *out)
{
    received(t, out, 4, 0);
}

static void receive_key(struct vt *t, char *out)
{
    received(t, out, 64, 0x5500);
}

static void receive_none(struct vt *t, char *out)
{
    struct couple c = {.rnr_retry = 1};
    couple_make(&c, t, ALL_ACCESS);
    CHECK(!post(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    couple_end(&c, out, false);
}

static void peer_reset(struct vt *t, char *out)
{
    struct couple c = {.rnr_retry = 7};
    couple_make(&c, t, ALL_ACCESS);
    CHECK(!ibv_modify_qp(c.qp[1], &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE));
    CHECK(!post(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    couple_end(&c, out, false);
}

static void send_error(struct vt *t, char *out)
{
    struct couple c = {.rnr_retry = 7};
    couple_make(&c, t, ALL_ACCESS);
    CHECK(!ibv_modify_qp(c.qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
    CHECK(!post(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8));
    couple_end(&c, out, false);
}

/* The errno of the first request that does not fit. */
static void queue_full(struct vt *t, char *out, bool receives)
{
    struct couple c = {.rnr_retry = 7};
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;
    int rc = 0, n = 0;
    couple_make(&c, t, ALL_ACCESS);
    CHECK(!ibv_query_qp(c.qp[0], &a, IBV_QP_CAP, &i));
    const int most = (int)(receives ? i.cap.max_recv_wr : i.cap.max_send_wr);
    for (; rc == 0 && n <= 4 * most; n++)
        rc = receives ? receive(c.qp[0], t, 8, t->mr->lkey)
                      : post(c.qp[0], t, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
    say_errno(out, rc);
    couple_drop(&c);
}

static void send_full(struct vt *t, char *out)
{
    queue_full(t, out, false);
}

static void receive_full(struct vt *t, char *out)
{
    queue_full(t, out, true);
}

static void send_refused(struct vt *t, char *out, struct ibv_send_wr wr, int pieces, uint32_t bytes)
{
    struct couple c = {.rnr_retry = 7};
    struct ibv_sge s[3];
    struct ibv_send_wr *bad;
    couple_make(&c, t, ALL_ACCESS);
    for (int i = 0; i < 3; i++)
        s[i] = (struct ibv_sge){(uintptr_t)t->buf, bytes, t->mr->lkey};
    wr.sg_list = s;
    wr.num_sge = pieces;
    say_errno(out, ibv_post_send(c.qp[0], &wr, &bad));
    couple_drop(&c);
}

static void send_opcode(struct vt *t, char *out)
{
    send_refused(t, out, (struct ibv_send_wr){.opcode = (enum ibv_wr_opcode)99}, 1, 8);
}

static void send_inline_long(struct vt *t, char *out)
{
    send_refused(t, out, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE}, 1,
                 65536);
}

/* ---- the table ---- */

static const struct use {
    const char *name, *want;
    void (*run)(struct vt *t, char *out);
    const char *rxe; /* what soft-RoCE does instead (Linux 6.1); NULL: the same */
} uses[] = {
    {"create_cq: no entries", "EINVAL", cq_empty, NULL},
    {"create_cq: more entries than max_cqe", "EINVAL", cq_long, NULL},
    {"create_cq: vector that is not there", "EINVAL", cq_vector, NULL},
    {"resize_cq: more entries than max_cqe", "EINVAL", cq_resize, NULL},
    {"destroy_cq: a queue pair uses it", "EBUSY", cq_busy, NULL},
    {"reg_mr: remote write without local write", "EINVAL", mr_rights, NULL},
    {"reg_mr: memory that is not mapped", "EFAULT", mr_nowhere, NULL},
    {"dealloc_pd: a region uses it", "EBUSY", pd_busy, NULL},
    {"create_qp: more requests than max_qp_wr", "EINVAL", qp_long, NULL},
    {"create_qp: more pieces than max_sge", "EINVAL", qp_pieces, NULL},
    {"create_qp: 1 MiB inline", "EINVAL", qp_inline, NULL},
    {"modify_qp: RESET to RTS", "EINVAL", qp_skip, NULL},
    {"modify_qp: INIT without a port", "EINVAL", qp_no_port, NULL},
    {"modify_qp: INIT with a port that is not there", "EINVAL", qp_bad_port, NULL},
    {"modify_qp: INIT with a P_Key index that is not there", "EINVAL", qp_bad_pkey, "0"},
    {"modify_qp: INIT of an RC queue pair with a Q_Key", "EINVAL", qp_qkey, NULL},
    {"create_srq: more requests than max_srq_wr", "EINVAL", srq_long, NULL},
    {"modify_srq: limit above its size", "EINVAL", srq_limit, NULL},
    {"destroy_srq: a queue pair uses it", "EBUSY", srq_busy, NULL},
    {"query_port: port 0", "EINVAL", port_zero, NULL},
    {"query_port: port 99", "EINVAL", port_none, NULL},
    {"query_pkey: index that is not there", "-1", pkey_none, NULL},
    {"create_ah: port that is not there", "EINVAL", ah_port, NULL},
    {"attach_mcast: an RC queue pair", "EINVAL", group_rc, NULL},
    {"attach_mcast: a GID that is no group", "EINVAL", group_gid, NULL},
    {"detach_mcast: not attached", "EINVAL", group_leave, NULL},
    {"post_send: state RESET", "EINVAL", send_reset, NULL},
    {"post_recv: state RESET", "EINVAL", receive_reset, NULL},
    {"post_send: the queue is full", "ENOMEM", send_full, NULL},
    {"post_recv: the queue is full", "ENOMEM", receive_full, NULL},
    {"post_send: opcode 99", "EINVAL", send_opcode, "0"},
    {"post_send: longer than inline data may be", "ENOMEM", send_inline_long, "EINVAL"},
    {"post_send: state ERR", "WR_FLUSH_ERR, ERR, peer RTS, -", send_error, NULL},
    {"send: wrong local key", "LOC_PROT_ERR, ERR, peer RTS, -", send_key, "LOC_QP_OP_ERR, ERR, peer RTS, -"},
    {"send: receive is too short", "REM_INV_REQ_ERR, ERR, peer ERR LOC_LEN_ERR, QP_REQ_ERR", receive_short,
     "REM_OP_ERR, ERR, peer ERR LOC_QP_OP_ERR, -"},
    {"send: receive has a wrong local key", "REM_OP_ERR, ERR, peer ERR LOC_PROT_ERR, QP_FATAL", receive_key,
     "REM_OP_ERR, ERR, peer ERR LOC_QP_OP_ERR, -"},
    {"send: no receive, rnr_retry 1", "RNR_RETRY_EXC_ERR, ERR, peer RTS, -", receive_none, NULL},
    {"send: peer in state RESET", "RETRY_EXC_ERR, ERR, peer RESET, -", peer_reset, NULL},
    {"write: wrong remote key", "REM_ACCESS_ERR, ERR, peer ERR, QP_ACCESS_ERR", write_key,
     "REM_ACCESS_ERR, ERR, peer ERR, -"},
    {"write: beyond the region", "REM_ACCESS_ERR, ERR, peer ERR, QP_ACCESS_ERR", write_bounds,
     "REM_ACCESS_ERR, ERR, peer ERR, -"},
    {"write: the queue pair does not allow it", "REM_INV_REQ_ERR, ERR, peer ERR, QP_REQ_ERR", write_right,
     "REM_INV_REQ_ERR, ERR, peer ERR, -"},
    {"read: wrong remote key", "REM_ACCESS_ERR, ERR, peer ERR, QP_ACCESS_ERR", read_key,
     "REM_ACCESS_ERR, ERR, peer ERR, -"},
    {"read: the queue pair does not allow it", "REM_INV_REQ_ERR, ERR, peer ERR, QP_REQ_ERR", read_right,
     "REM_INV_REQ_ERR, ERR, peer ERR, -"},
    {"atomic: the queue pair does not allow it", "REM_INV_REQ_ERR, ERR, peer ERR, QP_REQ_ERR", atomic_right,
     "REM_INV_REQ_ERR, ERR, peer ERR, -"},
    {"atomic: address not divisible by 8", "REM_INV_REQ_ERR, ERR, peer ERR, QP_REQ_ERR", atomic_odd,
     "EINVAL"},
};

static void table(struct vt *t)
{
    int differences = 0;
    if (t->side == 0)
        printf("%-54s %s\n", "wrong use", "status or errno, state, peer's state and receive, its event");
    for (size_t i = 0; t->side == 0 && i < sizeof(uses) / sizeof(uses[0]); i++) {
        const struct use *u = &uses[i];
        const char *want = t->rxe && u->rxe ? u->rxe : u->want;
        char got[TEXT] = "";
        u->run(t, got);
        differences += strcmp(got, want) != 0;
        printf("%-54s %s%s%s\n", u->name, got, strcmp(got, u->want) ? "   differs: " : "",
               strcmp(got, u->want) ? u->want : "");
        fflush(stdout);
    }
    vt_sync(t);
    CHECK(differences == 0, "%d uses differ from what is known", differences);
}

int main(void)
{
    return vt_run(table);
}

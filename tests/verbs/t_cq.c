/* t_cq.c: completion queues: events for any and for solicited completions only, several queues on one
 * channel, resizing with entries inside, extended polling, and sending by ibv_wr_*.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>
#include <poll.h>

static bool wait_for_event(struct vt *t, int ms, struct ibv_cq **cq)
{
    struct pollfd p = {.fd = t->ch->fd, .events = POLLIN};
    void *user;
    if (poll(&p, 1, ms) != 1)
        return false;
    CHECK(!ibv_get_cq_event(t->ch, cq, &user));
    ibv_ack_cq_events(*cq, 1);
    return true;
}

static void test_solicited(struct vt *t, struct vt_qp *q)
{
    struct ibv_cq *cq;
    if (t->side == 0) {
        for (int i = 0; i < 3; i++)
            vt_post_receive(q, t, 0, 0, 64);
        CHECK(!ibv_req_notify_cq(t->cq, 1));
        vt_sync(t);
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(!wait_for_event(t, 50, &cq), "an event of an unsolicited message, expected none");
        vt_sync(t);
        CHECK(wait_for_event(t, 30000, &cq) && cq == t->cq);
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(!wait_for_event(t, 20, &cq), "a second event without ibv_req_notify_cq");
        CHECK(!ibv_req_notify_cq(t->cq, 0));
        vt_sync(t);
        CHECK(wait_for_event(t, 30000, &cq));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    } else {
        static const unsigned flags[3] = {0, IBV_SEND_SOLICITED, 0};
        for (int i = 0; i < 3; i++) {
            vt_sync(t);
            CHECK(!vt_post_request(q, t, IBV_WR_SEND, 0, 0, 8, 0, IBV_SEND_SIGNALED | flags[i]));
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        }
    }
    vt_sync(t);
}

/* Open MPI's connection manager polls until the queue is empty and only then arms it. A completion in
 * between must raise the event nevertheless, as on the adapters that Open MPI was written for. The verbs
 * do not guarantee it, and the kernel's soft-RoCE does not do it, so the test runs only on softib. */
static void test_late_arming(struct vt *t, struct vt_qp *q)
{
    struct ibv_cq *cq;
    bool ours = !strncmp(ibv_get_device_name(t->ctx->device), "softib", 6);
    for (int solicited = 0; ours && solicited < 2; solicited++) {
        if (t->side == 0)
            vt_post_receive(q, t, 0, 0, 64);
        vt_sync(t);
        if (t->side == 1) {
            unsigned flags = solicited ? IBV_SEND_SOLICITED : 0;
            CHECK(!vt_post_request(q, t, IBV_WR_SEND, 0, 0, 8, 0, IBV_SEND_SIGNALED | flags));
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        }
        vt_sync(t); /* the sender has its completion, so the receiver's is in the receiver's queue */
        if (t->side == 0) {
            CHECK(!ibv_req_notify_cq(t->cq, 1));
            CHECK(wait_for_event(t, solicited ? 30000 : 50, &cq) == solicited);
            if (!solicited) {
                CHECK(!ibv_req_notify_cq(t->cq, 0));
                CHECK(wait_for_event(t, 30000, &cq) && cq == t->cq);
            }
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        }
        vt_sync(t);
    }
}

/* perftest arms the queue after each event, before it polls, and expects one completion per event. */
static void test_early_arming(struct vt *t, struct vt_qp *q)
{
    struct ibv_cq *cq;
    for (int i = 0; t->side == 0 && i < 3; i++)
        vt_post_receive(q, t, 0, 0, 64);
    if (t->side == 0)
        CHECK(!ibv_req_notify_cq(t->cq, 0));
    for (int i = 0; i < 3; i++) {
        vt_sync(t);
        if (t->side == 1) {
            CHECK(!vt_post_request(q, t, IBV_WR_SEND, 0, 0, 8, 0, IBV_SEND_SIGNALED));
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        } else {
            CHECK(wait_for_event(t, 30000, &cq) && cq == t->cq);
            if (i < 2)
                CHECK(!ibv_req_notify_cq(t->cq, 0));
            CHECK(!wait_for_event(t, 20, &cq), "a second event for the same completion");
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        }
    }
    vt_sync(t);
}

#define QUEUES 20

/* More queues on a channel than its descriptor has room for tokens: no event may be lost. */
static void test_many_queues(struct vt *t)
{
    struct ibv_cq *cq[QUEUES];
    struct vt_qp q[QUEUES];
    for (int i = 0; i < QUEUES; i++) {
        struct vt_opts o = vt_defaults(IBV_QPT_RC);
        CHECK((cq[i] = ibv_create_cq(t->ctx, 16, NULL, t->ch, 0)));
        o.rcq = cq[i];
        vt_qp_open(t, o, &q[i]);
        vt_post_receive(&q[i], t, 0, 0, 64);
        CHECK(!ibv_req_notify_cq(cq[i], 0));
    }
    vt_sync(t);
    if (t->side == 1)
        for (int i = 0; i < QUEUES; i++) {
            CHECK(!vt_post_request(&q[i], t, IBV_WR_SEND, 0, 0, 8, 0, IBV_SEND_SIGNALED));
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        }
    vt_sync(t);
    unsigned seen = 0;
    for (int i = 0; t->side == 0 && i < QUEUES; i++) {
        struct ibv_cq *hit;
        CHECK(wait_for_event(t, 30000, &hit), "no event for queue %d of %d in 30 s", i, QUEUES);
        for (int k = 0; k < QUEUES; k++)
            seen |= (unsigned)(cq[k] == hit) << k;
    }
    CHECK(t->side == 1 || seen == (1u << QUEUES) - 1, "%x", seen);
    for (int i = 0; i < QUEUES; i++) {
        vt_qp_close(&q[i]);
        CHECK(!ibv_destroy_cq(cq[i]));
    }
}

static void test_resize(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct ibv_cq *cq = ibv_create_cq(t->ctx, 8, NULL, NULL, 0);
    CHECK(cq);
    o.rcq = cq;
    vt_qp_open(t, o, &q);
    for (uint64_t i = 0; i < 40; i++)
        vt_post_receive(&q, t, i, 0, 64);
    vt_sync(t);
    for (int i = 0; i < 40; i++) {
        if (t->side == 1 && (i < 6 || i > 6)) {
            CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 0, 0, 8, 0, IBV_SEND_SIGNALED));
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        }
        if (i == 6) {
            vt_sync(t);
            int r = t->side ? 0 : ibv_resize_cq(cq, 64);
            CHECK(!r, "%d", r);
            CHECK(t->side || ibv_resize_cq(cq, 3) != 0, "resized to fewer entries than it holds");
            vt_sync(t);
        }
    }
    vt_sync(t);
    for (uint64_t i = 0; t->side == 0 && i < 39; i++)
        CHECK(vt_expect_completion(cq, IBV_WC_SUCCESS).wr_id == i);
    vt_sync(t);
    vt_qp_close(&q);
    CHECK(!ibv_destroy_cq(cq));
}

static void test_extended(struct vt *t)
{
    struct ibv_cq_init_attr_ex ca = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *cx = ibv_create_cq_ex(t->ctx, &ca);
    if (!cx)
        return; /* the HCA has no extended CQs */
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct vt_qp q;
    o.rcq = o.scq = ibv_cq_ex_to_cq(cx);
    o.send_ops = IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND;
    vt_qp_open(t, o, &q);
    struct ibv_qp_ex *x = ibv_qp_to_qp_ex(q.qp);
    CHECK(x);
    struct ibv_poll_cq_attr pa = {0};
    if (t->side == 0) {
        vt_post_receive(&q, t, 11, 0, 4096);
        vt_post_receive(&q, t, 12, 0, 4096);
        vt_sync(t);
        vt_sync(t);
        int r;
        while ((r = ibv_start_poll(cx, &pa)) == ENOENT)
            ;
        CHECK(!r && cx->wr_id == 11 && cx->status == IBV_WC_SUCCESS);
        CHECK(ibv_wc_read_opcode(cx) == IBV_WC_RECV && ibv_wc_read_byte_len(cx) == 24, "opcode %d, %u bytes",
              ibv_wc_read_opcode(cx), ibv_wc_read_byte_len(cx));
        CHECK(ibv_wc_read_wc_flags(cx) & IBV_WC_WITH_IMM && ibv_wc_read_imm_data(cx) == 0xabcd);
        CHECK(ibv_wc_read_qp_num(cx) == q.qp->qp_num); /* only datagrams have a source field */
        CHECK(!ibv_next_poll(cx) && cx->wr_id == 12 && ibv_wc_read_byte_len(cx) == 100);
        CHECK(ibv_next_poll(cx) == ENOENT);
        ibv_end_poll(cx);
        vt_expect_bytes(t->buf + (1u << 20), 100, 4, "written by ibv_wr_rdma_write");
    } else {
        unsigned char a[24] = {0};
        struct ibv_data_buf in[2] = {{a, 10}, {a + 10, 14}};
        vt_fill(t->buf, 100, 4);
        vt_sync(t);
        ibv_wr_start(x);
        x->wr_id = 1;
        x->wr_flags = 0;
        ibv_wr_rdma_write(x, q.peer.rkey, q.peer.buf + (1u << 20));
        ibv_wr_set_sge(x, t->mr->lkey, (uintptr_t)t->buf, 100);
        x->wr_id = 2;
        x->wr_flags = IBV_SEND_INLINE; /* rxe needs the flag; for other devices the setter suffices */
        ibv_wr_send_imm(x, 0xabcd);
        if (t->rxe) /* the provider of rxe loses the length of a list */
            ibv_wr_set_inline_data(x, a, 24);
        else
            ibv_wr_set_inline_data_list(x, 2, in);
        x->wr_id = 3;
        x->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(x);
        ibv_wr_set_sge(x, t->mr->lkey, (uintptr_t)t->buf, 100);
        CHECK(!ibv_wr_complete(x));
        ibv_wr_start(x);
        ibv_wr_send(x);
        ibv_wr_set_sge(x, t->mr->lkey, (uintptr_t)t->buf, 100);
        ibv_wr_abort(x); /* discards the list */
        int r;
        while ((r = ibv_start_poll(cx, &pa)) == ENOENT)
            ;
        CHECK(!r && cx->wr_id == 3 && ibv_wc_read_opcode(cx) == IBV_WC_SEND, "%d: request %llu, status %d", r,
              (unsigned long long)cx->wr_id, cx->status);
        ibv_end_poll(cx);
        vt_sync(t);
    }
    vt_sync(t);
    vt_qp_close(&q);
    CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cx)));
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    test_solicited(t, &q);
    test_late_arming(t, &q);
    test_early_arming(t, &q);
    vt_qp_close(&q);
    test_many_queues(t);
    test_resize(t);
    test_extended(t);
}

int main(void)
{
    return vt_run(run_test);
}

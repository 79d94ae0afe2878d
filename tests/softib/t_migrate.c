/* t_migrate.c: automatic path migration: both sides load an alternate path and rearm; the first request
 * arms the path; when the primary path fails, requests continue over the alternate path without loss or
 * duplicates, and both sides receive IBV_EVENT_PATH_MIG. By port (two ports), by path bits (LMC), by the
 * program itself, and refused requests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <poll.h>

#define ROUNDS 8

/* Changes a port on the side that owns it, since each machine controls only its own ports. */
static void set_port_state(const char *state, int side)
{
    char cmd[512];
    snprintf(cmd, sizeof(cmd), "%s ctl port %s node%d/hca0/1", getenv("SOFTIB_TOOL"), state, side);
    CHECK(system(cmd) == 0, "%s", cmd);
}

/* Waits for the event of the QP and ignores events of ports. */
static void expect_event(struct vt *t, struct vt_qp *q, enum ibv_event_type want)
{
    for (;;) {
        struct ibv_async_event e;
        struct pollfd p = {.fd = t->ctx->async_fd, .events = POLLIN};
        CHECK(poll(&p, 1, 60000) == 1, "no event \"%s\"", ibv_event_type_str(want));
        CHECK(!ibv_get_async_event(t->ctx, &e));
        enum ibv_event_type got = e.event_type;
        bool ours = got == want && e.element.qp == q->qp;
        ibv_ack_async_event(&e);
        if (ours)
            return;
        CHECK(got == IBV_EVENT_PORT_ERR || got == IBV_EVENT_PORT_ACTIVE, "\"%s\"", ibv_event_type_str(got));
    }
}

static enum ibv_mig_state query_mig_state(struct vt_qp *q)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    CHECK(!ibv_query_qp(q->qp, &a, IBV_QP_PATH_MIG_STATE, &init));
    return a.path_mig_state;
}

/* Loads an alternate path from the own port `port` to LID `lid`. */
static void load_alternate_path(struct vt_qp *q, uint8_t port, uint16_t lid, uint8_t bits)
{
    struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_REARM,
                            .alt_port_num = port,
                            .alt_timeout = 10,
                            .alt_ah_attr = {.dlid = lid, .port_num = port, .src_path_bits = bits}};
    CHECK(!ibv_modify_qp(q->qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE));
    CHECK(query_mig_state(q) == IBV_MIG_REARM);
}

static void test_refusals(struct vt *t, struct vt_qp *q)
{
    struct ibv_device_attr d;
    struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_REARM};
    CHECK(!ibv_query_device(t->ctx, &d) && d.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
    CHECK(query_mig_state(q) == IBV_MIG_MIGRATED);
    CHECK(ibv_modify_qp(q->qp, &a, IBV_QP_PATH_MIG_STATE) == EINVAL, "armed without an alternate path");
    a.alt_port_num = 9;
    a.alt_ah_attr.dlid = q->peer.lid;
    CHECK(ibv_modify_qp(q->qp, &a, IBV_QP_ALT_PATH) == EINVAL,
          "accepted an alternate path from port 9, which does not exist");
    a.alt_port_num = 1;
    a.alt_ah_attr.dlid = 0x7fff;
    CHECK(ibv_modify_qp(q->qp, &a, IBV_QP_ALT_PATH) == EINVAL,
          "accepted an alternate path to a LID of no port");
    a.path_mig_state = IBV_MIG_ARMED;
    a.alt_ah_attr.dlid = q->peer.lid;
    CHECK(ibv_modify_qp(q->qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) == EINVAL,
          "the program changed the state to IBV_MIG_ARMED");
}

/* Side 1 sends `ROUNDS` numbered messages, side 0 checks that each arrived once and in order. */
static void send_and_check_messages(struct vt *t, struct vt_qp *q, unsigned seed)
{
    for (unsigned i = 0; i < ROUNDS && t->side == 0; i++)
        vt_post_receive(q, t, i, 4096 * i, 4096);
    vt_sync(t);
    for (unsigned i = 0; i < ROUNDS && t->side == 1; i++) {
        vt_fill(t->buf + 4096 * i, 4000, seed + i);
        CHECK(!vt_post_request(q, t, IBV_WR_SEND, i, 4096 * i, 4000, 0, IBV_SEND_SIGNALED));
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == i);
        if (t->side == 0)
            vt_expect_bytes(t->buf + 4096 * i, 4000, seed + i, "after migration");
    }
    CHECK(vt_has_no_completion(t->cq, 5), "a message arrived twice");
    vt_sync(t);
}

/* Takes down the port of side `away`, 1 (requester) or 0 (responder); -1: no port, the program migrates the
 * QP. */
static void test_by_port(struct vt *t, int away)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct ibv_port_attr second;
    uint16_t mine, theirs;
    o.timeout = 10;
    o.retry = 2;
    vt_qp_open(t, o, &q);
    if (away < 0)
        test_refusals(t, &q);
    CHECK(!ibv_query_port(t->ctx, 2, &second));
    mine = second.lid;
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    load_alternate_path(&q, 2, theirs, 0);
    vt_sync(t);
    send_and_check_messages(t, &q, 1);
    CHECK(query_mig_state(&q) == IBV_MIG_ARMED, "migration state %d, expected IBV_MIG_ARMED",
          query_mig_state(&q));
    vt_sync(t);
    if (t->side == away) {
        set_port_state("down", away);
    } else if (away < 0 && t->side == 1) {
        struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_MIGRATED};
        CHECK(!ibv_modify_qp(q.qp, &a, IBV_QP_PATH_MIG_STATE));
    }
    vt_sync(t);
    send_and_check_messages(t, &q, 50);
    expect_event(t, &q, IBV_EVENT_PATH_MIG);
    CHECK(query_mig_state(&q) == IBV_MIG_MIGRATED);
    vt_sync(t);
    if (t->side == away)
        set_port_state("up", away);
    vt_sync(t);
    load_alternate_path(&q, 1, q.peer.lid, 0); /* the alternate path is the first path again */
    vt_sync(t);
    send_and_check_messages(t, &q, 100);
    CHECK(query_mig_state(&q) == IBV_MIG_ARMED);
    vt_sync(t);
    if (t->side == 0) { /* side 0, which has not sent anything yet, migrates now */
        struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_MIGRATED};
        CHECK(!ibv_modify_qp(q.qp, &a, IBV_QP_PATH_MIG_STATE));
        expect_event(t, &q, IBV_EVENT_PATH_MIG);
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 7, 0, 64, 1u << 20, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    } else {
        expect_event(t, &q, IBV_EVENT_PATH_MIG);
    }
    vt_sync(t);
    send_and_check_messages(t, &q, 150);
    vt_qp_close(&q);
}

/* One port per side: the paths differ only in their path bits, and completions show which path was used. */
static void test_by_path_bits(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 10;
    vt_qp_open(t, o, &q);
    load_alternate_path(&q, 1, (uint16_t)(q.peer.lid + 1), 1);
    vt_sync(t);
    send_and_check_messages(t, &q, 20);
    CHECK(query_mig_state(&q) == IBV_MIG_ARMED);
    vt_sync(t);
    if (t->side == 1) {
        struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_MIGRATED};
        CHECK(!ibv_modify_qp(q.qp, &a, IBV_QP_PATH_MIG_STATE));
    } else {
        vt_post_receive(&q, t, 99, 0, 64);
    }
    vt_sync(t);
    if (t->side == 1) {
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 1, 0, 32, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    } else {
        struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(wc.wr_id == 99 && wc.slid == q.peer.lid + 1 && wc.dlid_path_bits == 1, "slid %u, bits %u",
              wc.slid, wc.dlid_path_bits);
    }
    expect_event(t, &q, IBV_EVENT_PATH_MIG);
    vt_sync(t);
    vt_qp_close(&q);
}

/* If the sides disagree on the alternate path, the responder reports an error event and the requester gets
 * no answer. */
static void test_disagreeing_sides(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 8;
    o.retry = 1;
    vt_qp_open(t, o, &q);
    load_alternate_path(&q, 1, (uint16_t)(q.peer.lid + 1), (uint8_t)(t->side == 1 ? 0 : 1));
    vt_sync(t);
    send_and_check_messages(t, &q, 30);
    vt_sync(t);
    if (t->side == 1) {
        struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_MIGRATED};
        CHECK(!ibv_modify_qp(q.qp, &a, IBV_QP_PATH_MIG_STATE));
        expect_event(t, &q, IBV_EVENT_PATH_MIG);
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 1, 0, 32, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_RETRY_EXC_ERR);
    } else {
        expect_event(t, &q, IBV_EVENT_PATH_MIG_ERR);
    }
    vt_sync(t);
    vt_qp_close(&q);
}

static void run_test(struct vt *t)
{
    test_by_port(t, -1);
    test_by_port(t, 1);
    test_by_port(t, 0);
    test_by_path_bits(t);
    test_disagreeing_sides(t);
}

int main(void)
{
    return vt_run(run_test);
}

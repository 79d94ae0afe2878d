/* t_give_up.c: a queue pair is moved to the error state while messages arrive. Receives complete in the
 * order of posting, receives with a message before flushed ones; and every message that the sender's
 * completions report as delivered has arrived.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "vt.h"

enum { ROUNDS = 600, MESSAGES = 24, BYTES = 48 * 1024 };

/* After this time a sender that waits for an answer has given up, and no more messages arrive. */
#define PATIENCE_NS 200000000

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void move_to_error(struct vt_qp *q, bool *done)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    if (!*done)
        CHECK(!ibv_modify_qp(q->qp, &a, IBV_QP_STATE));
    *done = true;
}

/* Moves the queue pair to the error state after `before` messages. Returns the number of all messages
 * received. */
static unsigned receive_and_give_up(struct vt_qp *q, struct ibv_cq *cq, unsigned before)
{
    unsigned good = 0;
    bool done = false;
    for (unsigned i = 0; i < MESSAGES; i++) {
        const uint64_t since = now_ns();
        struct ibv_wc wc;
        int n;
        if (i == before)
            move_to_error(q, &done);
        while (!(n = ibv_poll_cq(cq, 1, &wc)))
            if (now_ns() - since > PATIENCE_NS)
                move_to_error(q, &done);
        CHECK(n == 1);
        CHECK(wc.wr_id == i, "receive %u completed, expected receive %u", (unsigned)wc.wr_id, i);
        CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
        CHECK(wc.status != IBV_WC_SUCCESS || good == i, "a message arrived in a receive after a flushed one");
        good += wc.status == IBV_WC_SUCCESS;
    }
    return good;
}

static unsigned send_all_messages(struct vt *t, struct vt_qp *q, struct ibv_cq *cq)
{
    unsigned good = 0;
    for (unsigned i = 0; i < MESSAGES; i++)
        CHECK(!vt_post_request(q, t, IBV_WR_SEND, i, 0, BYTES, 0, IBV_SEND_SIGNALED));
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct ibv_wc wc;
        int n;
        while (!(n = ibv_poll_cq(cq, 1, &wc)))
            ;
        CHECK(n == 1);
        CHECK(wc.wr_id == i && (wc.status != IBV_WC_SUCCESS || good == i));
        good += wc.status == IBV_WC_SUCCESS;
    }
    return good;
}

static void run_test(struct vt *t)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct vt_opts o = vt_defaults(IBV_QPT_RC);
        struct vt_qp q;
        unsigned good, theirs;
        o.send_wr = o.recv_wr = MESSAGES;
        o.timeout = 10; /* 4 ms */
        o.retry = 0;
        CHECK((o.scq = o.rcq = ibv_create_cq(t->ctx, 2 * MESSAGES, NULL, NULL, 0)));
        vt_qp_create(t, o, &q);
        for (unsigned i = 0; i < MESSAGES && t->side == 0; i++)
            vt_post_receive(&q, t, i, (size_t)i * BYTES, BYTES);
        vt_qp_connect(t, o, &q);
        vt_sync(t);
        good = t->side == 0 ? receive_and_give_up(&q, o.rcq, 1 + round % (MESSAGES / 2))
                            : send_all_messages(t, &q, o.scq);
        vt_exchange(t, &good, &theirs, sizeof(good));
        CHECK(t->side == 1 || theirs <= good,
              "%u messages arrived, but the sender got %u successful completions", good, theirs);
        vt_qp_close(&q);
        CHECK(!ibv_destroy_cq(o.rcq));
    }
}

int main(void)
{
    return vt_run(run_test);
}

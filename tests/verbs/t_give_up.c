/* t_give_up.c: a queue pair is put into the error state while messages arrive. Receives complete in the order in which they were
 * posted, those with a message before those that are flushed; and every message that the sender's completions report as delivered is there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "vt.h"

enum { ROUNDS = 600, MESSAGES = 24, BYTES = 48 * 1024 };

/* A sender that had to wait for an answer has given up before us: nothing more comes. */
#define PATIENCE_NS 200000000

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void give_up(struct vt_qp *q, bool *done)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    if (!*done)
        CHECK(!ibv_modify_qp(q->qp, &a, IBV_QP_STATE));
    *done = true;
}

/* Gives up when `before` messages have come. Returns the number of messages that came in all. */
static unsigned give_up_receive(struct vt_qp *q, struct ibv_cq *cq, unsigned before)
{
    unsigned good = 0;
    bool done = false;
    for (unsigned i = 0; i < MESSAGES; i++) {
        const uint64_t since = now_ns();
        struct ibv_wc wc;
        int n;
        if (i == before)
            give_up(q, &done);
        while (!(n = ibv_poll_cq(cq, 1, &wc)))
            if (now_ns() - since > PATIENCE_NS)
                give_up(q, &done);
        CHECK(n == 1);
        CHECK(wc.wr_id == i, "receive %u completed as number %u", (unsigned)wc.wr_id, i);
        CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
        CHECK(wc.status != IBV_WC_SUCCESS || good == i, "a message after a flushed receive");
        good += wc.status == IBV_WC_SUCCESS;
    }
    return good;
}

static unsigned send_all(struct vt *t, struct vt_qp *q, struct ibv_cq *cq)
{
    unsigned good = 0;
    for (unsigned i = 0; i < MESSAGES; i++)
        CHECK(!vt_post(q, t, IBV_WR_SEND, i, 0, BYTES, 0, IBV_SEND_SIGNALED));
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

static void give_up_run_test(struct vt *t)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct vt_opts o = vt_defaults(IBV_QPT_RC);
        struct vt_qp q;
        unsigned good, theirs;
        o.send_wr = o.recv_wr = MESSAGES;
        o.timeout = 10; /* 4 ms */
        o.retry = 0;
        CHECK((o.scq = o.rcq = ibv_create_cq(t->ctx, 2 * MESSAGES, NULL, NULL, 0)));
        vt_qp_init(t, o, &q);
        for (unsigned i = 0; i < MESSAGES && t->side == 0; i++)
            vt_recv(&q, t, i, (size_t)i * BYTES, BYTES);
        vt_qp_connect(t, o, &q);
        vt_sync(t);
        good = t->side == 0 ? give_up_receive(&q, o.rcq, 1 + round % (MESSAGES / 2)) : send_all(t, &q, o.scq);
        vt_swap(t, &good, &theirs, sizeof(good));
        CHECK(t->side == 1 || theirs <= good, "%u messages had arrived, but %u completed at the sender", good,
              theirs);
        vt_qp_end(&q);
        CHECK(!ibv_destroy_cq(o.rcq));
    }
}

int main(void)
{
    return vt_run(give_up_run_test);
}

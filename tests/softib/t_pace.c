/*
 * The link model is a lower bound on time that no load of the machine can undercut: bytes over a
 * limited port never arrive faster than its rate, an answer never sooner than two latencies. And the
 * data is right, with many requests in flight.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "../verbs/vt.h"
#include <time.h>

#define MESSAGE (1u << 20)
#define COUNT   24

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void rate(struct vt *t, enum ibv_wr_opcode op)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 20;
    vt_qp_make(t, o, &q);
    vt_fill(t->buf + (t->side ? 0 : 4u << 20), MESSAGE, 5);
    vt_sync(t);
    if (t->side == 1) {
        double start = now();
        size_t off = op == IBV_WR_RDMA_READ ? 2u << 20 : 0, roff = 4u << 20;
        for (unsigned i = 0; i < COUNT; i++)
            CHECK(!vt_post(&q, t, op, i, off, MESSAGE, roff, IBV_SEND_SIGNALED));
        for (unsigned i = 0; i < COUNT; i++)
            CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).wr_id == i);
        double took = now() - start, least = (double)COUNT * MESSAGE / 200e6;
        CHECK(took > least * 0.95, "%.0f MB/s over a link of 200", (double)COUNT * MESSAGE / took / 1e6);
        if (op == IBV_WR_RDMA_READ)
            vt_expect(t->buf + off, MESSAGE, 5, "paced read");
    }
    vt_sync(t);
    if (t->side == 0)
        vt_expect(t->buf + (4u << 20), MESSAGE, 5, "paced");
    vt_qp_end(&q);
}

static void latency(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 20;
    vt_qp_init(t, o, &q);
    vt_recv(&q, t, 1, 0, 64);
    vt_qp_connect(t, o, &q);
    double start = now();
    if (t->side == 1) {
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 2, 0, 8, 0, 0));
        vt_wc(t->cq, IBV_WC_SUCCESS);
        CHECK(now() - start > 2 * 0.0015, "there and back in %.0f us over a link of 1.5 ms",
              (now() - start) * 1e6);
    } else {
        vt_wc(t->cq, IBV_WC_SUCCESS);
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 2, 0, 8, 0, 0));
    }
    vt_sync(t);
    vt_qp_end(&q);
}

static void test(struct vt *t)
{
    rate(t, IBV_WR_RDMA_WRITE);
    rate(t, IBV_WR_RDMA_READ);
    if (!getenv("PACE_NO_LATENCY"))
        latency(t);
}

int main(void)
{
    return vt_run(test);
}

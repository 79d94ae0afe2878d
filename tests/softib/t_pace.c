/* t_pace.c: the link model is a lower bound on time that no load of the machine can undercut: bytes over a
 * limited port never arrive faster than its rate, an answer never sooner than two latencies. And the data is
 * right, with many requests in flight. With PACE_BUS an adapter's bus is the limit, for both directions together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <time.h>

#define MESSAGE (1u << 20)
#define COUNT   24

static double pace_clock(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void test_rate(struct vt *t, enum ibv_wr_opcode op)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 20;
    vt_qp_make(t, o, &q);
    vt_fill(t->buf + (t->side ? 0 : 4u << 20), MESSAGE, 5);
    vt_sync(t);
    if (t->side == 1) {
        double start = pace_clock();
        size_t off = op == IBV_WR_RDMA_READ ? 2u << 20 : 0, roff = 4u << 20;
        for (unsigned i = 0; i < COUNT; i++)
            CHECK(!vt_post(&q, t, op, i, off, MESSAGE, roff, IBV_SEND_SIGNALED));
        for (unsigned i = 0; i < COUNT; i++)
            CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).wr_id == i);
        double took = pace_clock() - start, least = (double)COUNT * MESSAGE / 200e6;
        CHECK(took > least * 0.95, "%.0f MB/s over a link of 200", (double)COUNT * MESSAGE / took / 1e6);
        if (op == IBV_WR_RDMA_READ)
            vt_expect(t->buf + off, MESSAGE, 5, "paced read");
    }
    vt_sync(t);
    if (t->side == 0)
        vt_expect(t->buf + (4u << 20), MESSAGE, 5, "paced");
    vt_qp_end(&q);
}

static void test_latency(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 20;
    vt_qp_init(t, o, &q);
    vt_recv(&q, t, 1, 0, 64);
    vt_qp_connect(t, o, &q);
    double start = pace_clock();
    if (t->side == 1) {
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 2, 0, 8, 0, 0));
        vt_wc(t->cq, IBV_WC_SUCCESS);
        CHECK(pace_clock() - start > 2 * 0.0015, "there and back in %.0f us over a link of 1.5 ms",
              (pace_clock() - start) * 1e6);
    } else {
        vt_wc(t->cq, IBV_WC_SUCCESS);
        CHECK(!vt_post(&q, t, IBV_WR_SEND, 2, 0, 8, 0, 0));
    }
    vt_sync(t);
    vt_qp_end(&q);
}

/* Both sides write at the same time: each direction may have its rate, but both share the adapter's bus. */
static void test_bus(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    double least = 2.0 * COUNT * MESSAGE / 200e6;
    o.timeout = 20;
    vt_qp_make(t, o, &q);
    vt_fill(t->buf, MESSAGE, 7);
    /* Before the other side's first request too, which may be posted while the scheduler delays this side. */
    double start = pace_clock();
    vt_sync(t);
    for (unsigned i = 0; i < COUNT; i++)
        CHECK(!vt_post(&q, t, IBV_WR_RDMA_WRITE, i, 0, MESSAGE, 4u << 20, IBV_SEND_SIGNALED));
    for (unsigned i = 0; i < COUNT; i++)
        CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).wr_id == i);
    vt_sync(t); /* both are done */
    double took = pace_clock() - start;
    CHECK(took > least * 0.95, "%.0f MB/s over a bus of 200", 2.0 * COUNT * MESSAGE / took / 1e6);
    vt_expect(t->buf + (4u << 20), MESSAGE, 7, "over the bus");
    vt_qp_end(&q);
}

/* A multicast packet passes the sender's port like any other, once, however many members there are. */
static void test_multicast(struct vt *t)
{
    struct vt_qp q;
    union ibv_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b, [15] = 0x77}};
    struct ibv_ah_attr to = {
        .dlid = 0xc001, .is_global = 1, .port_num = 1, .grh = {.dgid = group, .hop_limit = 1}};
    unsigned packets = 3000, bytes = 4096, window = 64;
    vt_qp_make(t, vt_defaults(IBV_QPT_UD), &q);
    CHECK(!ibv_attach_mcast(q.qp, &group, 0xc001));
    vt_sync(t);
    if (t->side == 1) {
        struct ibv_ah *ah = ibv_create_ah(t->pd, &to);
        struct ibv_sge s = {(uintptr_t)t->buf, bytes, t->mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.ud = {ah, 0xffffff, 0x1111}},
                           *bad;
        CHECK(ah);
        double start = pace_clock();
        for (unsigned sent = 0, done = 0; done < packets; done++) {
            for (; sent < packets && sent - done < window; sent++)
                CHECK(!ibv_post_send(q.qp, &wr, &bad));
            vt_wc(t->cq, IBV_WC_SUCCESS);
        }
        double took = pace_clock() - start, least = (double)packets * bytes / 200e6;
        CHECK(took > least * 0.95, "%.0f MB/s of multicast over a link of 200",
              (double)packets * bytes / took / 1e6);
        CHECK(!ibv_destroy_ah(ah));
    }
    vt_sync(t);
    CHECK(!ibv_detach_mcast(q.qp, &group, 0xc001));
    vt_qp_end(&q);
}

static void pace_run_test(struct vt *t)
{
    if (getenv("PACE_BUS")) {
        test_bus(t);
        return;
    }
    test_rate(t, IBV_WR_RDMA_WRITE);
    test_rate(t, IBV_WR_RDMA_READ);
    if (!getenv("PACE_NO_LATENCY")) {
        test_latency(t);
        test_multicast(t);
    }
}

int main(void)
{
    return vt_run(pace_run_test);
}

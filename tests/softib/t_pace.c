/* t_pace.c: the link model is a lower bound of transfer times under any load: bytes over a limited port
 * never arrive faster than its rate, and an answer never sooner than two latencies. The data is correct
 * with many requests in flight. With PACE_BUS the limit is the adapter's bus, shared by both directions. With
 * PACE_HIGH the port has a virtual lane of high priority: a packet on it overtakes those that wait for the link.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"

#define CONTROL 100000u
#define MESSAGE (1u << 20)
#define COUNT   24

static void test_rate(struct vt *t, enum ibv_wr_opcode op)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 20;
    vt_qp_open(t, o, &q);
    vt_fill(t->buf + (t->side ? 0 : 4u << 20), MESSAGE, 5);
    vt_sync(t);
    if (t->side == 1) {
        double start = vt_now_seconds();
        size_t off = op == IBV_WR_RDMA_READ ? 2u << 20 : 0, roff = 4u << 20;
        for (unsigned i = 0; i < COUNT; i++)
            CHECK(!vt_post_request(&q, t, op, i, off, MESSAGE, roff, IBV_SEND_SIGNALED));
        for (unsigned i = 0; i < COUNT; i++)
            CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == i);
        double took = vt_now_seconds() - start, least = (double)COUNT * MESSAGE / 200e6;
        CHECK(took > least * 0.95, "%.0f MB/s over a link of 200 MB/s", (double)COUNT * MESSAGE / took / 1e6);
        if (op == IBV_WR_RDMA_READ)
            vt_expect_bytes(t->buf + off, MESSAGE, 5, "paced read");
    }
    vt_sync(t);
    if (t->side == 0)
        vt_expect_bytes(t->buf + (4u << 20), MESSAGE, 5, "paced");
    vt_qp_close(&q);
}

static void test_latency(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 20;
    vt_qp_create(t, o, &q);
    vt_post_receive(&q, t, 1, 0, 64);
    vt_qp_connect(t, o, &q);
    double start = vt_now_seconds();
    if (t->side == 1) {
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 2, 0, 8, 0, 0));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(vt_now_seconds() - start > 2 * 0.0015,
              "round trip of %.0f us over a link with a latency of 1.5 ms", (vt_now_seconds() - start) * 1e6);
    } else {
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(!vt_post_request(&q, t, IBV_WR_SEND, 2, 0, 8, 0, 0));
    }
    vt_sync(t);
    vt_qp_close(&q);
}

/* Both sides write at the same time: the two directions share the rate of the adapter's bus. */
static void test_bus(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    double least = 2.0 * COUNT * MESSAGE / 200e6;
    o.timeout = 20;
    vt_qp_open(t, o, &q);
    vt_fill(t->buf, MESSAGE, 7);
    /* The start must precede the other side's first request, which may be posted while the scheduler
     * delays this side. */
    double start = vt_now_seconds();
    vt_sync(t);
    for (unsigned i = 0; i < COUNT; i++)
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, i, 0, MESSAGE, 4u << 20, IBV_SEND_SIGNALED));
    for (unsigned i = 0; i < COUNT; i++)
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == i);
    vt_sync(t); /* both sides have completed their writes */
    double took = vt_now_seconds() - start;
    CHECK(took > least * 0.95, "%.0f MB/s over a bus of 200 MB/s", 2.0 * COUNT * MESSAGE / took / 1e6);
    vt_expect_bytes(t->buf + (4u << 20), MESSAGE, 7, "over the bus");
    vt_qp_close(&q);
}

/* A large write occupies the link for a second. A message that is posted after it on another QP arrives after
 * the write, unless its service level has the high-priority virtual lane. It is long enough that a late thread
 * does not find both due at the same time. */
static void test_service_level(struct vt *t, uint8_t level, bool overtakes)
{
    struct vt_qp bulk, control;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 20;
    vt_qp_open(t, o, &bulk);
    o.sl = level;
    vt_qp_create(t, o, &control);
    if (t->side == 0)
        vt_post_receive(&control, t, 1, 0, CONTROL);
    vt_qp_connect(t, o, &control);
    vt_sync(t);
    if (t->side == 1) {
        const unsigned first = overtakes ? 2 : 1;
        CHECK(!vt_post_request(&bulk, t, IBV_WR_RDMA_WRITE, 1, 0, MESSAGE, 4u << 20, IBV_SEND_SIGNALED));
        CHECK(!vt_post_request(&control, t, IBV_WR_SEND, 2, 0, CONTROL, 0, IBV_SEND_SIGNALED));
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == first,
              "the %s completed first, with service level %u", overtakes ? "write" : "message", level);
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == 3 - first);
    } else {
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    }
    vt_sync(t);
    vt_qp_close(&control);
    vt_qp_close(&bulk);
}

/* A multicast packet passes the sender's port once, for any number of members. */
static void test_multicast(struct vt *t)
{
    struct vt_qp q;
    union ibv_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b, [15] = 0x77}};
    struct ibv_ah_attr to = {
        .dlid = 0xc001, .is_global = 1, .port_num = 1, .grh = {.dgid = group, .hop_limit = 1}};
    unsigned packets = 3000, bytes = 4096, window = 64;
    vt_qp_open(t, vt_defaults(IBV_QPT_UD), &q);
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
        double start = vt_now_seconds();
        for (unsigned sent = 0, done = 0; done < packets; done++) {
            for (; sent < packets && sent - done < window; sent++)
                CHECK(!ibv_post_send(q.qp, &wr, &bad));
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        }
        double took = vt_now_seconds() - start, least = (double)packets * bytes / 200e6;
        CHECK(took > least * 0.95, "%.0f MB/s of multicast over a link of 200 MB/s",
              (double)packets * bytes / took / 1e6);
        CHECK(!ibv_destroy_ah(ah));
    }
    vt_sync(t);
    CHECK(!ibv_detach_mcast(q.qp, &group, 0xc001));
    vt_qp_close(&q);
}

static void run_test(struct vt *t)
{
    if (getenv("PACE_HIGH")) {
        test_service_level(t, 2, false);
        test_service_level(t, 3, true);
        test_service_level(t, 15, true);
        return;
    }
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
    return vt_run(run_test);
}

/* t_ports.c: ports and paths: every LID of a port (LMC) is a path to the port, and completions show the
 * path used; a port that the tool takes down loses packets and raises events, and works again after it
 * comes up; a removed adapter stays unusable. With PORTS_LATENCY: requests in flight when a port goes
 * down.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include "fabric/registry.h"
#include <poll.h>

static void run_tool(const char *args)
{
    char cmd[512];
    snprintf(cmd, sizeof(cmd), "%s %s", getenv("SOFTIB_TOOL"), args);
    CHECK(system(cmd) == 0, "%s", cmd);
}

static void expect_event(struct vt *t, enum ibv_event_type want)
{
    struct ibv_async_event e;
    struct pollfd p = {.fd = t->ctx->async_fd, .events = POLLIN};
    CHECK(poll(&p, 1, 30000) == 1, "no event \"%s\"", ibv_event_type_str(want));
    CHECK(!ibv_get_async_event(t->ctx, &e) && e.event_type == want && e.element.port_num == 1, "\"%s\"",
          ibv_event_type_str(e.event_type));
    ibv_ack_async_event(&e);
}

static void post_ud(struct vt *t, struct vt_qp *q, struct ibv_ah *ah)
{
    struct ibv_sge s = {(uintptr_t)t->buf, 32, t->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = q->peer.qpn;
    wr.wr.ud.remote_qkey = 0x1111;
    CHECK(!ibv_post_send(q->qp, &wr, &bad));
    vt_expect_completion(t->cq, IBV_WC_SUCCESS);
}

static void test_paths(struct vt *t, struct vt_qp *q)
{
    CHECK(t->port.lmc == 2 && t->port.lid % 4 == 0);
    for (unsigned k = 0; k < 4; k++) {
        if (t->side == 1) {
            struct ibv_ah_attr a = {
                .dlid = (uint16_t)(q->peer.lid + k), .port_num = 1, .src_path_bits = (uint8_t)(3 - k)};
            struct ibv_ah *ah = ibv_create_ah(t->pd, &a);
            CHECK(ah);
            vt_sync(t);
            post_ud(t, q, ah);
            CHECK(!ibv_destroy_ah(ah));
        } else {
            vt_post_receive(q, t, 1, 0, 256);
            vt_sync(t);
            struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.dlid_path_bits == k && wc.slid == q->peer.lid + 3 - k, "dlid_path_bits %u, slid %u",
                  wc.dlid_path_bits, wc.slid);
        }
    }
    struct ibv_ah_attr a = {.dlid = q->peer.lid, .port_num = 1, .src_path_bits = 4};
    CHECK(!ibv_create_ah(t->pd, &a), "created an address handle for a fifth path");
}

static void test_down_and_up(struct vt *t, struct vt_qp *ud)
{
    struct vt_qp rc;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct ibv_port_attr pa;
    o.timeout = 10;
    o.retry = 2;
    vt_qp_open(t, o, &rc);
    vt_post_receive(ud, t, 9, 0, 256);
    vt_sync(t);
    struct ibv_ah *ah = vt_create_ah(t, &ud->peer);
    if (t->side == 0) {
        run_tool("ctl port down node0/hca0/1");
        expect_event(t, IBV_EVENT_PORT_ERR);
        CHECK(!ibv_query_port(t->ctx, 1, &pa) && pa.state == IBV_PORT_DOWN);
    }
    vt_sync(t);
    if (t->side == 1) {
        post_ud(t, ud, ah);
        CHECK(!vt_post_request(&rc, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_RETRY_EXC_ERR);
    }
    vt_sync(t);
    if (t->side == 0) {
        CHECK(vt_has_no_completion(t->cq, 20), "a datagram arrived through a port that is down");
        run_tool("ctl port up node0");
        expect_event(t, IBV_EVENT_PORT_ACTIVE);
    }
    vt_sync(t);
    if (t->side == 1)
        post_ud(t, ud, ah);
    else
        CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).wr_id == 9);
    CHECK(!ibv_destroy_ah(ah));
    vt_qp_close(&rc);
}

/* Opens the registry directly, as the tool does: starting the tool takes longer than an answer. */
static struct registry *open_registry(struct fabric *f)
{
    char err[256];
    CHECK(fabric_parse(getenv("SOFTIB_FABRIC"), f, err, sizeof(err)), "%s", err);
    int fd = registry_find(registry_key(f));
    struct registry *r = fd < 0 ? NULL : registry_map(fd);
    CHECK(r, "cannot open the registry");
    return r;
}

static uint64_t count_retries(const struct registry *r)
{
    uint64_t n = 0;
    for (uint32_t m = 1; m < MEMBERS; m++)
        n += atomic_load(&r->tally[m][1].count[CNT_RETRIES]);
    return n;
}

static void post_fetch_and_add(struct vt *t, struct vt_qp *q)
{
    struct ibv_sge s = {(uintptr_t)t->buf + 64, 8, t->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 3,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.atomic.remote_addr = q->peer.buf;
    wr.wr.atomic.rkey = q->peer.rkey;
    wr.wr.atomic.compare_add = 1;
    CHECK(!ibv_post_send(q->qp, &wr, &bad));
}

/* The port goes down while the answer to a request is in flight: the request was executed and fails
 * nevertheless, as on an HCA. If the port returns in time, the answer is requested again, and nothing is
 * executed twice. Returns false if the machine was too slow to take the port down before the answer
 * arrived, so that nothing was tested. The answer arrives no sooner than two latencies after the post,
 * which is after `start`. (A limit counted from the moment at which this side sees the request executed
 * would be too late by any scheduling delay.) */
#define LATENCY 0.1 /* latency of the fabric in seconds */
static bool test_answer_in_flight(struct vt *t, bool returns)
{
    struct vt_qp rc;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    volatile uint64_t *counter = (volatile uint64_t *)(void *)t->buf;
    bool in_time = true, theirs;
    o.timeout = returns ? 17 : 8;
    o.retry = returns ? 7 : 1;
    vt_qp_open(t, o, &rc);
    counter[0] = 5;
    struct fabric f;
    struct registry *reg = open_registry(&f);
    uint64_t before = count_retries(reg);
    double start = vt_now_seconds();
    vt_sync(t);
    if (t->side == 1) {
        post_fetch_and_add(t, &rc);
    } else {
        while (counter[0] == 5)
            ;
        atomic_store(&reg->port[0].up, 0);
        in_time = vt_now_seconds() - start < 2 * LATENCY;
        while (in_time && returns && count_retries(reg) == before)
            ;
        if (returns)
            atomic_store(&reg->port[0].up, 1);
    }
    vt_exchange(t, &in_time, &theirs, sizeof(in_time));
    in_time = t->side == 0 ? in_time : theirs;
    if (t->side == 1) {
        struct ibv_wc wc;
        while (!ibv_poll_cq(t->cq, 1, &wc))
            ;
        CHECK(!in_time || wc.status == (returns ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR), "%s",
              ibv_wc_status_str(wc.status));
    }
    vt_sync(t);
    if (t->side == 0) {
        CHECK(counter[0] == 6, "the atomic was executed %llu times, expected 1",
              (unsigned long long)counter[0] - 5);
        atomic_store(&reg->port[0].up, 1);
    }
    vt_sync(t);
    vt_qp_close(&rc);
    fabric_free(&f);
    return in_time;
}

/* The adapter is removed: posted requests are flushed, the program gets an event, and the device cannot be
 * used again. */
static void test_removed(struct vt *t)
{
    struct vt_qp rc;
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    struct ibv_port_attr pa;
    struct ibv_async_event e = {0};
    o.timeout = 10;
    o.retry = 1;
    vt_qp_create(t, o, &rc);
    vt_post_receive(&rc, t, 8, 0, 64);
    vt_qp_connect(t, o, &rc);
    vt_sync(t);
    if (t->side == 0) {
        run_tool("ctl hca remove node0/hca0");
        for (bool fatal = false; !fatal; fatal = e.event_type == IBV_EVENT_DEVICE_FATAL) {
            CHECK(!ibv_get_async_event(t->ctx, &e));
            CHECK(e.event_type == IBV_EVENT_DEVICE_FATAL || e.event_type == IBV_EVENT_PORT_ERR, "\"%s\"",
                  ibv_event_type_str(e.event_type));
            ibv_ack_async_event(&e);
        }
        CHECK(vt_expect_completion(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 8);
        CHECK(ibv_query_port(t->ctx, 1, &pa) == EIO);
        struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};
        CHECK(!ibv_modify_qp(rc.qp, &a, IBV_QP_STATE));
        a = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
        CHECK(ibv_modify_qp(rc.qp, &a,
                            IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS) == EIO);
    }
    vt_sync(t);
    if (t->side == 1) {
        CHECK(!vt_post_request(&rc, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_RETRY_EXC_ERR);
        CHECK(vt_expect_completion(t->cq, IBV_WC_WR_FLUSH_ERR).wr_id == 8);
    }
    vt_sync(t);
    vt_qp_close(&rc);
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    if (getenv("PORTS_LATENCY")) {
        while (!test_answer_in_flight(t, true))
            ;
        while (!test_answer_in_flight(t, false))
            ;
        return;
    }
    vt_qp_open(t, vt_defaults(IBV_QPT_UD), &q);
    test_paths(t, &q);
    test_down_and_up(t, &q);
    vt_sync(t);
    vt_qp_close(&q);
    test_removed(t);
}

int main(void)
{
    return vt_run(run_test);
}

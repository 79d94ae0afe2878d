/* t_srq.c: shared receive queues: several QPs use one SRQ, the limit event is raised once, resizing keeps
 * posted requests, and a failing QP leaves the SRQ intact but reports that it has taken its last request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>
#include <poll.h>

#define QPS 3

static void post_to_srq(struct ibv_srq *srq, struct vt *t, uint64_t id)
{
    struct ibv_sge s = {(uintptr_t)t->buf + id * 4096, 4096, t->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

static void expect_event(struct vt *t, enum ibv_event_type want)
{
    struct ibv_async_event e;
    struct pollfd p = {.fd = t->ctx->async_fd, .events = POLLIN};
    CHECK(poll(&p, 1, 30000) == 1, "no asynchronous event, expected \"%s\"", ibv_event_type_str(want));
    CHECK(!ibv_get_async_event(t->ctx, &e));
    CHECK(e.event_type == want, "got \"%s\", expected \"%s\"", ibv_event_type_str(e.event_type),
          ibv_event_type_str(want));
    ibv_ack_async_event(&e);
}

static void run_test(struct vt *t)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 16, .max_sge = 2}};
    struct ibv_srq *srq = ibv_create_srq(t->pd, &a);
    CHECK(srq);
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.srq = srq;
    struct vt_qp q[QPS];
    for (int i = 0; i < QPS; i++)
        vt_qp_open(t, o, &q[i]);
    if (t->side == 0) {
        for (uint64_t i = 0; i < 8; i++)
            post_to_srq(srq, t, i);
        struct ibv_srq_attr limit = {.srq_limit = 4}, now = {0};
        CHECK(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
        CHECK(!ibv_query_srq(srq, &now) && now.srq_limit == 4);
        struct ibv_srq_attr size = {.max_wr = 64};
        int r = ibv_modify_srq(srq, &size, IBV_SRQ_MAX_WR);
        CHECK(!r || r == EOPNOTSUPP || r == EINVAL, "%d", r);
        vt_sync(t);
        for (unsigned i = 0; i < 6; i++) {
            struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.wr_id == i && wc.qp_num == q[i % QPS].qp->qp_num, "message %u in request %llu", i,
                  (unsigned long long)wc.wr_id);
            vt_expect_bytes(t->buf + i * 4096, 1000 + i, i, "through the SRQ");
        }
        expect_event(t, IBV_EVENT_SRQ_LIMIT_REACHED);
        CHECK(!ibv_query_srq(srq, &now) && now.srq_limit == 0, "the limit is %u after its event, expected 0",
              now.srq_limit);
        vt_sync(t);
        struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
        CHECK(!ibv_modify_qp(q[0].qp, &err, IBV_QP_STATE));
        if (!t->rxe) /* rxe never reports this event */
            expect_event(t, IBV_EVENT_QP_LAST_WQE_REACHED);
        CHECK(vt_has_no_completion(t->cq, 10), "a request of the SRQ was flushed with a queue pair");
    } else {
        vt_sync(t);
        for (unsigned i = 0; i < 6; i++) {
            vt_fill(t->buf, 1000 + i, i);
            CHECK(!vt_post_request(&q[i % QPS], t, IBV_WR_SEND, i, 0, 1000 + i, 0, IBV_SEND_SIGNALED));
            vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        }
        vt_sync(t);
    }
    vt_sync(t);
    CHECK(ibv_destroy_srq(srq) == EBUSY, "destroyed an SRQ that a queue pair uses");
    for (int i = 0; i < QPS; i++)
        vt_qp_close(&q[i]);
    CHECK(!ibv_destroy_srq(srq));
}

int main(void)
{
    return vt_run(run_test);
}

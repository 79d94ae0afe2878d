/* t_stopped.c: a request to a peer that is stopped for many times the timeout waits and then succeeds; a
 * request to a peer whose QP no longer exists fails after the timeout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define BYTES 100000u

static struct vt_opts options_with_short_timeout(void)
{
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 8; /* 1 ms, three tries */
    o.retry = 2;
    return o;
}

/* Polls for a completion until the time limit; the peer is continued before the result is checked. */
static int poll_and_continue_peer(struct vt *t, int ms, struct ibv_wc *wc)
{
    struct timespec tick = {0, 1000000};
    int n = 0;
    for (int i = 0; i < ms && !(n = ibv_poll_cq(t->cq, 1, wc)); i++)
        nanosleep(&tick, NULL);
    return n;
}

static void test_stopped(struct vt *t)
{
    struct vt_qp q;
    pid_t me = getpid(), other;
    struct ibv_wc wc = {0};
    vt_qp_open(t, options_with_short_timeout(), &q);
    vt_exchange(t, &me, &other, sizeof(me));
    for (unsigned round = 0; round < 2; round++) { /* before and after the connection is established */
        if (t->side == 0) {
            vt_fill(t->buf, BYTES, 9 + round);
            kill(other, SIGSTOP);
            int posted = vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 1, 0, BYTES, 1u << 20, IBV_SEND_SIGNALED);
            int n = poll_and_continue_peer(t, 300, &wc);
            kill(other, SIGCONT);
            CHECK(!posted);
            if (!n)
                wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.status == IBV_WC_SUCCESS, "request to a stopped process: %s",
                  ibv_wc_status_str(wc.status));
        }
        vt_sync(t);
        if (t->side == 1)
            vt_expect_bytes(t->buf + (1u << 20), BYTES, 9 + round, "written while it was stopped");
        vt_sync(t);
    }
    vt_qp_close(&q);
}

static void test_stopped_peer_without_qp(struct vt *t)
{
    struct vt_qp q;
    vt_qp_open(t, options_with_short_timeout(), &q);
    vt_sync(t);
    if (t->side == 1)
        vt_qp_close(&q);
    vt_sync(t);
    if (t->side == 0) {
        CHECK(!vt_post_request(&q, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_expect_completion(t->cq, IBV_WC_RETRY_EXC_ERR);
        vt_qp_close(&q);
    }
    vt_sync(t);
}

static void run_test(struct vt *t)
{
    test_stopped(t);
    test_stopped_peer_without_qp(t);
}

int main(void)
{
    return vt_run(run_test);
}

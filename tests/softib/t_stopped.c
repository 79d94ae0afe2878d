/* t_stopped.c: a peer that is kept off its processor for many times the timeout is late, not gone: the
 * request waits and then succeeds. One whose QP does not exist any more is found out as ever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define BYTES 100000u

static struct vt_opts stopped_short_timeout(void)
{
    struct vt_opts o = vt_defaults(IBV_QPT_RC);
    o.timeout = 8; /* a millisecond, three times */
    o.retry = 2;
    return o;
}

/* Polls for a completion until the time limit; the peer is continued before the result is checked. */
static int poll_for(struct vt *t, int ms, struct ibv_wc *wc)
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
    vt_qp_make(t, stopped_short_timeout(), &q);
    vt_swap(t, &me, &other, sizeof(me));
    for (unsigned round = 0; round < 2; round++) { /* before and after there is a connection */
        if (t->side == 0) {
            vt_fill(t->buf, BYTES, 9 + round);
            kill(other, SIGSTOP);
            int posted = vt_post(&q, t, IBV_WR_RDMA_WRITE, 1, 0, BYTES, 1u << 20, IBV_SEND_SIGNALED);
            int n = poll_for(t, 300, &wc);
            kill(other, SIGCONT);
            CHECK(!posted);
            if (!n)
                wc = vt_wc(t->cq, IBV_WC_SUCCESS);
            CHECK(wc.status == IBV_WC_SUCCESS, "to a stopped process: %s", ibv_wc_status_str(wc.status));
        }
        vt_sync(t);
        if (t->side == 1)
            vt_expect(t->buf + (1u << 20), BYTES, 9 + round, "written while it was stopped");
        vt_sync(t);
    }
    vt_qp_end(&q);
}

static void stopped_peer_is_gone(struct vt *t)
{
    struct vt_qp q;
    vt_qp_make(t, stopped_short_timeout(), &q);
    vt_sync(t);
    if (t->side == 1)
        vt_qp_end(&q);
    vt_sync(t);
    if (t->side == 0) {
        CHECK(!vt_post(&q, t, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, IBV_SEND_SIGNALED));
        vt_wc(t->cq, IBV_WC_RETRY_EXC_ERR);
        vt_qp_end(&q);
    }
    vt_sync(t);
}

static void stopped_run_test(struct vt *t)
{
    test_stopped(t);
    stopped_peer_is_gone(t);
}

int main(void)
{
    return vt_run(stopped_run_test);
}

/* t_yield.c: a poll of an empty CQ that gives the processor to the peer returns the completions of what the peer sends
 * meanwhile. Both processes run on one processor. Libraries rely on it: they poll the CQ, find it empty, then receive
 * the event that the peer has disconnected, and destroy the queue pair with its completions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include <sched.h>
#include <time.h>

enum { ROUNDS = 200 };

static void run_on_one_processor(void)
{
    cpu_set_t own, one;
    CHECK(!sched_getaffinity(0, sizeof(own), &own));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &own))
            CPU_SET(i, &one);
    CHECK(!sched_setaffinity(0, sizeof(one), &one));
}

/* Sends a message and then, by an RDMA write, the number of the round. */
static void send_round(struct vt *t, struct vt_qp *q, uint32_t round)
{
    const struct timespec pause = {0, 1000000}; /* the peer polls meanwhile */
    nanosleep(&pause, NULL);
    memcpy(t->buf, &round, sizeof(round));
    CHECK(!vt_post_request(q, t, IBV_WR_SEND, 1, 0, sizeof(round), 4096, IBV_SEND_SIGNALED));
    CHECK(!vt_post_request(q, t, IBV_WR_RDMA_WRITE, 2, 0, sizeof(round), 0, IBV_SEND_SIGNALED));
    vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    vt_expect_completion(t->cq, IBV_WC_SUCCESS);
}

/* Returns true if a poll returned nothing although both had arrived. */
static bool receive_round(struct vt *t, uint32_t round)
{
    struct ibv_wc wc;
    bool missed = false;
    while (!ibv_poll_cq(t->cq, 1, &wc))
        missed |= *(volatile uint32_t *)t->buf == round;
    CHECK(wc.status == IBV_WC_SUCCESS);
    return missed;
}

static void test(struct vt *t)
{
    struct vt_qp q;
    unsigned missed = 0;
    run_on_one_processor();
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    memset(t->buf, 0, 8192);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        if (t->side)
            vt_post_receive(&q, t, round, 4096, 8);
        vt_sync(t);
        if (t->side)
            missed += receive_round(t, round);
        else
            send_round(t, &q, round);
    }
    printf("%u of %d polls missed a completion\n", missed, ROUNDS);
    CHECK(missed < ROUNDS / 4, "%u polls of %d", missed, ROUNDS);
    vt_sync(t);
    vt_qp_close(&q);
}

int main(void)
{
    return vt_run(test);
}

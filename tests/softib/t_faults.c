/* t_faults.c: losses, duplicates and reorderings of datagrams happen about as often as configured, and all
 * datagrams that arrive are intact.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"

#define SENT 3000

static void receive_and_count(struct vt *t, struct vt_qp *q)
{
    static unsigned copies[SENT];
    unsigned got = 0, once = 0, twice = 0, late = 0, last = 0;
    struct ibv_wc wc;
    while (ibv_poll_cq(t->cq, 1, &wc)) {
        CHECK(wc.status == IBV_WC_SUCCESS && wc.imm_data < SENT);
        vt_expect_bytes(t->buf + wc.wr_id * 256 + 40, 100, wc.imm_data, "datagram");
        late += wc.imm_data < last;
        last = wc.imm_data;
        copies[wc.imm_data]++;
        got++;
    }
    for (unsigned i = 0; i < SENT; i++) {
        CHECK(copies[i] <= 2, "datagram %u arrived %u times", i, copies[i]);
        once += copies[i] > 0;
        twice += copies[i] == 2;
    }
    /* loss 0.2, duplication 0.1, reordering 0.1: the bounds are more than ten standard deviations wide */
    CHECK(once > SENT * 70 / 100 && once < SENT * 90 / 100,
          "%u of %u datagrams arrived, expected 70 %% to 90 %%", once, SENT);
    CHECK(twice > SENT * 3 / 100 && twice < SENT * 17 / 100,
          "%u datagrams arrived twice, expected 3 %% to 17 %%", twice);
    CHECK(late > SENT * 3 / 100 && late < SENT * 17 / 100,
          "%u datagrams arrived late, expected 3 %% to 17 %%", late);
    (void)q;
    (void)got;
}

static void run_test(struct vt *t)
{
    struct vt_qp q;
    struct vt_opts o = vt_defaults(IBV_QPT_UD);
    o.recv_wr = SENT * 2;
    vt_qp_create(t, o, &q);
    for (unsigned i = 0; i < SENT * 2 && t->side == 0; i++)
        vt_post_receive(&q, t, i, i * 256, 256);
    vt_qp_connect(t, o, &q);
    struct ibv_ah *ah = vt_create_ah(t, &q.peer);
    for (unsigned i = 0; i < SENT && t->side == 1; i++) {
        struct ibv_sge s = {(uintptr_t)t->buf, 100, t->mr->lkey};
        struct ibv_send_wr wr = {.sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND_WITH_IMM,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;
        vt_fill(t->buf, 100, i);
        wr.imm_data = i;
        wr.wr.ud.ah = ah;
        wr.wr.ud.remote_qpn = q.peer.qpn;
        wr.wr.ud.remote_qkey = 0x1111;
        CHECK(!ibv_post_send(q.qp, &wr, &bad));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    }
    vt_sync(t);
    if (t->side == 0)
        receive_and_count(t, &q);
    CHECK(!ibv_destroy_ah(ah));
    vt_qp_close(&q);
}

int main(void)
{
    return vt_run(run_test);
}

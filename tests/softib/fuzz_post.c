/* fuzz_post.c: posts requests with random opcodes, lists, lengths, keys, flags and addresses to QPs of
 * every type: accepted requests complete, memory outside the registered region does not change, and
 * nothing crashes. A fixed number of seeded rounds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../verbs/vt.h"
#include "base/base.h"
#include <sys/mman.h>

#define ROUNDS 15000
#define ARENA  (64u << 10)

static uint64_t rng = 0xabcdef;

static uint32_t random_below(uint32_t n)
{
    return (uint32_t)(rng_next(&rng) >> 32) % n;
}

struct guarded_region {
    unsigned char *all, *mine; /* guard, registered memory, guard */
    struct ibv_mr *mr;
};

static uint64_t random_address(const struct guarded_region *f)
{
    switch (random_below(8)) {
    case 0:
        return (uint64_t)random_below(UINT32_MAX) << random_below(33);
    case 1:
        return (uintptr_t)f->mine - 1 - random_below(100);
    case 2:
        return (uintptr_t)f->mine + ARENA - random_below(100);
    default:
        return (uintptr_t)f->mine + random_below(ARENA / 2);
    }
}

static uint32_t random_length(void)
{
    static const uint32_t odd[] = {0, 1, UINT32_MAX, 0x80000000u, 1u << 30, ARENA, ARENA + 1};
    return random_below(4) ? random_below(3000) : odd[random_below(7)];
}

static void post_random_requests(struct vt *t, struct vt_qp *q, const struct guarded_region *f,
                                 struct ibv_ah *ah)
{
    struct ibv_sge s[40];
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = s,
                             .num_sge = random_below(6) ? (int)random_below(5) : (int)random_below(40) - 2,
                             .opcode = random_below(10) ? (enum ibv_wr_opcode)random_below(11)
                                                        : (enum ibv_wr_opcode)(random_below(1000) - 500),
                             .send_flags = random_below(2) ? IBV_SEND_SIGNALED : random_below(4096)},
                       *bad;
    struct ibv_recv_wr rr = {.wr_id = 2, .sg_list = s, .num_sge = (int)random_below(5)}, *rbad;
    (void)t;
    for (int i = 0; i < 40; i++)
        s[i] = (struct ibv_sge){random_address(f), random_length(),
                                random_below(5) ? f->mr->lkey : random_below(UINT32_MAX)};
    if (wr.send_flags & IBV_SEND_INLINE) /* verbs do not check the addresses of inline data */
        for (int i = 0; i < 40; i++)
            s[i] = (struct ibv_sge){(uintptr_t)f->mine, random_below(200), 0};
    if (q->qp->qp_type == IBV_QPT_UD) {
        wr.wr.ud.ah = random_below(10) ? ah : NULL;
        wr.wr.ud.remote_qpn = random_below(5) ? q->peer.qpn : random_below(UINT32_MAX);
        wr.wr.ud.remote_qkey = 0x1111;
    } else {
        wr.wr.rdma.remote_addr = random_address(f);
        wr.wr.rdma.rkey = random_below(5) ? f->mr->rkey : random_below(UINT32_MAX);
        if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
            wr.wr.atomic.remote_addr = random_address(f);
            wr.wr.atomic.rkey = f->mr->rkey;
        }
    }
    ibv_post_recv(q->qp, &rr, &rbad);
    ibv_post_send(q->qp, &wr, &bad);
}

static void create_loopback_qp(struct vt *t, struct vt_opts o, struct vt_qp *q)
{
    vt_qp_create(t, o, q);
    q->peer = q->me;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = q->me.qpn,
                            .max_dest_rd_atomic = 4,
                            .min_rnr_timer = 1,
                            .ah_attr = {.dlid = t->port.lid, .port_num = 1}};
    int mask = IBV_QP_STATE;
    if (o.type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (o.type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    CHECK(!ibv_modify_qp(q->qp, &a, mask));
    struct ibv_qp_attr b = {
        .qp_state = IBV_QPS_RTS, .timeout = 5, .retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 4};
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (o.type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    CHECK(!ibv_modify_qp(q->qp, &b, mask));
}

static void post_run_test(struct vt *t)
{
    static const enum ibv_qp_type kinds[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    struct guarded_region f = {
        .all = mmap(NULL, 3 * ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    struct ibv_wc wc;
    rng += (uint64_t)t->side;
    f.mine = f.all + ARENA;
    memset(f.all, 0x33, 3 * ARENA);
    CHECK((f.mr = ibv_reg_mr(t->pd, f.mine, ARENA, ALL_ACCESS)));
    struct vt_addr self = {.lid = t->port.lid};
    struct ibv_ah *ah = vt_create_ah(t, &self);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct vt_qp q;
        struct vt_opts o = vt_defaults(kinds[random_below(3)]);
        create_loopback_qp(t, o, &q);
        for (unsigned k = 0, n = 1 + random_below(6); k < n; k++)
            post_random_requests(t, &q, &f, ah);
        while (ibv_poll_cq(t->cq, 1, &wc))
            CHECK(wc.qp_num == q.qp->qp_num && (wc.wr_id == 1 || wc.wr_id == 2));
        vt_qp_close(&q);
        CHECK(!ibv_poll_cq(t->cq, 1, &wc), "a completion of a destroyed QP");
    }
    for (size_t i = 0; i < ARENA; i++)
        CHECK(f.all[i] == 0x33 && f.all[2 * ARENA + i] == 0x33,
              "byte %zu outside the registered memory changed", i);
    CHECK(!ibv_destroy_ah(ah));
    CHECK(!ibv_dereg_mr(f.mr));
    munmap(f.all, 3 * ARENA);
}

int main(void)
{
    return vt_run(post_run_test);
}

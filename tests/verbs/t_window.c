/* t_window.c: memory windows of both types. Through a window a peer accesses the bound part of a region
 * with the rights of the window, until the window is bound elsewhere or invalidated by its owner or by the
 * peer; a window of type 2 is accessible through one queue pair only. A region with windows cannot be
 * deregistered.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>

#define PART   4096u
#define OFFSET 8192u

static struct ibv_mr *make_region(struct vt *t)
{
    struct ibv_mr *mr = ibv_reg_mr(t->pd, t->buf, BUF_BYTES, ALL_ACCESS | IBV_ACCESS_MW_BIND);
    if (!mr && (errno == EOPNOTSUPP || errno == EINVAL))
        vt_skip("the device has no memory windows");
    CHECK(mr);
    return mr;
}

static void post_and_expect_success(struct vt_qp *q, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    wr->send_flags |= IBV_SEND_SIGNALED;
    CHECK(!ibv_post_send(q->qp, wr, &bad));
}

static void bind_type_2(struct vt_qp *q, struct ibv_mw *mw, uint32_t rkey, struct ibv_mr *mr, uint64_t addr,
                        uint64_t length, unsigned access)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, addr, length, access};
    post_and_expect_success(q, &wr);
}

static void write_to(struct vt *t, struct vt_qp *q, uint32_t rkey, uint64_t addr, enum ibv_wc_status want)
{
    struct ibv_sge s = {(uintptr_t)t->buf, 64, t->mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &s, .num_sge = 1};
    wr.wr.rdma.rkey = rkey;
    wr.wr.rdma.remote_addr = addr;
    post_and_expect_success(q, &wr);
    vt_expect_completion(t->cq, want);
}

struct window_target {
    uint32_t rkey;
    uint64_t addr;
};

static struct ibv_mw *mw;

/* Each attempt uses new queue pairs, since a refused request moves them to the error state. Side 1 owns
 * the memory. */
static void attempt_write(struct vt *t,
                          struct window_target (*prepare)(struct vt *t, struct vt_qp *q, struct ibv_mr *mr),
                          enum ibv_mw_type type, enum ibv_wc_status want)
{
    struct vt_qp q;
    struct window_target mine = {0}, theirs;
    struct ibv_mr *mr = make_region(t);
    CHECK((mw = ibv_alloc_mw(t->pd, type)));
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1)
        mine = prepare(t, &q, mr);
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    if (t->side == 0)
        write_to(t, &q, theirs.rkey, theirs.addr, want);
    vt_sync(t);
    CHECK(!ibv_dealloc_mw(mw));
    vt_qp_close(&q);
    CHECK(!ibv_dereg_mr(mr));
}

static struct window_target bind_type_1(struct vt *t, struct vt_qp *q, struct ibv_mr *mr, uint64_t length,
                                        unsigned access)
{
    struct ibv_mw_bind b = {.wr_id = 9,
                            .send_flags = IBV_SEND_SIGNALED,
                            .bind_info = {mr, (uintptr_t)t->buf + OFFSET, length, access}};
    CHECK(!ibv_bind_mw(q->qp, mw, &b));
    struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    CHECK(wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 9);
    return (struct window_target){mw->rkey, (uintptr_t)t->buf + OFFSET};
}

static struct window_target prepare_type_1(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct window_target at = bind_type_1(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    CHECK(ibv_dereg_mr(mr), "deregistered a region with a bound window");
    at.addr += PART - 64;
    return at;
}

/* One byte of the request lies outside the window; the whole request lies in the region. */
static struct window_target prepare_beyond_window(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct window_target at = bind_type_1(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    at.addr += PART - 63;
    return at;
}

static struct window_target prepare_read_only(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    return bind_type_1(t, q, mr, PART, IBV_ACCESS_REMOTE_READ);
}

/* The peer uses the key of an earlier binding. */
static struct window_target prepare_stale_key(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct window_target at = bind_type_1(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    bind_type_1(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    return at;
}

static struct window_target prepare_empty_window(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    bind_type_1(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    return bind_type_1(t, q, mr, 0, 0);
}

static struct window_target prepare_type_2(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    const uint32_t key = ibv_inc_rkey(mw->rkey);
    bind_type_2(q, mw, key, mr, (uintptr_t)t->buf + OFFSET, PART,
                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
    CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW);
    return (struct window_target){key, 0};
}

static struct window_target prepare_invalidated(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct window_target at = prepare_type_2(t, q, mr);
    struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = at.rkey};
    post_and_expect_success(q, &wr);
    CHECK(vt_expect_completion(t->cq, IBV_WC_SUCCESS).opcode == IBV_WC_LOCAL_INV);
    return at;
}

/* The window is bound to a queue pair that the peer does not use. */
static struct window_target prepare_other_qp(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct ibv_qp_init_attr a = {
        .send_cq = t->cq,
        .recv_cq = t->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    struct ibv_qp *other = ibv_create_qp(t->pd, &a), *own = q->qp;
    struct ibv_qp_attr attr = {
        .path_mtu = IBV_MTU_1024, .dest_qp_num = other ? other->qp_num : 0, .port_num = 1};
    CHECK(other);
    attr.ah_attr = (struct ibv_ah_attr){.dlid = t->port.lid, .port_num = 1, .is_global = t->gid_index >= 0};
    attr.ah_attr.grh.dgid = t->gid;
    attr.ah_attr.grh.sgid_index = (uint8_t)(t->gid_index >= 0 ? t->gid_index : 0);
    attr.qp_state = IBV_QPS_INIT;
    CHECK(!ibv_modify_qp(other, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    CHECK(!ibv_modify_qp(other, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    CHECK(!ibv_modify_qp(other, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC));
    q->qp = other;
    struct window_target at = prepare_type_2(t, q, mr);
    q->qp = own;
    CHECK(!ibv_destroy_qp(other));
    return at;
}

/* Binds a window that lies partly outside its region, then one with the key of another window. */
static void test_invalid_binds(struct vt *t)
{
    for (int i = 0; i < 3; i++) {
        if (t->rxe && i == 1)
            continue;
        struct ibv_mr *mr = make_region(t);
        struct vt_qp q;
        vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
        CHECK((mw = ibv_alloc_mw(t->pd, IBV_MW_TYPE_2)));
        bind_type_2(&q, mw, i == 1 ? mw->rkey ^ 0x10000 : mw->rkey + 1, i == 2 ? t->mr : mr,
                    (uintptr_t)t->buf + OFFSET, i == 0 ? BUF_BYTES : PART, IBV_ACCESS_REMOTE_WRITE);
        vt_expect_completion(t->cq, IBV_WC_MW_BIND_ERR);
        vt_sync(t);
        CHECK(!ibv_dealloc_mw(mw));
        vt_qp_close(&q);
        CHECK(!ibv_dereg_mr(mr));
    }
}

/* The peer's message invalidates the window; a later use of its key is refused. Its region can then be
 * deregistered, and the window bound again. */
static void test_remote_invalidation(struct vt *t)
{
    struct vt_qp q;
    struct window_target mine = {0}, theirs;
    struct ibv_mr *mr = make_region(t);
    CHECK((mw = ibv_alloc_mw(t->pd, IBV_MW_TYPE_2)));
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        mine = prepare_type_2(t, &q, mr);
        vt_post_receive(&q, t, 3, 0, 64);
        vt_post_receive(&q, t, 4, 0, 64);
    }
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    if (t->side == 0) {
        struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey};
        struct ibv_send_wr wr = {
            .opcode = IBV_WR_SEND_WITH_INV, .sg_list = &s, .num_sge = 1, .invalidate_rkey = theirs.rkey};
        write_to(t, &q, theirs.rkey, theirs.addr, IBV_WC_SUCCESS);
        post_and_expect_success(&q, &wr);
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        vt_sync(t);
        if (!t->rxe) {
            vt_exchange(t, &mine, &theirs, sizeof(mine));
            write_to(t, &q, theirs.rkey, theirs.addr, IBV_WC_SUCCESS);
            post_and_expect_success(&q, &wr);
            vt_expect_completion(t->cq, IBV_WC_REM_ACCESS_ERR);
        }
    } else {
        struct ibv_wc wc = vt_expect_completion(t->cq, IBV_WC_SUCCESS);
        CHECK(t->rxe || (wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == mine.rkey));
        vt_sync(t);
        if (!t->rxe) {
            CHECK(!ibv_dereg_mr(mr), "its window was invalidated");
            mr = make_region(t);
            mine = prepare_type_2(t, &q, mr);
            CHECK(ibv_dereg_mr(mr), "a window is bound to it");
            vt_exchange(t, &mine, &theirs, sizeof(mine));
        }
    }
    vt_sync(t);
    CHECK(!ibv_dealloc_mw(mw));
    vt_qp_close(&q);
    CHECK(!ibv_dereg_mr(mr));
}

static void run_test(struct vt *t)
{
    CHECK(!ibv_dereg_mr(make_region(t)));
    attempt_write(t, prepare_type_1, IBV_MW_TYPE_1, IBV_WC_SUCCESS);
    if (!t->rxe)
        attempt_write(t, prepare_beyond_window, IBV_MW_TYPE_1, IBV_WC_REM_ACCESS_ERR);
    attempt_write(t, prepare_read_only, IBV_MW_TYPE_1, IBV_WC_REM_ACCESS_ERR);
    attempt_write(t, prepare_stale_key, IBV_MW_TYPE_1, IBV_WC_REM_ACCESS_ERR);
    attempt_write(t, prepare_empty_window, IBV_MW_TYPE_1, IBV_WC_REM_ACCESS_ERR);
    attempt_write(t, prepare_type_2, IBV_MW_TYPE_2, IBV_WC_SUCCESS);
    attempt_write(t, prepare_invalidated, IBV_MW_TYPE_2, IBV_WC_REM_ACCESS_ERR);
    attempt_write(t, prepare_other_qp, IBV_MW_TYPE_2, IBV_WC_REM_ACCESS_ERR);
    test_invalid_binds(t);
    test_remote_invalidation(t);
}

int main(void)
{
    return vt_run(run_test);
}

/* t_window.c: memory windows of both types. Through a window a peer reaches the part of a region that was bound, with the
 * rights of the window, until it is bound elsewhere or invalidated, by its owner or by the peer; a window of type 2 is
 * reached through one queue pair alone. A region with windows stays.
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

static void window_post(struct vt_qp *q, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    wr->send_flags |= IBV_SEND_SIGNALED;
    CHECK(!ibv_post_send(q->qp, wr, &bad));
}

static void bind_second(struct vt_qp *q, struct ibv_mw *mw, uint32_t rkey, struct ibv_mr *mr, uint64_t addr,
                        uint64_t length, unsigned access)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, addr, length, access};
    window_post(q, &wr);
}

static void write_to(struct vt *t, struct vt_qp *q, uint32_t rkey, uint64_t addr, enum ibv_wc_status want)
{
    struct ibv_sge s = {(uintptr_t)t->buf, 64, t->mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &s, .num_sge = 1};
    wr.wr.rdma.rkey = rkey;
    wr.wr.rdma.remote_addr = addr;
    window_post(q, &wr);
    vt_wc(t->cq, want);
}

struct target {
    uint32_t rkey;
    uint64_t addr;
};

static struct ibv_mw *mw;

/* Each attempt has queue pairs of its own, since a refused request ends them. Side 1 owns the memory. */
static void window_attempt(struct vt *t,
                           struct target (*prepare)(struct vt *t, struct vt_qp *q, struct ibv_mr *mr),
                           enum ibv_mw_type type, enum ibv_wc_status want)
{
    struct vt_qp q;
    struct target mine = {0}, theirs;
    struct ibv_mr *mr = make_region(t);
    CHECK((mw = ibv_alloc_mw(t->pd, type)));
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1)
        mine = prepare(t, &q, mr);
    vt_swap(t, &mine, &theirs, sizeof(mine));
    if (t->side == 0)
        write_to(t, &q, theirs.rkey, theirs.addr, want);
    vt_sync(t);
    CHECK(!ibv_dealloc_mw(mw));
    vt_qp_end(&q);
    CHECK(!ibv_dereg_mr(mr));
}

static struct target bind_first(struct vt *t, struct vt_qp *q, struct ibv_mr *mr, uint64_t length,
                                unsigned access)
{
    struct ibv_mw_bind b = {.wr_id = 9,
                            .send_flags = IBV_SEND_SIGNALED,
                            .bind_info = {mr, (uintptr_t)t->buf + OFFSET, length, access}};
    CHECK(!ibv_bind_mw(q->qp, mw, &b));
    struct ibv_wc wc = vt_wc(t->cq, IBV_WC_SUCCESS);
    CHECK(wc.opcode == IBV_WC_BIND_MW && wc.wr_id == 9);
    return (struct target){mw->rkey, (uintptr_t)t->buf + OFFSET};
}

static struct target window_first(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct target at = bind_first(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    CHECK(ibv_dereg_mr(mr), "a window is bound to it");
    at.addr += PART - 64;
    return at;
}

/* One byte of the request lies outside of the window, and all of it in the region. */
static struct target first_beyond(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct target at = bind_first(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    at.addr += PART - 63;
    return at;
}

static struct target first_read_only(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    return bind_first(t, q, mr, PART, IBV_ACCESS_REMOTE_READ);
}

/* The key of an earlier binding. */
static struct target first_stale(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct target at = bind_first(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    bind_first(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    return at;
}

static struct target first_empty(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    bind_first(t, q, mr, PART, IBV_ACCESS_REMOTE_WRITE);
    return bind_first(t, q, mr, 0, 0);
}

static struct target window_second(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    const uint32_t key = ibv_inc_rkey(mw->rkey);
    bind_second(q, mw, key, mr, (uintptr_t)t->buf + OFFSET, PART,
                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
    CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW);
    return (struct target){key, 0};
}

static struct target second_invalidated(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
{
    struct target at = window_second(t, q, mr);
    struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = at.rkey};
    window_post(q, &wr);
    CHECK(vt_wc(t->cq, IBV_WC_SUCCESS).opcode == IBV_WC_LOCAL_INV);
    return at;
}

/* Bound by a queue pair that the peer does not use. */
static struct target second_elsewhere(struct vt *t, struct vt_qp *q, struct ibv_mr *mr)
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
    struct target at = window_second(t, q, mr);
    q->qp = own;
    CHECK(!ibv_destroy_qp(other));
    return at;
}

/* A window that lies partly outside of its region, then one with another's key. */
static void bad_binds(struct vt *t)
{
    for (int i = 0; i < 3; i++) {
        if (t->rxe && i == 1)
            continue;
        struct ibv_mr *mr = make_region(t);
        struct vt_qp q;
        vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
        CHECK((mw = ibv_alloc_mw(t->pd, IBV_MW_TYPE_2)));
        bind_second(&q, mw, i == 1 ? mw->rkey ^ 0x10000 : mw->rkey + 1, i == 2 ? t->mr : mr,
                    (uintptr_t)t->buf + OFFSET, i == 0 ? BUF_BYTES : PART, IBV_ACCESS_REMOTE_WRITE);
        vt_wc(t->cq, IBV_WC_MW_BIND_ERR);
        vt_sync(t);
        CHECK(!ibv_dealloc_mw(mw));
        vt_qp_end(&q);
        CHECK(!ibv_dereg_mr(mr));
    }
}

/* The peer invalidates the window with its message. Naming it again is refused. */
static void remote_invalidation(struct vt *t)
{
    struct vt_qp q;
    struct target mine = {0}, theirs;
    struct ibv_mr *mr = make_region(t);
    CHECK((mw = ibv_alloc_mw(t->pd, IBV_MW_TYPE_2)));
    vt_qp_make(t, vt_defaults(IBV_QPT_RC), &q);
    if (t->side == 1) {
        mine = window_second(t, &q, mr);
        vt_recv(&q, t, 3, 0, 64);
        vt_recv(&q, t, 4, 0, 64);
    }
    vt_swap(t, &mine, &theirs, sizeof(mine));
    if (t->side == 0) {
        struct ibv_sge s = {(uintptr_t)t->buf, 8, t->mr->lkey};
        struct ibv_send_wr wr = {
            .opcode = IBV_WR_SEND_WITH_INV, .sg_list = &s, .num_sge = 1, .invalidate_rkey = theirs.rkey};
        write_to(t, &q, theirs.rkey, theirs.addr, IBV_WC_SUCCESS);
        window_post(&q, &wr);
        vt_wc(t->cq, IBV_WC_SUCCESS);
        vt_sync(t);
        if (!t->rxe) {
            window_post(&q, &wr);
            vt_wc(t->cq, IBV_WC_REM_ACCESS_ERR);
        }
    } else {
        struct ibv_wc wc = vt_wc(t->cq, IBV_WC_SUCCESS);
        CHECK(t->rxe || (wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == mine.rkey));
        vt_sync(t);
    }
    vt_sync(t);
    CHECK(!ibv_dealloc_mw(mw));
    vt_qp_end(&q);
    CHECK(!ibv_dereg_mr(mr));
}

static void window_run_test(struct vt *t)
{
    CHECK(!ibv_dereg_mr(make_region(t)));
    window_attempt(t, window_first, IBV_MW_TYPE_1, IBV_WC_SUCCESS);
    if (!t->rxe)
        window_attempt(t, first_beyond, IBV_MW_TYPE_1, IBV_WC_REM_ACCESS_ERR);
    window_attempt(t, first_read_only, IBV_MW_TYPE_1, IBV_WC_REM_ACCESS_ERR);
    window_attempt(t, first_stale, IBV_MW_TYPE_1, IBV_WC_REM_ACCESS_ERR);
    window_attempt(t, first_empty, IBV_MW_TYPE_1, IBV_WC_REM_ACCESS_ERR);
    window_attempt(t, window_second, IBV_MW_TYPE_2, IBV_WC_SUCCESS);
    window_attempt(t, second_invalidated, IBV_MW_TYPE_2, IBV_WC_REM_ACCESS_ERR);
    window_attempt(t, second_elsewhere, IBV_MW_TYPE_2, IBV_WC_REM_ACCESS_ERR);
    bad_binds(t);
    remote_invalidation(t);
}

int main(void)
{
    return vt_run(window_run_test);
}

/* t_mr.c: memory regions: own address space (iova), keys that become invalid with the region, separate
 * protection domains, shared memory, reregistration with other access flags, invalid registrations.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vt.h"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

struct region_key {
    uint32_t rkey;
    uint64_t addr;
};

static void write_to(struct vt *t, struct vt_qp *q, struct region_key n, uint64_t off, uint32_t len,
                     enum ibv_wc_status want)
{
    struct vt_qp to = *q;
    to.peer.rkey = n.rkey;
    to.peer.buf = n.addr;
    CHECK(!vt_post_request(&to, t, IBV_WR_RDMA_WRITE, 1, 0, len, off, IBV_SEND_SIGNALED));
    vt_expect_completion(t->cq, want);
}

/* A region whose access flags change keeps its key and its addresses: operations that the new flags forbid
 * are refused, permitted ones work. */
static void test_changed_access(struct vt *t)
{
    struct vt_qp before, refused, after;
    struct ibv_mr *mr = ibv_reg_mr_iova(t->pd, t->buf + 8192, 4096, 0x2000000, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr);
    struct region_key mine = {mr->rkey, 0x2000000}, theirs;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &before);
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &refused);
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &after);
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    int r = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS), other;
    vt_exchange(t, &r, &other, sizeof(r));
    if (!r && !other && mr->rkey == mine.rkey) {
        vt_fill(t->buf, 500, 3);
        if (t->side == 1)
            write_to(t, &before, theirs, 32, 500, IBV_WC_SUCCESS);
        vt_sync(t);
        if (t->side == 0)
            vt_expect_bytes(t->buf + 8192 + 32, 500, 3, "written after write access was added");
        CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
        vt_sync(t);
        if (t->side == 1)
            write_to(t, &refused, theirs, 0, 8, IBV_WC_REM_ACCESS_ERR);
        vt_sync(t);
        CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS));
        vt_sync(t);
        if (t->side == 1)
            write_to(t, &after, theirs, 0, 8, IBV_WC_SUCCESS);
        vt_sync(t);
    } else { /* soft-RoCE cannot reregister, and an adapter may assign a new key */
        CHECK(t->rxe || mr->rkey != mine.rkey, "ibv_rereg_mr returned %d with the same key, errno %d", r,
              errno);
    }
    vt_qp_close(&before);
    vt_qp_close(&refused);
    vt_qp_close(&after);
    CHECK(!ibv_dereg_mr(mr));
}

static void run_test(struct vt *t)
{
    struct vt_qp q, dead;
    struct region_key mine = {0}, theirs;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &dead);
    struct ibv_mr *iova = ibv_reg_mr_iova(t->pd, t->buf + 4096, 4096, 0x1000000, ALL_ACCESS);
    CHECK(iova);
    mine = (struct region_key){iova->rkey, 0x1000000};
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    vt_fill(t->buf, 500, 1);
    if (t->side == 1)
        write_to(t, &q, theirs, 96, 500, IBV_WC_SUCCESS);
    vt_sync(t);
    if (t->side == 0)
        vt_expect_bytes(t->buf + 4096 + 96, 500, 1, "iova");

    /* A region of another protection domain cannot be accessed through this QP. */
    struct ibv_pd *pd = ibv_alloc_pd(t->ctx);
    struct ibv_mr *foreign = ibv_reg_mr(pd, t->buf, 4096, ALL_ACCESS);
    CHECK(pd && foreign && ibv_dealloc_pd(pd) == EBUSY);
    mine = (struct region_key){foreign->rkey, (uintptr_t)t->buf};
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    if (t->side == 1)
        write_to(t, &dead, theirs, 0, 8, IBV_WC_REM_ACCESS_ERR);
    vt_sync(t);
    CHECK(!ibv_dereg_mr(foreign) && !ibv_dealloc_pd(pd));
    vt_qp_close(&dead);

    /* The key is invalid after its region is deregistered. */
    mine = (struct region_key){iova->rkey, 0x1000000};
    CHECK(!ibv_dereg_mr(iova));
    struct ibv_mr *again = ibv_reg_mr_iova(t->pd, t->buf + 4096, 4096, 0x1000000, ALL_ACCESS);
    CHECK(again && again->rkey != mine.rkey, "the new region has the key of the deregistered one");
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    if (t->side == 1)
        write_to(t, &q, theirs, 0, 8, IBV_WC_REM_ACCESS_ERR);
    vt_sync(t);
    CHECK(!ibv_dereg_mr(again));
    vt_qp_close(&q);
    test_changed_access(t);

    CHECK(!ibv_reg_mr(t->pd, t->buf, 4096, IBV_ACCESS_REMOTE_WRITE),
          "registered for remote write without local write");
    void *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(hole, 8192);
    CHECK(!ibv_reg_mr(t->pd, hole, 8192, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT,
          "registered unmapped memory");
}

int main(void)
{
    return vt_run(run_test);
}

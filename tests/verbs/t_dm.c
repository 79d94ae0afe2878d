/* t_dm.c: device memory: allocation up to its limit, copies to and from it, and RDMA WRITE of a peer by
 * offset; device memory cannot be freed while it has a region.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>

#define LENGTH 4096u

static void test_limits(struct vt *t, uint64_t most)
{
    struct ibv_alloc_dm_attr a = {.length = most + 1};
    CHECK(!ibv_alloc_dm(t->ctx, &a), "allocated more memory than the device reports");
    a = (struct ibv_alloc_dm_attr){.length = 0};
    CHECK(!ibv_alloc_dm(t->ctx, &a) && errno == EINVAL);
    a = (struct ibv_alloc_dm_attr){.length = LENGTH, .comp_mask = 1u << 30};
    CHECK(!ibv_alloc_dm(t->ctx, &a) && errno == EINVAL);
}

static void test_copies(struct vt *t, struct ibv_dm *dm)
{
    vt_fill(t->buf, LENGTH, 5);
    CHECK(!ibv_memcpy_to_dm(dm, 0, t->buf, LENGTH));
    CHECK(!ibv_memcpy_from_dm(t->buf + LENGTH, dm, 64, LENGTH - 64));
    CHECK(!memcmp(t->buf + LENGTH, t->buf + 64, LENGTH - 64));
    CHECK(ibv_memcpy_to_dm(dm, 4, t->buf, LENGTH) && ibv_memcpy_from_dm(t->buf, dm, LENGTH + 4, 4),
          "outside");
    CHECK(ibv_memcpy_to_dm(dm, 1, t->buf, 4) && ibv_memcpy_from_dm(t->buf, dm, 0, 3),
          "copied at an unaligned offset or length");
}

static void test_remote_write(struct vt *t, struct ibv_dm *dm)
{
    struct vt_qp q;
    uint32_t theirs;
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    CHECK(!ibv_reg_dm_mr(t->pd, dm, 0, LENGTH, access), "registered without IBV_ACCESS_ZERO_BASED");
    CHECK(!ibv_reg_dm_mr(t->pd, dm, 64, LENGTH, access | IBV_ACCESS_ZERO_BASED),
          "registered a range that exceeds the memory");
    struct ibv_mr *mr = ibv_reg_dm_mr(t->pd, dm, 0, LENGTH, access | IBV_ACCESS_ZERO_BASED);
    CHECK(mr && ibv_free_dm(dm) == EBUSY);
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    vt_exchange(t, &mr->rkey, &theirs, sizeof(theirs));
    if (t->side == 0) {
        vt_fill(t->buf, 1024, 9);
        struct ibv_sge s = {(uintptr_t)t->buf, 1024, t->mr->lkey};
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                                 .sg_list = &s,
                                 .num_sge = 1,
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;
        wr.wr.rdma.rkey = theirs;
        wr.wr.rdma.remote_addr = 256;
        CHECK(!ibv_post_send(q.qp, &wr, &bad));
        vt_expect_completion(t->cq, IBV_WC_SUCCESS);
    }
    vt_sync(t);
    if (t->side == 1) {
        CHECK(!ibv_memcpy_from_dm(t->buf, dm, 256, 1024));
        vt_expect_bytes(t->buf, 1024, 9, "written by the peer");
    }
    vt_sync(t);
    vt_qp_close(&q);
    CHECK(!ibv_dereg_mr(mr));
}

static void run_test(struct vt *t)
{
    struct ibv_device_attr_ex a;
    CHECK(!ibv_query_device_ex(t->ctx, NULL, &a));
    if (!a.max_dm_size)
        vt_skip("the device has no device memory");
    test_limits(t, a.max_dm_size);
    struct ibv_alloc_dm_attr attr = {.length = LENGTH};
    struct ibv_dm *dm = ibv_alloc_dm(t->ctx, &attr);
    CHECK(dm);
    test_copies(t, dm);
    test_remote_write(t, dm);
    CHECK(!ibv_free_dm(dm));
}

int main(void)
{
    return vt_run(run_test);
}

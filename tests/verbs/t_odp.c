/* t_odp.c: on-demand paging: pages are mapped when they are used, an implicit region covers the whole
 * address space, a request for an unmapped page fails alone, and prefetching accepts only ranges of
 * on-demand regions.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "vt.h"
#include <errno.h>
#include <sys/mman.h>

#define LENGTH (64u << 10)

struct remote_place {
    uint32_t rkey;
    uint64_t addr;
};

static unsigned char *map_pages(void)
{
    void *p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static void test_prefetch(struct vt *t, struct ibv_mr *mr, const void *at)
{
    struct ibv_sge s = {(uintptr_t)at, LENGTH, mr->lkey}, pinned = {(uintptr_t)t->buf, 64, t->mr->lkey};
    CHECK(!ibv_advise_mr(t->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &s, 1));
    CHECK(!ibv_advise_mr(t->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &s, 1));
    CHECK(ibv_advise_mr(t->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &pinned, 1),
          "prefetched a region without on-demand paging");
    CHECK(ibv_advise_mr(t->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1u << 20, &s, 1) == EINVAL);
    CHECK(ibv_advise_mr(t->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &s, 0) == EINVAL);
}

/* The peer writes to memory of side 1 within the region, and again after the pages were unmapped. */
static void test_traffic(struct vt *t, struct ibv_mr *mr, unsigned char *pages)
{
    struct vt_qp q;
    struct remote_place mine = {mr->rkey, (uintptr_t)pages}, theirs;
    vt_qp_open(t, vt_defaults(IBV_QPT_RC), &q);
    vt_exchange(t, &mine, &theirs, sizeof(mine));
    for (int round = 0; round < 2; round++) {
        if (t->side == 0) {
            struct ibv_sge s = {(uintptr_t)pages, LENGTH, mr->lkey};
            struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                                     .sg_list = &s,
                                     .num_sge = 1,
                                     .send_flags = IBV_SEND_SIGNALED},
                               *bad;
            wr.wr.rdma.rkey = theirs.rkey;
            wr.wr.rdma.remote_addr = theirs.addr;
            vt_fill(pages, LENGTH, 3);
            CHECK(!ibv_post_send(q.qp, &wr, &bad));
            struct ibv_wc wc = {0};
            while (!ibv_poll_cq(t->cq, 1, &wc))
                ;
            CHECK((wc.status == IBV_WC_SUCCESS) == (round == 0), "round %d: %s", round,
                  ibv_wc_status_str(wc.status));
        }
        vt_sync(t);
        if (t->side == 1 && round == 0) {
            vt_expect_bytes(pages, LENGTH, 3, "written to pages that were not mapped before");
            CHECK(!munmap(pages, LENGTH));
        }
        vt_sync(t);
    }
    vt_qp_close(&q);
}

static void run_test(struct vt *t)
{
    struct ibv_device_attr_ex a;
    CHECK(!ibv_query_device_ex(t->ctx, NULL, &a));
    if (!(a.odp_caps.general_caps & IBV_ODP_SUPPORT))
        vt_skip("the device has no on-demand paging");
    CHECK(a.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_WRITE);
    unsigned char *pages = map_pages();
    struct ibv_mr *mr = ibv_reg_mr(t->pd, pages, LENGTH, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
    CHECK(mr);
    test_prefetch(t, mr, pages);
    test_traffic(t, mr, pages);
    CHECK(!ibv_dereg_mr(mr));
    if (!(a.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT))
        return;
    pages = map_pages();
    CHECK((mr = ibv_reg_mr(t->pd, NULL, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND)),
          "cannot register an implicit region");
    test_prefetch(t, mr, pages);
    test_traffic(t, mr, pages);
    CHECK(!ibv_dereg_mr(mr));
}

int main(void)
{
    return vt_run(run_test);
}

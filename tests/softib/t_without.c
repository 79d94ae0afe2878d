/* t_without.c: an adapter without a feature (`without=`) behaves like hardware without it: its
 * capabilities do not contain the feature, and the calls are refused. Checks an adapter without any
 * optional feature and another adapter with all of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type,
                              uint32_t inline_data, bool ex)
{
    struct ibv_qp_init_attr_ex a = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = type,
        .cap = {.max_send_wr = 4,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = inline_data},
        .comp_mask = IBV_QP_INIT_ATTR_PD | (ex ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
        .pd = pd,
        .send_ops_flags = ex ? IBV_QP_EX_WITH_SEND : 0,
    };
    errno = 0;
    return ibv_create_qp_ex(pd->context, &a);
}

/* The results of the calls agree with the capabilities that the adapter reports. */
static void check_features(struct ibv_device *dev, bool has)
{
    struct ibv_context *c = ibv_open_device(dev);
    struct ibv_device_attr_ex a;
    EXPECT(c && !ibv_query_device_ex(c, NULL, &a));
    struct ibv_pd *pd = ibv_alloc_pd(c);
    struct ibv_cq *cq = ibv_create_cq(c, 16, NULL, NULL, 0);
    EXPECT(pd && cq);
    EXPECT((a.orig_attr.atomic_cap != IBV_ATOMIC_NONE) == has);
    EXPECT((a.orig_attr.max_srq > 0) == has && (a.orig_attr.max_mcast_grp > 0) == has);
    EXPECT(!!(a.orig_attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) == has);

    struct ibv_srq_init_attr s = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &s);
    EXPECT((srq != NULL) == has && (has || errno == EOPNOTSUPP));
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    EXPECT((mw != NULL) == has && (has || errno == EOPNOTSUPP));
    EXPECT((a.orig_attr.max_mw > 0) == has);
    EXPECT(!!(a.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) == has);
    EXPECT(!!(a.odp_caps.general_caps & IBV_ODP_SUPPORT) == has && (a.max_dm_size > 0) == has);
    static char page[4096];
    struct ibv_mr *mr = ibv_reg_mr(pd, page, sizeof(page), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    EXPECT((mr != NULL) == has && (has || errno == EOPNOTSUPP));
    EXPECT(!mr || !ibv_dereg_mr(mr));
    const int fd = dup(c->cmd_fd);
    struct ibv_context *imported = ibv_import_device(fd);
    EXPECT((imported != NULL) == has && (has || errno == EOPNOTSUPP));
    EXPECT(imported ? !ibv_close_device(imported) : !close(fd));
    struct ibv_alloc_dm_attr memory = {.length = 64};
    struct ibv_dm *dm = ibv_alloc_dm(c, &memory);
    EXPECT((dm != NULL) == has && (has || errno == EOPNOTSUPP));
    EXPECT(!dm || !ibv_free_dm(dm));
    struct ibv_xrcd_init_attr d = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(c, &d);
    EXPECT((xrcd != NULL) == has && (has || errno == EOPNOTSUPP));
    EXPECT(!!(a.orig_attr.device_cap_flags & IBV_DEVICE_XRC) == has);
    struct ibv_qp *xrc_send = make_qp(pd, cq, IBV_QPT_XRC_SEND, 0, false);
    EXPECT((xrc_send != NULL) == has && (has || errno == EOPNOTSUPP));
    struct ibv_cq_init_attr_ex x = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
    struct ibv_cq_ex *cqx = ibv_create_cq_ex(c, &x);
    EXPECT((cqx != NULL) == has && (has || errno == EOPNOTSUPP));
    struct ibv_qp *long_inline = make_qp(pd, cq, IBV_QPT_RC, 64, false);
    EXPECT((long_inline != NULL) == has && (has || errno == EINVAL));
    struct ibv_qp *ex = make_qp(pd, cq, IBV_QPT_RC, 0, true);
    EXPECT((ex != NULL) == has && (has || errno == EOPNOTSUPP));
    struct ibv_qp *ud = make_qp(pd, cq, IBV_QPT_UD, 0, false);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
    union ibv_gid group = {.raw = {0xff, 0x12, 7}};
    EXPECT(ud && !ibv_modify_qp(ud, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    EXPECT(ibv_attach_mcast(ud, &group, 0) == (has ? 0 : EOPNOTSUPP));

    if (has)
        EXPECT(!ibv_detach_mcast(ud, &group, 0) && !ibv_destroy_qp(long_inline) &&
               !ibv_destroy_qp(xrc_send) && !ibv_close_xrcd(xrcd) && !ibv_destroy_qp(ex) &&
               !ibv_destroy_cq(ibv_cq_ex_to_cq(cqx)) && !ibv_destroy_srq(srq) && !ibv_dealloc_mw(mw));
    EXPECT(!ibv_destroy_qp(ud) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(c));
}

int main(void)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    EXPECT(list && n == 2);
    if (failures)
        return 1;
    check_features(list[0], true);
    check_features(list[1], false);
    ibv_free_device_list(list);
    return failures != 0;
}

/* t_features.c: determines which features of verbs a device has by using each feature once. Prints a
 * table, and on softib fails if a feature differs from the table in docs/softib.md. VERBS_DEV0 names the
 * device. One process; features that need a connected peer are tested by the other programs of this
 * folder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vt.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct device {
    struct ibv_context *ctx;
    struct ibv_device_attr_ex attr;
    struct ibv_port_attr port;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    unsigned char *memory;
};

/* True if a call returned an object, which is destroyed. A failed call may leave its reason in errno. */
#define CREATED(call, destroy)     \
    ({                             \
        errno = 0;                 \
        __auto_type made = (call); \
        if (made)                  \
            CHECK(!destroy(made)); \
        made != NULL;              \
    })

static struct ibv_qp_init_attr qp_attr(const struct device *d, enum ibv_qp_type type)
{
    return (struct ibv_qp_init_attr){
        .send_cq = d->cq,
        .recv_cq = d->cq,
        .qp_type = type,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
}

static bool has_qp(const struct device *d, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr a = qp_attr(d, type);
    return CREATED(ibv_create_qp(d->pd, &a), ibv_destroy_qp);
}

static bool has_rc(const struct device *d)
{
    return has_qp(d, IBV_QPT_RC);
}

static bool has_uc(const struct device *d)
{
    return has_qp(d, IBV_QPT_UC);
}

static bool has_ud(const struct device *d)
{
    return has_qp(d, IBV_QPT_UD);
}

static bool has_raw(const struct device *d)
{
    return has_qp(d, IBV_QPT_RAW_PACKET);
}

static bool has_infiniband(const struct device *d)
{
    return d->port.link_layer == IBV_LINK_LAYER_INFINIBAND &&
           d->ctx->device->transport_type == IBV_TRANSPORT_IB;
}

static bool has_gid_type(const struct device *d, uint32_t type)
{
    struct ibv_gid_entry entries[64];
    const ssize_t n = ibv_query_gid_table(d->ctx, entries, 64, 0);
    for (ssize_t i = 0; i < n; i++)
        if (entries[i].gid_type == type)
            return true;
    return false;
}

static bool has_roce_v1(const struct device *d)
{
    return has_gid_type(d, IBV_GID_TYPE_ROCE_V1);
}

static bool has_roce_v2(const struct device *d)
{
    return has_gid_type(d, IBV_GID_TYPE_ROCE_V2);
}

static bool has_xrc(const struct device *d)
{
    struct ibv_xrcd_init_attr a = {IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
    return CREATED(ibv_open_xrcd(d->ctx, &a), ibv_close_xrcd) && has_qp(d, IBV_QPT_XRC_SEND);
}

static bool has_multicast(const struct device *d)
{
    struct ibv_qp_init_attr a = qp_attr(d, IBV_QPT_UD);
    union ibv_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 9}};
    struct ibv_qp *qp = ibv_create_qp(d->pd, &a);
    if (!qp)
        return false;
    const bool attached = ibv_attach_mcast(qp, &group, 0xc009) == 0;
    if (attached)
        CHECK(!ibv_detach_mcast(qp, &group, 0xc009));
    CHECK(!ibv_destroy_qp(qp));
    return attached;
}

static bool has_flow_steering(const struct device *d)
{
    struct {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_eth eth;
    } f = {.attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(f), .num_of_specs = 1, .port = 1},
           .eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(f.eth)}};
    struct ibv_qp_init_attr a = qp_attr(d, IBV_QPT_UD);
    struct ibv_qp *qp = ibv_create_qp(d->pd, &a);
    struct ibv_flow *flow = qp ? ibv_create_flow(qp, &f.attr) : NULL;
    if (flow)
        CHECK(!ibv_destroy_flow(flow));
    if (qp)
        CHECK(!ibv_destroy_qp(qp));
    return flow != NULL;
}

static bool has_wq(const struct device *d)
{
    struct ibv_wq_init_attr a = {.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = d->pd, .cq = d->cq};
    return CREATED(ibv_create_wq(d->ctx, &a), ibv_destroy_wq);
}

static bool has_atomics(const struct device *d)
{
    return d->attr.orig_attr.atomic_cap != IBV_ATOMIC_NONE;
}

static bool has_atomic_write(const struct device *d)
{
    return d->attr.device_cap_flags_ex >> 40 & 1; /* IB_UVERBS_DEVICE_ATOMIC_WRITE */
}

static bool has_srq_resize(const struct device *d)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq_attr larger = {.max_wr = 16}, limit = {.srq_limit = 4};
    struct ibv_srq *srq = ibv_create_srq(d->pd, &a);
    if (!srq)
        return false;
    const bool done =
        !ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR) && !ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT);
    CHECK(!ibv_destroy_srq(srq));
    return done;
}

static bool has_srq(const struct device *d)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 8, .max_sge = 1}};
    return CREATED(ibv_create_srq(d->pd, &a), ibv_destroy_srq);
}

static bool has_tag_matching(const struct device *d)
{
    struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 8, .max_sge = 1},
                                     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                  IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                     .srq_type = IBV_SRQT_TM,
                                     .pd = d->pd,
                                     .cq = d->cq,
                                     .tm_cap = {.max_num_tags = 4, .max_ops = 4}};
    return CREATED(ibv_create_srq_ex(d->ctx, &a), ibv_destroy_srq);
}

static bool has_window_1(const struct device *d)
{
    return CREATED(ibv_alloc_mw(d->pd, IBV_MW_TYPE_1), ibv_dealloc_mw);
}

static bool has_window_2(const struct device *d)
{
    return CREATED(ibv_alloc_mw(d->pd, IBV_MW_TYPE_2), ibv_dealloc_mw);
}

static bool has_odp(const struct device *d)
{
    return CREATED(ibv_reg_mr(d->pd, d->memory, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
                   ibv_dereg_mr);
}

static bool has_implicit_odp(const struct device *d)
{
    return CREATED(ibv_reg_mr(d->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND),
                   ibv_dereg_mr);
}

static bool has_device_memory(const struct device *d)
{
    struct ibv_alloc_dm_attr a = {.length = PAGE};
    return CREATED(ibv_alloc_dm(d->ctx, &a), ibv_free_dm);
}

static int destroy_cq_ex(struct ibv_cq_ex *cq)
{
    return ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
}

static bool has_cq_ex_fields(const struct device *d, uint64_t fields)
{
    struct ibv_cq_init_attr_ex a = {.cqe = 8, .wc_flags = fields};
    return CREATED(ibv_create_cq_ex(d->ctx, &a), destroy_cq_ex);
}

static bool has_cq_ex(const struct device *d)
{
    return has_cq_ex_fields(d, IBV_WC_STANDARD_FLAGS);
}

static bool has_timestamps(const struct device *d)
{
    return has_cq_ex_fields(d, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
}

static bool has_qp_ex(const struct device *d)
{
    const struct ibv_qp_init_attr b = qp_attr(d, IBV_QPT_RC);
    struct ibv_qp_init_attr_ex a = {.send_cq = b.send_cq,
                                    .recv_cq = b.recv_cq,
                                    .qp_type = b.qp_type,
                                    .cap = b.cap,
                                    .pd = d->pd,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                    .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE};
    return CREATED(ibv_create_qp_ex(d->ctx, &a), ibv_destroy_qp);
}

static bool has_import(const struct device *d)
{
    const int fd = dup(d->ctx->cmd_fd);
    struct ibv_context *other = fd >= 0 ? ibv_import_device(fd) : NULL;
    struct ibv_pd *pd = other ? ibv_import_pd(other, d->pd->handle) : NULL;
    struct ibv_mr *mr = pd ? ibv_import_mr(pd, d->mr->handle) : NULL;
    if (mr)
        ibv_unimport_mr(mr);
    if (pd)
        ibv_unimport_pd(pd);
    if (other)
        CHECK(!ibv_close_device(other));
    else if (fd >= 0)
        close(fd);
    return mr != NULL;
}

static bool has_apm(const struct device *d)
{
    return d->attr.orig_attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG;
}

static bool has_counters(const struct device *d)
{
    struct ibv_counters_init_attr a = {0};
    return CREATED(ibv_create_counters(d->ctx, &a), ibv_destroy_counters);
}

/* Registers an invalid descriptor: devices without dma-buf fail before they check it. */
static bool has_dmabuf(const struct device *d)
{
    errno = 0;
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(d->pd, 0, PAGE, 0, -1, IBV_ACCESS_LOCAL_WRITE);
    CHECK(!mr);
    return errno == EBADF;
}

static bool has_relaxed_order(const struct device *d)
{
    return CREATED(ibv_reg_mr(d->pd, d->memory, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING),
                   ibv_dereg_mr);
}

static const struct feature {
    const char *name;
    bool (*has)(const struct device *d);
    bool softib;
} features[] = {
    {"RC queue pairs", has_rc, true},
    {"UC queue pairs", has_uc, true},
    {"UD queue pairs", has_ud, true},
    {"XRC", has_xrc, true},
    {"multicast", has_multicast, true},
    {"raw packets", has_raw, false},
    {"flow steering", has_flow_steering, false},
    {"work queues (RSS)", has_wq, false},
    {"atomic operations", has_atomics, true},
    {"atomic write (capability)", has_atomic_write, false},
    {"SRQ", has_srq, true},
    {"SRQ: resize and limit", has_srq_resize, true},
    {"tag matching", has_tag_matching, false},
    {"memory windows of type 1", has_window_1, true},
    {"memory windows of type 2", has_window_2, true},
    {"on-demand paging", has_odp, true},
    {"on-demand paging, implicit", has_implicit_odp, true},
    {"relaxed ordering accepted", has_relaxed_order, true},
    {"device memory", has_device_memory, true},
    {"extended CQs", has_cq_ex, true},
    {"extended CQs: time stamps", has_timestamps, true},
    {"extended QPs", has_qp_ex, true},
    {"import by descriptor", has_import, true},
    {"alternate paths (capability)", has_apm, true},
    {"counters", has_counters, false},
    {"dma-buf", has_dmabuf, true},
};

static void open_device(struct device *d)
{
    const char *name = getenv("VERBS_DEV0");
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    for (int i = 0; list && i < n && !d->ctx; i++)
        if (!name || strcmp(name, ibv_get_device_name(list[i])) == 0)
            d->ctx = ibv_open_device(list[i]);
    if (!d->ctx)
        vt_skip("no verbs device");
    ibv_free_device_list(list);
    CHECK(posix_memalign((void **)&d->memory, PAGE, PAGE) == 0);
    CHECK(!ibv_query_device_ex(d->ctx, NULL, &d->attr) && !ibv_query_port(d->ctx, 1, &d->port));
    CHECK((d->pd = ibv_alloc_pd(d->ctx)) && (d->cq = ibv_create_cq(d->ctx, 64, NULL, NULL, 0)));
    CHECK((d->mr = ibv_reg_mr(d->pd, d->memory, PAGE, IBV_ACCESS_LOCAL_WRITE)));
}

int main(void)
{
    struct device d = {0};
    int differences = 0;
    open_device(&d);
    const bool softib = strncmp(ibv_get_device_name(d.ctx->device), "softib", 6) == 0;
    const bool infiniband = has_infiniband(&d);
    printf("%-30s %s\n%-30s %s\n%-30s %s\n%-30s %s\n", "feature", ibv_get_device_name(d.ctx->device),
           "InfiniBand ports", infiniband ? "yes" : "no", "RoCE v1", has_roce_v1(&d) ? "yes" : "no",
           "RoCE v2", has_roce_v2(&d) ? "yes" : "no");
    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        const struct feature *f = &features[i];
        const bool has = f->has(&d);
        const int why = errno;
        const bool differs = softib && has != f->softib;
        differences += differs;
        printf("%-30s %s%s%s\n", f->name, has ? "yes" : "no", has ? "" : ": ", has ? "" : strerror(why));
        if (differs)
            printf("    differs from the table in docs/softib.md\n");
        fflush(stdout);
    }
    CHECK(!ibv_dereg_mr(d.mr) && !ibv_destroy_cq(d.cq) && !ibv_dealloc_pd(d.pd) && !ibv_close_device(d.ctx));
    free(d.memory);
    return differences > 0;
}

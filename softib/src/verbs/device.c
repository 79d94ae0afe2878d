/* device.c: the devices of this process: one for each HCA of its node, and one more if the fabric has a
 * barrier network; and queries about them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include "fabric/gid.h"
#include "memory/huge.h"
#include <dlfcn.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Programs read files in the sysfs folder of a device: the library is installed with an empty folder for
 * them. */
SOFTIB_API const char *ibv_get_sysfs_path(void)
{
    static char path[IBV_SYSFS_PATH_MAX];
    Dl_info info;
    if (*path)
        return path;
    if (!dladdr((void *)(uintptr_t)ibv_get_sysfs_path, &info))
        return "/sys";
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(path, sizeof(path), "%.*s/sysfs", slash ? (int)(slash - info.dli_fname) : 1,
             slash ? info.dli_fname : ".");
    return path;
}

/* Creates the device of an HCA; number `hcas`, behind the last HCA, is the device of the barrier network. */
static struct device *device_make(uint32_t hca)
{
    struct device *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->hca = hca;
    d->wires = hca == proc.fab.hcas;
    d->ibv.node_type = d->wires ? IBV_NODE_UNSPECIFIED : IBV_NODE_CA;
    d->ibv.transport_type = d->wires ? IBV_TRANSPORT_UNSPECIFIED : IBV_TRANSPORT_IB;
    if (d->wires)
        snprintf(d->ibv.name, sizeof(d->ibv.name), "softwire0");
    else
        snprintf(d->ibv.name, sizeof(d->ibv.name), "softib%u", hca);
    /* Some programs require a character device /dev/infiniband/<dev_name>: the name leads to /dev/null. */
    snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "../null");
    snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "%.200s/class/infiniband_verbs/uverbs%u",
             ibv_get_sysfs_path(), hca);
    snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "%.200s/class/infiniband/%.30s",
             ibv_get_sysfs_path(), d->ibv.name);
    return d;
}

/* Devices are never freed: programs use the pointers after they have freed the list. */
SOFTIB_API struct ibv_device **ibv_get_device_list(int *num)
{
    static struct device *devices[FAB_MAX_HCAS + 1];
    static struct lock lock;
    if (num)
        *num = 0;
    if (!proc_read_fabric()) {
        errno = EINVAL;
        return NULL;
    }
    const uint32_t count = proc.fab.hcas + fabric_has_hub(&proc.fab);
    struct ibv_device **list = calloc(count + 1, sizeof(*list));
    spinlock_acquire(&lock);
    for (uint32_t i = 0; list && i < count; i++) {
        if (!devices[i])
            devices[i] = device_make(i);
        if (devices[i])
            list[i] = &devices[i]->ibv;
    }
    spinlock_release(&lock);
    if (list && num)
        *num = (int)count;
    return list;
}

SOFTIB_API void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

SOFTIB_API const char *ibv_get_device_name(struct ibv_device *d)
{
    return d->name;
}

SOFTIB_API int ibv_get_device_index(struct ibv_device *d)
{
    return (int)((struct device *)d)->hca + 1;
}

SOFTIB_API __be64 ibv_get_device_guid(struct ibv_device *d)
{
    return htobe64(fabric_node_guid(proc.fab.node, ((struct device *)d)->hca));
}

static void fill_device(struct ctx *c, struct ibv_device_attr *a)
{
    memset(a, 0, sizeof(*a));
    strcpy(a->fw_ver, "1.0.0");
    a->node_guid = a->sys_image_guid = htobe64(fabric_node_guid(proc.fab.node, c->hca));
    a->max_mr_size = UINT64_MAX >> 1;
    a->page_size_cap = 0xfffff000;
    a->vendor_id = 0x02c9; /* a device in the tables of programs, whose defaults suit softib */
    a->vendor_part_id = 4099;
    a->hw_ver = 1;
    if (c->wires)
        return;
    bool srq = ctx_has_feature(c, FEATURE_SRQ), mcast = ctx_has_feature(c, FEATURE_MCAST),
         mw = ctx_has_feature(c, FEATURE_MW);
    a->max_qp = QP_MAX - 2;
    a->max_qp_wr = MAX_WR;
    a->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
                          IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_CURR_QP_STATE_MOD |
                          IBV_DEVICE_N_NOTIFY_CQ | (srq ? IBV_DEVICE_SRQ_RESIZE : 0) |
                          (ctx_has_feature(c, FEATURE_APM) ? IBV_DEVICE_AUTO_PATH_MIG : 0) |
                          (ctx_has_feature(c, FEATURE_XRC) ? IBV_DEVICE_XRC : 0) |
                          (mw ? IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B : 0);
    a->max_sge = a->max_sge_rd = MAX_SGE;
    a->max_cq = CQ_MAX - 1;
    a->max_cqe = MAX_CQE;
    a->max_mr = MR_MAX - 1;
    a->max_mw = mw ? MR_MAX - 1 : 0;
    a->max_pd = 1 << 20;
    a->max_qp_rd_atom = a->max_qp_init_rd_atom = MAX_RD_ATOM;
    a->max_res_rd_atom = MAX_RD_ATOM * (QP_MAX - 2);
    a->atomic_cap = !ctx_has_feature(c, FEATURE_ATOMICS) ? IBV_ATOMIC_NONE
                    : proc.fab.atomics_global            ? IBV_ATOMIC_GLOB
                                                         : IBV_ATOMIC_HCA;
    a->max_mcast_grp = mcast ? (int)proc.fab.groups : 0;
    a->max_mcast_qp_attach = mcast ? GROUP_QPS : 0;
    a->max_total_mcast_qp_attach = a->max_mcast_grp * GROUP_QPS;
    a->max_ah = 1 << 20;
    a->max_srq = srq ? SRQ_MAX : 0;
    a->max_srq_wr = srq ? MAX_WR : 0;
    a->max_srq_sge = srq ? MAX_SGE : 0;
    a->max_pkeys = 1;
    a->local_ca_ack_delay = 15;
    a->phys_port_cnt = (uint8_t)proc.fab.ports;
}

SOFTIB_API int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
    fill_device(ctx_from_ibv(ctx), a);
    return 0;
}

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
                           struct ibv_device_attr_ex *a, size_t size)
{
    struct ibv_device_attr_ex full;
    (void)in;
    memset(&full, 0, sizeof(full));
    fill_device(ctx_from_ibv(ctx), &full.orig_attr);
    full.completion_timestamp_mask = UINT64_MAX;
    full.hca_core_clock = 1000000; /* kHz: time stamps are in ns */
    full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
    full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
    if (!ctx_from_ibv(ctx)->wires && ctx_has_feature(ctx_from_ibv(ctx), FEATURE_ODP))
        odp_fill_caps(&full);
    if (!ctx_from_ibv(ctx)->wires && ctx_has_feature(ctx_from_ibv(ctx), FEATURE_DM))
        full.max_dm_size = DM_BYTES;
    memset(a, 0, size);
    memcpy(a, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

/* The link speed nearest to the configured rate, from which programs compute the expected bandwidth. */
static void fill_speed(uint64_t rate, struct ibv_port_attr *a)
{
    static const struct {
        uint64_t mbytes;
        uint8_t width, speed;
    } links[] = {{250, 1, 1}, {1000, 2, 1}, {2000, 2, 2}, {4000, 2, 4}, {7000, 2, 16}, {12500, 2, 32}};
    a->active_width = 2;
    a->active_speed = 64;
    for (size_t i = 0; rate && i < ARRAY_LEN(links); i++)
        if (rate <= links[i].mbytes * 1000000) {
            a->active_width = links[i].width;
            a->active_speed = links[i].speed;
            break;
        }
}

static enum ibv_mtu mtu_code(uint32_t mtu)
{
    return (enum ibv_mtu)(__builtin_ctz(mtu) - 7);
}

bool ctx_has_port(struct ibv_context *ctx, uint32_t port)
{
    return port >= 1 && port <= proc.fab.ports && !ctx_from_ibv(ctx)->wires;
}

static void fill_infiniband(uint32_t linear, struct ibv_port_attr *a)
{
    a->port_cap_flags = IBV_PORT_SYS_IMAGE_GUID_SUP | IBV_PORT_CM_SUP | IBV_PORT_CLIENT_REG_SUP;
    a->lid = fabric_port_lid(&proc.fab, linear);
    a->sm_lid = proc.fab.sm ? fabric_port_lid(&proc.fab, 0) : 0;
    a->lmc = (uint8_t)proc.fab.lmc;
    a->link_layer = IBV_LINK_LAYER_INFINIBAND;
}

static void fill_ethernet(struct ibv_port_attr *a)
{
    a->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
    a->flags = IBV_QPF_GRH_REQUIRED;
    a->link_layer = IBV_LINK_LAYER_ETHERNET;
}

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *out, size_t size)
{
    struct ibv_port_attr a;
    if (!ctx_has_port(ctx, port))
        return EINVAL;
    if (hca_is_removed(ctx_from_ibv(ctx)->hca))
        return EIO;
    uint32_t linear = fabric_port_index(&proc.fab, proc.fab.node, ctx_from_ibv(ctx)->hca, port);
    bool up = port_up(linear);
    memset(&a, 0, sizeof(a));
    a.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    a.max_mtu = IBV_MTU_4096;
    a.active_mtu = mtu_code(proc.fab.port[linear].mtu);
    a.gid_tbl_len = (int)gid_table_size(&proc.fab, linear);
    a.max_msg_sz = MAX_MSG;
    a.pkey_tbl_len = 1;
    a.max_vl_num = 1;
    a.subnet_timeout = 18;
    fill_speed(proc.fab.port[linear].rate, &a);
    a.phys_state = up ? 5 : 3;
    if (proc.fab.port[linear].ethernet)
        fill_ethernet(&a);
    else
        fill_infiniband(linear, &a);
    memset(out, 0, size);
    memcpy(out, &a, size < sizeof(a) ? size : sizeof(a));
    return 0;
}

SOFTIB_API int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *a)
{
    /* The old structure ends before port_cap_flags2. */
    return query_port(ctx, port, (struct ibv_port_attr *)(void *)a,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

SOFTIB_API int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
    if (!ctx_has_port(ctx, port) || index)
        return -1;
    *pkey = htobe16(0xffff);
    return 0;
}

SOFTIB_API int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
    return ctx_has_port(ctx, port) && (pkey | htobe16(0x8000)) == htobe16(0xffff) ? 0 : -1;
}

static int query_clock_values(struct ibv_context *ctx, struct ibv_values_ex *v)
{
    (void)ctx;
    if (v->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return EINVAL;
    return clock_gettime(CLOCK_MONOTONIC, &v->raw_clock) ? errno : 0;
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *a)
{
    (void)cq;
    /* Event moderation is optional: not moderating events is valid for all values. */
    return a->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE ? EINVAL : 0;
}

static void fill_ops(struct verbs_context *v)
{
    struct ibv_context_ops *o = &v->context.ops;
    o->alloc_mw = mw_alloc;
    o->bind_mw = mw_bind;
    o->dealloc_mw = mw_dealloc;
    o->poll_cq = cq_poll;
    o->req_notify_cq = cq_arm;
    o->post_srq_recv = srq_post;
    o->post_send = qp_post_send;
    o->post_recv = qp_post_recv;
    v->query_port = query_port;
    v->query_device_ex = query_device_ex;
    v->query_rt_values = query_clock_values;
    v->create_cq_ex = cq_create_ex;
    v->create_qp_ex = qp_create_ex;
    v->alloc_parent_domain = pd_parent;
    v->alloc_td = td_alloc;
    v->dealloc_td = td_dealloc;
    v->open_xrcd = xrc_open_domain;
    v->close_xrcd = xrc_close_domain;
    v->create_srq_ex = srq_create_ex;
    v->get_srq_num = srq_number;
    v->open_qp = xrc_open_qp;
    v->advise_mr = odp_advise;
    v->alloc_dm = dm_alloc;
    v->free_dm = dm_free;
    v->reg_dm_mr = dm_register;
    v->modify_cq = modify_cq;
}

struct ctx *ctx_open(struct device *d, int cmd_fd)
{
    struct ctx *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->hca = d->hca;
    c->wires = d->wires;
    c->exporter = proc.slot;
    c->v.sz = sizeof(c->v);
    struct ibv_context *x = &c->v.context;
    x->device = &d->ibv;
    x->abi_compat = __VERBS_ABI_IS_EXTENDED;
    x->num_comp_vectors = 1;
    x->cmd_fd = cmd_fd;
    x->async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    if (x->async_fd < 0) {
        free(c);
        return NULL;
    }
    pthread_mutex_init(&x->mutex, NULL);
    fill_ops(&c->v);
    spinlock_acquire(&contexts_lock);
    c->next = contexts;
    contexts = c;
    spinlock_release(&contexts_lock);
    return c;
}

SOFTIB_API struct ibv_context *ibv_open_device(struct ibv_device *ibv)
{
    struct device *d = (struct device *)ibv;
    if (!proc_join(&machine))
        return NULL;
    if (proc.fab.wire == WIRE_SHM && !d->wires)
        huge_configure_malloc();
    int fd = d->wires ? -1 : export_device(d->hca);
    struct ctx *c = d->wires || fd >= 0 ? ctx_open(d, fd) : NULL;
    if (!c && fd >= 0)
        close(fd);
    return c ? &c->v.context : NULL;
}

SOFTIB_API int ibv_close_device(struct ibv_context *x)
{
    struct ctx *c = ctx_from_ibv(x);
    spinlock_acquire(&contexts_lock);
    for (struct ctx **p = &contexts; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    spinlock_release(&contexts_lock);
    async_purge(c, NULL);
    close(x->async_fd);
    if (x->cmd_fd >= 0)
        close(x->cmd_fd);
    pthread_mutex_destroy(&x->mutex);
    free(c);
    return 0;
}

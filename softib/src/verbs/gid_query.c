/* gid_query.c: queries about the GID table of a port.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/gid.h"
#include "verbs/verbs.h"

static uint32_t gid_linear_index(struct ibv_context *ctx, uint32_t port)
{
    return fabric_port_index(&proc.fab, proc.fab.node, ctx_from_ibv(ctx)->hca, port);
}

static bool gid_find(struct ibv_context *ctx, uint32_t port, uint32_t index, struct gid *out)
{
    return ctx_has_port(ctx, port) && gid_table_entry(&proc.fab, gid_linear_index(ctx, port), index, out);
}

SOFTIB_API int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
    struct gid found;
    if (index < 0 || !gid_find(ctx, port, (uint32_t)index, &found)) {
        errno = EINVAL;
        return -1;
    }
    memcpy(gid->raw, found.raw, sizeof(gid->raw));
    return 0;
}

/* Copies an entry into the caller's structure, whose size depends on the rdma-core version of the program. */
static void copy_entry(struct ibv_context *ctx, uint32_t port, uint32_t index, const struct gid *g, void *out,
                       size_t size)
{
    const struct fab_port *p = &proc.fab.port[gid_linear_index(ctx, port)];
    struct ibv_gid_entry e = {
        .gid_index = index, .port_num = port, .gid_type = g->type, .ndev_ifindex = p->interface_index};
    memcpy(e.gid.raw, g->raw, sizeof(e.gid.raw));
    memset(out, 0, size);
    memcpy(out, &e, min_u64(size, sizeof(e)));
}

SOFTIB_API int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
                                 struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
    struct gid found;
    if (flags || !ctx_has_port(ctx, port))
        return EINVAL;
    if (!gid_find(ctx, port, index, &found))
        return ENODATA;
    copy_entry(ctx, port, index, &found, e, size);
    return 0;
}

SOFTIB_API ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *out, size_t max,
                                        uint32_t flags, size_t size)
{
    struct gid found;
    size_t n = 0;
    if (flags)
        return -EINVAL;
    for (uint32_t port = 1; ctx_has_port(ctx, port); port++)
        for (uint32_t i = 0; gid_find(ctx, port, i, &found); i++, n++) {
            if (n == max)
                return -EINVAL;
            copy_entry(ctx, port, i, &found, (char *)out + n * size, size);
        }
    return (ssize_t)n;
}

/* Private to rdma-core, but Open MPI and UCX import it. *type 0: InfiniBand or RoCE v1; 1: RoCE v2. */
SOFTIB_API int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index, int *type)
{
    struct gid found;
    if (!gid_find(ctx, port, index, &found)) {
        errno = EINVAL;
        return -1;
    }
    *type = found.type == GID_ROCE_V2;
    return 0;
}

/* MAC addresses need no resolution: the MAC address of every port is computed. */
SOFTIB_API int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *a,
                                           uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    struct gid mine;
    struct fab_place at;
    struct path p;
    if (!path_attr_legal(a, ctx_from_ibv(ctx)->hca) ||
        !gid_find(ctx, a->port_num, a->grh.sgid_index, &mine) || mine.type == GID_INFINIBAND)
        return -EINVAL;
    path_from_attr(a, ctx_from_ibv(ctx)->hca, &p);
    if (!fabric_find_lid(&proc.fab, p.dlid, &at))
        return -EHOSTUNREACH;
    gid_get_mac(at.linear, mac);
    if (vid)
        *vid = mine.vlan ? mine.vlan : 0xffff;
    return 0;
}

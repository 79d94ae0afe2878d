/* multicast.c: multicast groups by IP address. The group identifiers are those of IP over InfiniBand (RFC
 * 4391), with the mark of the connection manager for the UDP port space, and those of RoCE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cm.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_QP_NUM 0xffffffu

static void make_infiniband_mgid(const struct cm_id *p, const struct cm_address *a, union ibv_gid *out)
{
    const uint8_t *ip = a->ip.s6_addr;
    const uint8_t mark = p->id.ps == RDMA_PS_UDP ? 0x01 : 0x1b;
    if (!IN6_IS_ADDR_V4MAPPED(&a->ip) && (ip[1] & 0xf0) == 0x10 && ip[2] == 0xa0 && ip[3] == 0x1b) {
        memcpy(out->raw, ip, sizeof(out->raw)); /* the IP address contains an InfiniBand multicast GID */
        return;
    }
    if (IN6_IS_ADDR_V4MAPPED(&a->ip)) {
        const uint8_t group[16] = {0xff,   0x12,   0x40,  mark, 0xff, 0xff, [12] = ip[12] & 0xf,
                                   ip[13], ip[14], ip[15]};
        memcpy(out->raw, group, sizeof(group));
        return;
    }
    const uint8_t head[6] = {0xff, (uint8_t)(0x10 | (ip[1] & 0xf)), 0x60, mark, 0xff, 0xff};
    memcpy(out->raw, ip, sizeof(out->raw));
    memcpy(out->raw, head, sizeof(head));
}

static void group_from_address(const struct cm_id *p, const struct cm_address *a, struct cm_group *g)
{
    if (p->here.ethernet)
        memcpy(g->gid.raw, a->ip.s6_addr, sizeof(g->gid.raw));
    else
        make_infiniband_mgid(p, a, &g->gid);
    g->lid = (uint16_t)(0xc000u | ((uint32_t)g->gid.raw[14] << 8 | g->gid.raw[15])) & 0xfffe;
}

static int group_join(struct cm_id *p, const struct sockaddr *addr, bool send_only, void *context)
{
    struct cm_address a;
    if (!p->device || !id_is_datagram(p) || !address_read(addr, &a) || !a.multicast)
        return EINVAL;
    struct cm_group *g = calloc(1, sizeof(*g));
    if (!g)
        return ENOMEM;
    group_from_address(p, &a, g);
    address_write(&g->addr, addr->sa_family, &a.ip, 0);
    g->send_only = send_only;
    g->context = context;
    int error = p->id.qp && !send_only ? ibv_attach_mcast(p->id.qp, &g->gid, g->lid) : 0;
    g->attached = p->id.qp && !send_only && !error;
    struct cm_event *e =
        channel_report(p, error ? RDMA_CM_EVENT_MULTICAST_ERROR : RDMA_CM_EVENT_MULTICAST_JOIN, -error);
    if (e) {
        struct rdma_ud_param *ud = &e->e.param.ud;
        ud->private_data = context;
        ud->ah_attr = (struct ibv_ah_attr){.grh = {.dgid = g->gid,
                                                   .sgid_index = (uint8_t)p->here.gid_index,
                                                   .hop_limit = p->here.ethernet ? 64 : 0,
                                                   .traffic_class = p->tos},
                                           .dlid = p->here.ethernet ? 0 : g->lid,
                                           .is_global = 1,
                                           .port_num = (uint8_t)p->here.port};
        ud->qp_num = GROUP_QP_NUM;
        ud->qkey = p->qkey;
    }
    if (error || !e) {
        if (g->attached)
            ibv_detach_mcast(p->id.qp, &g->gid, g->lid);
        free(g);
        return e ? 0 : ENOMEM;
    }
    g->next = p->groups;
    p->groups = g;
    return 0;
}

static int join_and_wait(struct rdma_cm_id *id, const struct sockaddr *addr, bool send_only, void *context)
{
    pthread_mutex_lock(&cm_lock);
    int error = group_join(CM_OF(id), addr, send_only, context);
    pthread_mutex_unlock(&cm_lock);
    return error ? cm_return_error(error) : id_wait(CM_OF(id));
}

SOFTIB_API int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    return join_and_wait(id, addr, false, context);
}

SOFTIB_API int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
                                      void *context)
{
    const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    if (!attr || attr->comp_mask != needed || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
        return cm_return_error(EINVAL);
    return join_and_wait(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
}

static void group_detach(struct cm_id *p, struct cm_group *g)
{
    if (g->attached && p->id.qp)
        ibv_detach_mcast(p->id.qp, &g->gid, g->lid);
    g->attached = false;
}

SOFTIB_API int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
    struct cm_id *p = CM_OF(id);
    struct cm_address a;
    struct cm_group wanted, *g = NULL;
    if (!address_read(addr, &a))
        return cm_return_error(EINVAL);
    pthread_mutex_lock(&cm_lock);
    group_from_address(p, &a, &wanted);
    for (struct cm_group **at = &p->groups; *at; at = &(*at)->next)
        if (!memcmp((*at)->gid.raw, wanted.gid.raw, sizeof(wanted.gid.raw))) {
            g = *at;
            *at = g->next;
            break;
        }
    if (g)
        group_detach(p, g);
    free(g);
    pthread_mutex_unlock(&cm_lock);
    return g ? 0 : cm_return_error(EADDRNOTAVAIL);
}

void multicast_detach_all(struct cm_id *p)
{
    for (struct cm_group *g = p->groups; g; g = g->next)
        group_detach(p, g);
}

void multicast_leave_all(struct cm_id *p)
{
    multicast_detach_all(p);
    while (p->groups) {
        struct cm_group *g = p->groups;
        p->groups = g->next;
        free(g);
    }
}

/*
 * Address handles, and the multicast groups of this machine. A group is a row of the registry;
 * attaching writes the QP's number into it, and a sender reads the row.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "hca.h"
#include "wire.h"
#include <endian.h>
#include <stdlib.h>

void path_from_attr(const struct ibv_ah_attr *a, struct path *p)
{
    *p = (struct path){
        .dlid = a->dlid,
        .sl = a->sl,
        .src_path_bits = a->src_path_bits,
        .is_global = a->is_global,
        .port_num = a->port_num,
        .hop_limit = a->grh.hop_limit,
        .traffic_class = a->grh.traffic_class,
        .flow_label = a->grh.flow_label,
        .dgid = a->grh.dgid,
    };
}

/* The LID decides; a GID alone finds its port. */
uint16_t path_resolve(const struct path *p)
{
    if (p->dlid || !p->is_global)
        return p->dlid;
    if (p->dgid.raw[0] == 0xff)
        return MCAST_LID;
    return fabric_guid_lid(&proc.fab, be64toh(p->dgid.global.interface_id));
}

SOFTIB_API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
    if (a->port_num < 1 || a->port_num > proc.fab.ports || (a->is_global && a->grh.sgid_index) ||
        a->src_path_bits >> proc.fab.lmc || (!a->dlid && !a->is_global)) {
        errno = EINVAL;
        return NULL;
    }
    struct ah *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->ibv.context = pd->context;
    h->ibv.pd = pd;
    path_from_attr(a, &h->path);
    atomic_fetch_add(&((struct pd *)pd)->refs, 1);
    return &h->ibv;
}

SOFTIB_API int ibv_destroy_ah(struct ibv_ah *ah)
{
    atomic_fetch_sub(&((struct pd *)ah->pd)->refs, 1);
    free(ah);
    return 0;
}

SOFTIB_API int ibv_init_ah_from_wc(struct ibv_context *c, uint8_t port, struct ibv_wc *wc,
                                   struct ibv_grh *grh, struct ibv_ah_attr *a)
{
    (void)c;
    memset(a, 0, sizeof(*a));
    a->dlid = wc->slid;
    a->sl = wc->sl;
    a->src_path_bits = wc->dlid_path_bits;
    a->port_num = port;
    if (wc->wc_flags & IBV_WC_GRH) {
        uint32_t flow = be32toh(grh->version_tclass_flow);
        a->is_global = 1;
        a->grh.dgid = grh->sgid;
        a->grh.hop_limit = 0xff;
        a->grh.traffic_class = (uint8_t)(flow >> 20);
        a->grh.flow_label = flow & 0xfffff;
    }
    return 0;
}

SOFTIB_API struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                                uint8_t port)
{
    struct ibv_ah_attr a;
    ibv_init_ah_from_wc(pd->context, port, wc, grh, &a);
    return ibv_create_ah(pd, &a);
}

static struct reg_group *group_find(const union ibv_gid *gid, bool make)
{
    struct reg_group *spare = NULL;
    for (int i = 0; i < GROUPS; i++) {
        struct reg_group *g = &proc.reg->group[i];
        bool used = atomic_load(&g->used);
        if (used && !memcmp(g->gid, gid->raw, 16))
            return g;
        if (!used && !spare)
            spare = g;
    }
    if (!make || !spare)
        return NULL;
    memcpy(spare->gid, gid->raw, 16);
    for (int i = 0; i < GROUP_QPS; i++)
        atomic_store(&spare->qpn[i], 0);
    atomic_store(&spare->used, 1);
    return spare;
}

/* Rows may hold QPs of processes that were killed. */
static void sweep(struct reg_group *g)
{
    for (int i = 0; i < GROUP_QPS; i++) {
        uint32_t qpn = atomic_load(&g->qpn[i]), slot = qpn >> QP_BITS;
        if (qpn && slot != proc.slot && !member_alive(slot))
            atomic_store(&g->qpn[i], 0);
    }
}

static int group_put(struct reg_group *g, uint32_t qpn, uint32_t port)
{
    int room = -1;
    for (int i = 0; i < GROUP_QPS; i++) {
        uint32_t at = atomic_load(&g->qpn[i]);
        if (at == qpn)
            return 0;
        if (!at && room < 0)
            room = i;
    }
    if (room < 0)
        return ENOMEM;
    atomic_store(&g->port[room], port);
    atomic_store(&g->qpn[room], qpn);
    return 0;
}

SOFTIB_API int ibv_attach_mcast(struct ibv_qp *v, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    if (v->qp_type != IBV_QPT_UD || gid->raw[0] != 0xff)
        return EINVAL;
    shlock_take(&proc.reg->lock);
    struct reg_group *g = group_find(gid, true);
    int r = g ? group_put(g, v->qp_num, qp_of(v)->linear) : ENOMEM;
    if (g && r) {
        sweep(g);
        r = group_put(g, v->qp_num, qp_of(v)->linear);
    }
    shlock_drop(&proc.reg->lock);
    if (!r && proc.fab.wire == WIRE_TCP)
        wire_udp_join(gid->raw, true);
    return r;
}

SOFTIB_API int ibv_detach_mcast(struct ibv_qp *v, const union ibv_gid *gid, uint16_t lid)
{
    int r = EINVAL;
    bool left = false;
    (void)lid;
    shlock_take(&proc.reg->lock);
    struct reg_group *g = group_find(gid, false);
    for (int i = 0; g && i < GROUP_QPS; i++) {
        uint32_t at = atomic_load(&g->qpn[i]);
        if (at == v->qp_num) {
            atomic_store(&g->qpn[i], 0);
            r = 0;
        } else {
            left |= at != 0;
        }
    }
    if (g && !left)
        atomic_store(&g->used, 0);
    shlock_drop(&proc.reg->lock);
    if (!r && proc.fab.wire == WIRE_TCP)
        wire_udp_join(gid->raw, false);
    return r;
}

bool mcast_attached(uint32_t qpn)
{
    for (int i = 0; i < GROUPS; i++) {
        struct reg_group *g = &proc.reg->group[i];
        for (int k = 0; atomic_load(&g->used) && k < GROUP_QPS; k++)
            if (atomic_load(&g->qpn[k]) == qpn)
                return true;
    }
    return false;
}

/* mcast.c: the multicast groups of this machine. A group is a row of the registry, which contains the
 * numbers of its QPs. The lane of the row contains packets (local/lane.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include "fabric/gid.h"
#include "local/lane.h"

static int mcast_row(const struct reg_group *g)
{
    return (int)(g - proc.reg->group);
}

static struct reg_group *group_find(const union ibv_gid *gid, bool make)
{
    struct reg_group *spare = NULL;
    for (int i = 0; i < GROUPS; i++) {
        struct reg_group *g = &proc.reg->group[i];
        bool used = atomic_load(&g->used);
        if (used && !memcmp(g->gid, gid->raw, 16))
            return g;
        if (!used && !spare && i < (int)proc.fab.groups)
            spare = g;
    }
    if (!make || !spare)
        return NULL;
    for (int i = 0; i < GROUP_QPS; i++)
        atomic_store(&spare->qpn[i], 0);
    lane_reuse_for_group(mcast_row(spare), gid->raw);
    atomic_store(&spare->used, 1);
    return spare;
}

static void mcast_remove_dead(struct reg_group *g)
{
    for (int i = 0; i < GROUP_QPS; i++) {
        uint32_t qpn = atomic_load(&g->qpn[i]), slot = qpn >> QP_BITS;
        if (qpn && slot != proc.slot && !member_is_alive(slot))
            atomic_store(&g->qpn[i], 0);
    }
}

static int group_put(struct reg_group *g, struct ibv_qp *v)
{
    const uint32_t qpn = v->qp_num;
    int room = -1;
    for (int i = 0; i < GROUP_QPS; i++) {
        uint32_t at = atomic_load(&g->qpn[i]);
        if (at == qpn)
            return 0;
        if (!at && room < 0)
            room = i;
    }
    if (room < 0 || !lane_open(mcast_row(g), room, v))
        return ENOMEM;
    lane_update_members(mcast_row(g));
    return 0;
}

SOFTIB_API int ibv_attach_mcast(struct ibv_qp *v, const union ibv_gid *gid, uint16_t lid)
{
    (void)lid;
    if (!ctx_has_feature(ctx_from_ibv(v->context), FEATURE_MCAST))
        return EOPNOTSUPP;
    if (v->qp_type != IBV_QPT_UD || !gid_is_multicast(gid->raw))
        return EINVAL;
    shlock_lock(&proc.reg->lock);
    struct reg_group *g = group_find(gid, true);
    int r = g ? group_put(g, v) : ENOMEM;
    if (g && r) {
        mcast_remove_dead(g);
        r = group_put(g, v);
    }
    shlock_unlock(&proc.reg->lock);
    if (!r && wire_far)
        wire_far->group(gid->raw, true);
    return r;
}

SOFTIB_API int ibv_detach_mcast(struct ibv_qp *v, const union ibv_gid *gid, uint16_t lid)
{
    int r = EINVAL;
    bool left = false;
    (void)lid;
    shlock_lock(&proc.reg->lock);
    struct reg_group *g = group_find(gid, false);
    for (int i = 0; g && i < GROUP_QPS; i++) {
        uint32_t at = atomic_load(&g->qpn[i]);
        if (at == v->qp_num) {
            atomic_store(&g->qpn[i], 0);
            lane_close(mcast_row(g), i);
            r = 0;
        } else {
            left |= at != 0;
        }
    }
    if (g)
        lane_update_members(mcast_row(g));
    if (g && !left)
        atomic_store(&g->used, 0);
    shlock_unlock(&proc.reg->lock);
    if (!r && wire_far)
        wire_far->group(gid->raw, false);
    return r;
}

bool is_mcast_member(uint32_t qpn)
{
    for (int i = 0; i < GROUPS; i++) {
        struct reg_group *g = &proc.reg->group[i];
        for (int k = 0; atomic_load(&g->used) && k < GROUP_QPS; k++)
            if (atomic_load(&g->qpn[k]) == qpn)
                return true;
    }
    return false;
}

/* path.c: address resolution: computes the destination LID from the address attributes of a verbs call.
 * RoCE ports have LIDs, too, but only inside softib: programs use GIDs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/responder.h"

/* Returns `lid`, or 0 if it belongs to an Ethernet port: InfiniBand and Ethernet are two networks. */
static uint16_t lid_if_infiniband(uint16_t lid)
{
    struct fab_place at;
    return lid < MCAST_LID && fabric_find_lid(&proc.fab, lid, &at) && proc.fab.port[at.linear].ethernet ? 0
                                                                                                        : lid;
}

static uint16_t path_resolve_lid(const struct ibv_ah_attr *a, uint32_t from)
{
    if (!proc.fab.port[from].ethernet && (a->dlid || !a->is_global))
        return lid_if_infiniband(a->dlid);
    if (!a->is_global)
        return 0;
    if (gid_is_multicast(a->grh.dgid.raw))
        return MCAST_LID;
    return gid_resolve(&proc.fab, from, a->grh.sgid_index, a->grh.dgid.raw);
}

bool path_attr_legal(const struct ibv_ah_attr *a, uint32_t hca)
{
    if (a->port_num < 1 || a->port_num > proc.fab.ports || a->src_path_bits >> proc.fab.lmc)
        return false;
    uint32_t from = fabric_port_index(&proc.fab, proc.fab.node, hca, a->port_num);
    if (a->is_global && a->grh.sgid_index >= gid_table_size(&proc.fab, from))
        return false;
    return a->is_global || !proc.fab.port[from].ethernet;
}

void path_from_attr(const struct ibv_ah_attr *a, uint32_t hca, struct path *p)
{
    uint32_t from = fabric_port_index(&proc.fab, proc.fab.node, hca, a->port_num);
    struct gid mine = {.type = GID_INFINIBAND};
    if (a->is_global)
        gid_table_entry(&proc.fab, from, a->grh.sgid_index, &mine);
    *p = (struct path){
        .dlid = path_resolve_lid(a, from),
        .sl = a->sl,
        .src_path_bits = proc.fab.port[from].ethernet ? 0 : a->src_path_bits,
        .is_global = a->is_global,
        .sgid_index = a->grh.sgid_index,
        .gid_type = (uint8_t)mine.type,
        .port_num = a->port_num,
        .hop_limit = a->grh.hop_limit,
        .traffic_class = a->grh.traffic_class,
        .flow_label = a->grh.flow_label,
        .dgid = a->grh.dgid,
    };
}

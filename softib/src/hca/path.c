/* path.c: address resolution: from the address attributes of a verbs call to the destination LID.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/responder.h"
#include <endian.h>

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

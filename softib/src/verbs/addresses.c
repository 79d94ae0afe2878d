/* addresses.c: describes the IP addresses of the fabric's ports (softib/address.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "softib/address.h"
#include "fabric/gid.h"
#include "net/key.h"
#include "verbs/verbs.h"
#include <endian.h>

_Static_assert(SOFTIB_SECRET_BYTES == SHA256_SIZE, "a secret is a digest");
_Static_assert(SOFTIB_NODE_ADDRESSES == FAB_NODE_ADDRS, "all addresses of a node have room");

SOFTIB_API bool softib_join(struct softib_place *out)
{
    if (!proc_join(&machine))
        return false;
    *out = (struct softib_place){
        .key = proc.key, .node = proc.fab.node, .nodes = proc.fab.nodes, .tcp = proc.fab.wire == WIRE_TCP};
    return true;
}

static void describe_address(uint32_t linear, uint32_t gid_index, struct softib_address *out)
{
    const struct fabric *f = &proc.fab;
    struct fab_place at = {0};
    struct gid g = {0};
    out->lid = fabric_port_lid(f, linear);
    fabric_find_lid(f, out->lid, &at);
    gid_table_entry(f, linear, gid_index, &g);
    out->node = at.node;
    out->node_guid = htobe64(fabric_node_guid(at.node, at.hca));
    out->port = at.port;
    out->gid_index = gid_index;
    memcpy(out->gid, g.raw, sizeof(out->gid));
    out->vlan = g.vlan;
    out->ethernet = f->port[linear].ethernet;
}

SOFTIB_API bool softib_address_get(uint32_t nth, struct softib_address *out)
{
    uint32_t gid_index;
    for (uint32_t linear = 0; linear < proc.fab.nports; linear++)
        for (uint32_t i = 0; gid_get_ip(&proc.fab, linear, i, out->ip.s6_addr, &gid_index); i++)
            if (nth-- == 0) {
                describe_address(linear, gid_index, out);
                return true;
            }
    return false;
}

SOFTIB_API unsigned softib_node_addresses(uint32_t node, struct in_addr out[SOFTIB_NODE_ADDRESSES])
{
    return fabric_addrs(&proc.fab, node, out);
}

SOFTIB_API void softib_secret(const char *purpose, uint8_t out[SOFTIB_SECRET_BYTES])
{
    key_derive(purpose, out);
}

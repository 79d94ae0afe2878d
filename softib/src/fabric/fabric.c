/* fabric.c: maps nodes, adapters and ports to LIDs and GUIDs, and back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>

#define GUID_BASE 0x0250f71b00000000ull /* a locally administered EUI-64 */

#define FABRIC_FEATURE_NAME(id, name) [FEATURE_##id] = name,
const char *const fabric_features[FEATURES] = {FABRIC_FEATURES(FABRIC_FEATURE_NAME)};

/* Bytes that RoCE adds to the data of a packet: route header, UDP header, the longest headers of an
 * InfiniBand request, checksum. */
#define ROCE_HEADERS (40 + 8 + 12 + 4 + 28 + 4)

uint32_t fabric_mtu_of_ethernet(uint32_t mtu)
{
    uint32_t fits = 4096;
    while (fits >= 256 && fits + ROCE_HEADERS > mtu)
        fits /= 2;
    return fits >= 256 ? fits : 0;
}

void fabric_free(struct fabric *f)
{
    free(f->port);
    free(f->base_of);
    f->port = NULL;
    f->base_of = NULL;
}

uint32_t fabric_port_index(const struct fabric *f, uint32_t node, uint32_t hca, uint32_t port)
{
    return (node * f->hcas + hca) * f->ports + port - 1;
}

uint16_t fabric_port_lid(const struct fabric *f, uint32_t linear)
{
    return (uint16_t)((linear + 1) << f->lmc);
}

bool fabric_find_lid(const struct fabric *f, uint16_t lid, struct fab_place *at)
{
    uint32_t n = lid >> f->lmc;
    if (n < 1 || n > f->nports)
        return false;
    n--;
    at->linear = n;
    at->path = lid & ((1u << f->lmc) - 1);
    at->port = n % f->ports + 1;
    at->hca = n / f->ports % f->hcas;
    at->node = n / f->ports / f->hcas;
    return true;
}

static bool fabric_has_address(const struct in_addr *list, unsigned n, struct in_addr a)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i].s_addr == a.s_addr)
            return true;
    return false;
}

unsigned fabric_addrs(const struct fabric *f, uint32_t node, struct in_addr out[FAB_NODE_ADDRS])
{
    uint32_t ports = f->hcas * f->ports;
    const struct fab_port *p = &f->port[node * ports];
    unsigned n = 0;
    for (uint32_t i = 0; i < ports; i++)
        for (unsigned k = 0; k < p[i].addrs && n < FAB_NODE_ADDRS; k++)
            if (!fabric_has_address(out, n, p[i].addr[k]))
                out[n++] = p[i].addr[k];
    return n;
}

uint64_t fabric_latency(const struct fabric *f, uint32_t from, uint32_t to)
{
    return max_u64(f->port[from].latency, f->port[to].latency);
}

uint64_t fabric_node_guid(uint32_t node, uint32_t hca)
{
    return GUID_BASE | (uint64_t)node << 16 | (uint64_t)hca << 8;
}

uint64_t fabric_port_guid(uint32_t node, uint32_t hca, uint32_t port)
{
    return fabric_node_guid(node, hca) | port;
}

uint16_t fabric_guid_lid(const struct fabric *f, uint64_t guid)
{
    uint32_t node = (guid >> 16) & 0xffff, hca = (guid >> 8) & 0xff, port = guid & 0xff;
    if (guid >> 32 != GUID_BASE >> 32 || node >= f->nodes || hca >= f->hcas || port < 1 || port > f->ports)
        return 0;
    return fabric_port_lid(f, fabric_port_index(f, node, hca, port));
}

bool fabric_select(const struct fabric *f, const char *text, bool *match)
{
    unsigned node = 0, hca = 0, port = 0;
    bool all = !strncmp(text, "hca", 3); /* "hca1" without a node: the adapters of every node */
    int used = 0,
        parts = all ? 1 + sscanf(text, "hca%u%n/%u%n", &hca, &used, &port, &used)
                    : sscanf(text, "node%u%n/hca%u%n/%u%n", &node, &used, &hca, &used, &port, &used);
    if (parts < (all ? 2 : 1) || text[used] || node >= f->nodes || (parts > 1 && hca >= f->hcas) ||
        (parts > 2 && (port < 1 || port > f->ports)))
        return false;
    for (uint32_t i = 0; i < f->nports; i++) {
        struct fab_place at = {0};
        fabric_find_lid(f, fabric_port_lid(f, i), &at);
        match[i] = (all || at.node == node) && (parts < 2 || at.hca == hca) && (parts < 3 || at.port == port);
    }
    return true;
}

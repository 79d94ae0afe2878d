/* route_header.c: writes the 40 bytes before a datagram's data.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/route_header.h"
#include <endian.h>
#include <netinet/in.h>
#include <netinet/ip.h>

#define NEXT_IBA     0x1bu /* next header of a GRH: an InfiniBand transport header */
#define UDP_BYTES    8u
#define V4_AT        20u
#define V4_VERSION   4u
#define V6_VERSION   6u
#define BASE_HEADERS 24u /* base and datagram transport headers, with their checksum */

static uint16_t v4_checksum(const struct iphdr *h)
{
    uint16_t words[sizeof(*h) / 2];
    uint32_t sum = 0;
    memcpy(words, h, sizeof(words));
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        sum += words[i];
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

static void write_v4(struct ibv_grh *g, const struct gid *source, const struct path *p, uint32_t length)
{
    struct iphdr h = {
        .version = V4_VERSION,
        .ihl = 5,
        .tos = p->traffic_class,
        .tot_len = htobe16((uint16_t)(sizeof(h) + UDP_BYTES + BASE_HEADERS + length)),
        .frag_off = htobe16(IP_DF),
        .ttl = p->hop_limit,
        .protocol = IPPROTO_UDP,
    };
    memcpy(&h.saddr, source->raw + 12, sizeof(h.saddr));
    memcpy(&h.daddr, p->dgid.raw + 12, sizeof(h.daddr));
    h.check = v4_checksum(&h);
    memcpy((char *)g + V4_AT, &h, sizeof(h));
}

void route_header_write(struct ibv_grh *g, uint32_t from, const struct path *p, uint32_t length)
{
    struct gid source;
    memset(g, 0, sizeof(*g));
    if (!gid_table_entry(&proc.fab, from, p->sgid_index, &source))
        return;
    const bool v2 = source.type == GID_ROCE_V2;
    if (v2 && gid_is_v4(source.raw)) {
        write_v4(g, &source, p, length);
        return;
    }
    g->version_tclass_flow =
        htobe32(V6_VERSION << 28 | (uint32_t)p->traffic_class << 20 | (p->flow_label & 0xfffff));
    g->paylen = htobe16((uint16_t)(length + BASE_HEADERS + (v2 ? UDP_BYTES : 0)));
    g->next_hdr = v2 ? IPPROTO_UDP : NEXT_IBA;
    g->hop_limit = p->hop_limit;
    memcpy(g->sgid.raw, source.raw, sizeof(g->sgid.raw));
    g->dgid = p->dgid;
}

static void make_ipv4_gid(const void *address, struct gid *out)
{
    *out = (struct gid){.raw = {[10] = 0xff, [11] = 0xff}, .type = GID_ROCE_V2};
    memcpy(out->raw + 12, address, 4);
}

bool route_header_read(const struct ibv_grh *g, bool ethernet, struct gid *source, struct gid *destination)
{
    struct iphdr h;
    memcpy(&h, (const char *)g + V4_AT, sizeof(h));
    if (ethernet && h.version == V4_VERSION && h.ihl == 5 && h.protocol == IPPROTO_UDP && !v4_checksum(&h)) {
        make_ipv4_gid(&h.saddr, source);
        make_ipv4_gid(&h.daddr, destination);
        return true;
    }
    if (be32toh(g->version_tclass_flow) >> 28 != V6_VERSION)
        return false;
    *source = *destination = (struct gid){.type = !ethernet                    ? GID_INFINIBAND
                                                  : g->next_hdr == IPPROTO_UDP ? GID_ROCE_V2
                                                                               : GID_ROCE_V1};
    memcpy(source->raw, g->sgid.raw, sizeof(source->raw));
    memcpy(destination->raw, g->dgid.raw, sizeof(destination->raw));
    return true;
}

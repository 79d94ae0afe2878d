/* ah.c: address handles.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include "hca/route_header.h"
#include <endian.h>
#include <stdlib.h>

SOFTIB_API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a)
{
    const uint32_t hca = ctx_from_ibv(pd->context)->hca;
    if (!path_attr_legal(a, hca) || (!a->dlid && !a->is_global)) {
        errno = EINVAL;
        return NULL;
    }
    struct ah *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    path_from_attr(a, hca, &h->path);
    /* An adapter fails likewise if it cannot resolve the destination's MAC address. */
    if (!h->path.dlid && h->path.gid_type != GID_INFINIBAND) {
        free(h);
        errno = EHOSTUNREACH;
        return NULL;
    }
    h->ibv.context = pd->context;
    h->ibv.pd = pd;
    atomic_fetch_add(&((struct pd *)pd)->refs, 1);
    return &h->ibv;
}

SOFTIB_API int ibv_destroy_ah(struct ibv_ah *ah)
{
    atomic_fetch_sub(&((struct pd *)ah->pd)->refs, 1);
    free(ah);
    return 0;
}

/* Finds the index of a received datagram's destination in the port's GID table. */
static bool find_index(uint32_t linear, const struct gid *gid, uint8_t *index)
{
    struct gid e;
    for (uint32_t i = 0; gid_table_entry(&proc.fab, linear, i, &e); i++)
        if (e.type == gid->type && !memcmp(e.raw, gid->raw, sizeof(e.raw))) {
            *index = (uint8_t)i;
            return true;
        }
    return false;
}

static int fill_grh_attributes(uint32_t linear, struct ibv_grh *grh, struct ibv_ah_attr *a)
{
    const bool ethernet = proc.fab.port[linear].ethernet;
    struct gid source, mine;
    if (!route_header_read(grh, ethernet, &source, &mine))
        return EBADMSG;
    uint32_t flow = be32toh(grh->version_tclass_flow);
    a->is_global = 1;
    memcpy(a->grh.dgid.raw, source.raw, sizeof(source.raw));
    a->grh.hop_limit = 0xff;
    a->grh.traffic_class = (uint8_t)(flow >> 20);
    a->grh.flow_label = flow & 0xfffff;
    /* The destination of a multicast datagram is not in the table: answers use the first entry of the
     * type. */
    if (ethernet && !find_index(linear, &mine, &a->grh.sgid_index))
        a->grh.sgid_index = mine.type == GID_ROCE_V2;
    return 0;
}

SOFTIB_API int ibv_init_ah_from_wc(struct ibv_context *c, uint8_t port, struct ibv_wc *wc,
                                   struct ibv_grh *grh, struct ibv_ah_attr *a)
{
    memset(a, 0, sizeof(*a));
    if (!ctx_has_port(c, port))
        return EINVAL;
    a->dlid = wc->slid;
    a->sl = wc->sl;
    a->src_path_bits = wc->dlid_path_bits;
    a->port_num = port;
    if (!(wc->wc_flags & IBV_WC_GRH))
        return 0;
    return fill_grh_attributes(fabric_port_index(&proc.fab, proc.fab.node, ctx_from_ibv(c)->hca, port), grh,
                               a);
}

SOFTIB_API struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                                uint8_t port)
{
    struct ibv_ah_attr a;
    int err = ibv_init_ah_from_wc(pd->context, port, wc, grh, &a);
    if (err) {
        errno = err;
        return NULL;
    }
    return ibv_create_ah(pd, &a);
}

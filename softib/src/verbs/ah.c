/* ah.c: address handles.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"
#include <endian.h>
#include <stdlib.h>

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

/* way.c: the rails that a connection may take, where a process or its peer has several. A connection has one home at each
 * end: a rail that carries its queue pairs and HELLOs. Who asks chooses both; who is asked takes the rail on which the HELLO
 * came. When both ask at once and choose differently, the second of the two gives way, unless the first one's way leads
 * nowhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "net/guest.h"
#include "net/ib/ib.h"

#define STUBBORN 4 /* of IB_WAY_TRIES HELLOs: the first one does not take the way of the other yet */

uint32_t ib_rails_up(const struct ib *ib)
{
    uint32_t up = 0;
    for (uint32_t i = 0; i < ib->nrails; i++)
        up |= ib_rail_up(&ib->rails[i]) ? rail_bit(i) : 0;
    return up;
}

bool ib_first(const struct ib_endpoint *ep)
{
    const struct net *net = ep->ib->base.net;
    struct net_name me = net_name(net, net->rank), you = net_name(net, ep->peer->rank);
    return me.world != you.world ? me.world < you.world : me.rank < you.rank;
}

uint32_t ib_rails_tell(const struct ib *ib, struct ib_rail_said out[IB_RAILS_MAX])
{
    for (uint32_t i = 0; i < ib->nrails; i++) {
        const struct ib_rail *r = &ib->rails[i];
        out[i] = (struct ib_rail_said){.address = r->device->address,
                                       .network = r->device->used->subnet,
                                       .rate = r->device->used->rate,
                                       .adapter = r->adapter->index,
                                       .up = ib_rail_up(r),
                                       .rd_atomic = (uint16_t)MIN(r->device->attr.max_qp_rd_atom, 16)};
    }
    return ib->nrails;
}

static void networks(const struct ib_rail_said *rails, uint32_t n, struct pair_net *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (struct pair_net){rails[i].network, rails[i].address.ethernet};
}

int ib_ways_open(struct ib_endpoint *ep, const struct ib_rail_said *peer, uint32_t count)
{
    struct ib_rail_said mine[IB_RAILS_MAX];
    struct pair_net own[IB_RAILS_MAX], other[IB_RAILS_MAX];
    struct ib_ways *w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to rank %u", ep->peer->rank);
    ep->ways = w;
    w->theirs = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++)
        w->theirs_up |= peer[i].up ? rail_bit(i) : 0;
    w->next = RAIL_NONE;
    memcpy(w->peer, peer, count * sizeof(*peer));
    networks(mine, ib_rails_tell(ep->ib, mine), own);
    networks(peer, count, other);
    w->count = (uint8_t)pair_ways(own, ep->ib->nrails, other, count, w->way);
    ib_way_take(ep, pair_way_after(w->way, w->count, RAIL_NONE, ib_rails_up(ep->ib), w->theirs_up));
    return 0;
}

/* Its queue pairs are not there. */
void ib_way_take(struct ib_endpoint *ep, unsigned way)
{
    struct ib_ways *w = ep->ways;
    struct ib *ib = ep->ib;
    w->at = (uint8_t)way;
    w->next = RAIL_NONE;
    ep->home = w->way[way].a;
    ep->yours = w->way[way].b;
    ep->address = w->peer[ep->yours].address;
    ep->their_adapter = w->peer[ep->yours].adapter;
    for (uint32_t i = 0; i < ib->lanes; i++)
        ib_lane_home(&ep->lanes[i]);
    if (ep->ah)
        ib->device.verbs.destroy_ah(ep->ah);
    ep->ah = NULL;
}

void ib_way_next(struct ib_endpoint *ep)
{
    struct ib_ways *w = ep->ways;
    ib_way_take(ep, w->next != RAIL_NONE
                        ? w->next
                        : pair_way_after(w->way, w->count, w->at, ib_rails_up(ep->ib), w->theirs_up));
}

/* No answer: what the peer said of its ports may be old. Each of the two ends could look for the other where it is not. */
void ib_way_doubt(struct ib_endpoint *ep)
{
    ep->ways->theirs_up = rails_all(ep->ways->theirs);
}

static unsigned find(const struct ib_ways *w, uint8_t mine, uint8_t yours)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->way[i].a == mine && w->way[i].b == yours)
            return i;
    return RAIL_NONE;
}

/* A HELLO came in on a rail. Follows it there where it matters: only a new generation connects. */
bool ib_way_meets(struct ib_endpoint *ep, uint8_t rail, const struct ib_hello *h)
{
    struct ib_ways *w = ep->ways;
    if (!w)
        return rail == 0;
    w->theirs_up = h->up;
    if ((ep->home == rail && ep->yours == h->rail) || h->mine <= ep->conn.seen)
        return true;
    unsigned way = find(w, rail, h->rail);
    if (way == RAIL_NONE)
        return false;
    switch (ep->conn.state) {
    case CONN_IDLE:
        ib_way_take(ep, way);
        return true;
    case CONN_ASKING:
    case CONN_HALF:
        if (ib_first(ep) && ep->conn.tries % IB_WAY_TRIES < STUBBORN && ib_rail_up(&ep->ib->rails[ep->home]))
            return false;
        w->next = (uint8_t)way;
        /* Else frames may have arrived: conn.h lets it break, which looks at them; or that is about to happen. */
        if (ep->conn.state == CONN_ASKING && !ep->breaking)
            ib_endpoint_again(ep);
        return true;
    default:
        w->next = (uint8_t)way;
        return true;
    }
}

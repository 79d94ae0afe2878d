/* path.c: chooses the rails of a connection if a process or its peer has several. A connection has a primary
 * rail at each end, which carries its queue pairs and HELLOs. The process that opens the connection chooses
 * both; the peer uses the rail on which the HELLO arrived. If both open at once and choose differently, the
 * first end (ib_endpoint_is_first) prevails, unless its path does not work.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "net/ib/connection/connection.h"
#include "net/guest.h"

#define STUBBORN 4 /* first HELLOs of IB_PATH_TRIES during which the first end insists on its path */

bool ib_endpoint_is_first(const struct ib_endpoint *ep)
{
    const struct net *net = ep->ib->base.net;
    struct net_name me = net_process_name(net, net->rank), you = net_process_name(net, ep->peer->rank);
    return me.world != you.world ? me.world < you.world : me.rank < you.rank;
}

void ib_rails_list_networks(const struct ib_rail_info *rails, uint32_t n, struct pair_net *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (struct pair_net){rails[i].network, rails[i].address.ethernet};
}

int ib_paths_find(struct ib_endpoint *ep, const struct ib_rail_info *peer, uint32_t count)
{
    struct ib_rail_info mine[IB_RAILS_MAX];
    struct pair_net own[IB_RAILS_MAX], other[IB_RAILS_MAX];
    struct ib_paths *w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the connection to rank %u", ep->peer->rank);
    ep->paths = w;
    w->peer_rails = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++)
        w->peer_up |= peer[i].up ? rail_bit(i) : 0;
    w->next = RAIL_NONE;
    memcpy(w->peer, peer, count * sizeof(*peer));
    ib_rails_list_networks(mine, ib_rails_describe(ep->ib, mine), own);
    ib_rails_list_networks(peer, count, other);
    w->count = (uint8_t)pair_list_paths(own, ep->ib->nrails, other, count, w->path);
    ib_path_use(ep, pair_next_path(w->path, w->count, RAIL_NONE, ib_rails_list_up(ep->ib), w->peer_up));
    return 0;
}

/* Selects a path. The endpoint must have no queue pairs. */
void ib_path_use(struct ib_endpoint *ep, unsigned path)
{
    struct ib_paths *w = ep->paths;
    struct ib *ib = ep->ib;
    w->at = (uint8_t)path;
    w->next = RAIL_NONE;
    ep->primary = w->path[path].a;
    ep->peer_rail = w->path[path].b;
    ep->address = w->peer[ep->peer_rail].address;
    ep->peer_adapter = w->peer[ep->peer_rail].adapter;
    for (uint32_t i = 0; i < ib->lanes; i++)
        ib_lane_use_primary(&ep->lanes[i]);
    if (ep->ah)
        ib->device.verbs.destroy_ah(ep->ah);
    ep->ah = NULL;
}

void ib_path_use_next(struct ib_endpoint *ep)
{
    struct ib_paths *w = ep->paths;
    ib_path_use(ep, w->next != RAIL_NONE
                        ? w->next
                        : pair_next_path(w->path, w->count, w->at, ib_rails_list_up(ep->ib), w->peer_up));
}

void ib_path_assume_up(struct ib_endpoint *ep)
{
    ep->paths->peer_up = rails_all(ep->paths->peer_rails);
}

static unsigned paths_find(const struct ib_paths *w, uint8_t mine, uint8_t yours)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->path[i].a == mine && w->path[i].b == yours)
            return i;
    return RAIL_NONE;
}

/* Handles the rail on which a HELLO arrived: switches to that rail if the HELLO opens a new generation. */
enum ib_path_verdict ib_path_match_hello(struct ib_endpoint *ep, uint8_t rail, const struct ib_hello *h)
{
    struct ib_paths *w = ep->paths;
    if (!w)
        return rail == 0 ? IB_PATH_ACCEPTED : IB_PATH_REFUSED;
    w->peer_up = h->up;
    if ((ep->primary == rail && ep->peer_rail == h->rail) || h->mine <= ep->conn.seen)
        return IB_PATH_ACCEPTED;
    unsigned path = paths_find(w, rail, h->rail);
    if (path == RAIL_NONE)
        return IB_PATH_REFUSED;
    switch (ep->conn.state) {
    case CONN_IDLE:
        ib_path_use(ep, path);
        return IB_PATH_ACCEPTED;
    case CONN_ASKING:
    case CONN_HALF:
        if (ib_endpoint_is_first(ep) && ep->conn.tries % IB_PATH_TRIES < STUBBORN &&
            ib_rail_is_up(&ep->ib->rails[ep->primary]))
            return IB_PATH_REFUSED;
        w->next = (uint8_t)path;
        /* In CONN_HALF the connection breaks (conn.h): frames that may have arrived are processed first. */
        return ep->conn.state == CONN_ASKING && ep->route.state != FRAME_ROUTE_FAILING ? IB_PATH_RESTART
                                                                                       : IB_PATH_ACCEPTED;
    default:
        w->next = (uint8_t)path;
        return IB_PATH_ACCEPTED;
    }
}

/* frames.c: frames over the primary rail of a connection: into the peer's ring if the peer polls one, else through a queue pair.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/channel/channel.h"

__attribute__((noinline, cold)) int ib_frame_open_connection(struct ib_endpoint *ep)
{
    if (ep->conn.state == CONN_OPEN)
        return ERR_AGAIN; /* messages that the failed connection lost must be repeated first */
    ep->ib->events->wanted(ep);
    ep->peer->opening = true;
    return ERR_AGAIN;
}

int ib_primary_reserve_frame(struct ib_endpoint *ep, size_t len, void **payload)
{
    ep->reserved = NULL;
    ep->reserved_lane = &ep->lanes[0];
    ep->reserved_room = ep->tx_on && len <= ep->tx_frame_max ? ib_ring_reserve_slot(ep, &ep->lanes[0]) : NULL;
    if (!ep->reserved_room)
        return ib_lane_reserve_frame(ib_lane_for_size(ep, len), payload);
    *payload = ((struct ib_frame *)(void *)ep->reserved_room)->payload;
    return 0;
}

void ib_primary_commit_frame(struct ib_endpoint *ep, const struct frame_header *header, size_t len)
{
    if (ep->reserved) {
        ib_lane_commit_frame(ep, header, len);
        return;
    }
    struct ib_frame *f = (struct ib_frame *)(void *)ep->reserved_room;
    ib_head_fill(ep, &f->head, IB_FRAME, false);
    f->header = *header;
    ib_ring_post_slot(ep, sizeof(*f) + len);
}

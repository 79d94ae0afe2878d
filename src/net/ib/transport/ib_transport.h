/* ib_transport.h: start and end of the transport (transport.c), one poll (poll.c), sleep and asynchronous events
 * (sleep.c), endpoints of peers (peers.c), barriers of the network (barrier.c), and the handlers of events
 * and control messages (events.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_TRANSPORT_H
#define FP_NET_IB_TRANSPORT_H

#include "net/ib/ib.h"

/* peers.c */
int ib_peer_connect(struct transport *t, struct peer *peer);
void ib_peer_disconnect(struct transport *t, struct peer *peer);
void ib_peer_close_guest(struct transport *t, struct peer *peer, bool begin);
void ib_endpoints_free(struct ib *ib); /* called when the transport closes */

/* transport.c: sends LEAVE on connections that are ready for it. Returns true if this process may end. late:
 * FINISH_SECONDS have passed. */
bool ib_may_end(struct ib *ib, bool together, bool late);

/* poll.c */
int ib_poll(struct transport *t);

/* sleep.c */
int ib_event_open(struct ib *ib);
void ib_event_close(struct ib *ib);
bool ib_arm(struct transport *t);

/* barrier.c */
void ib_barriers_open(struct ib *ib);
void ib_barriers_close(struct ib *ib);

#endif

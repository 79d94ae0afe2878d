/* stream.h: what a member receives from one sender: order, duplicates, room, and when to acknowledge
 * [Liu04 7.2.4, 7.3.2, 7.3.4]. A pure state machine, the counterpart of sender.h.
 *
 *     taken ... next     packets that arrived in order and were not delivered to the application yet
 *     next ... +SPAN     packets that are stored if they arrive early
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MCAST_STREAM_H
#define FP_NET_MCAST_STREAM_H

#include "net/mcast/rules.h"

struct mcast_stream {
    uint32_t next, taken;
    uint64_t early;           /* bit i: packet next + i has arrived */
    uint32_t acked, promised; /* `next` and `limit` of the last acknowledgement */
    bool delivered;           /* packets also arrive over a connection: acknowledgements only report room */
    bool owe;                 /* an acknowledgement is due now */
    uint64_t due;             /* time when an acknowledgement is due, in ns; MCAST_NEVER: none is pending */
};

enum mcast_verdict {
    MCAST_TAKE,      /* deliver the packet to the application now */
    MCAST_KEEP,      /* store the packet in the ring, at seq modulo ring */
    MCAST_DUPLICATE, /* drop the packet */
    MCAST_REFUSE     /* drop the packet for lack of room: the sender repeats it */
};

/* An arrived packet, and the free buffers. */
struct mcast_arrival {
    uint32_t seq;
    bool wanted;    /* the application waits for the next packet of this sender */
    bool ask;       /* the sender requests an acknowledgement */
    uint32_t room;  /* free buffers for packets */
    uint32_t relay; /* free entries in the window of a co-root; UINT32_MAX: not a co-root */
    uint64_t now;
};

void mcast_stream_open(struct mcast_stream *s, const struct mcast_rules *rules);
/* For co-roots: every packet also arrives over a connection. */
void mcast_stream_set_delivered(struct mcast_stream *s);
/* Decides what to do with a packet. `skew`: index of this member among those that acknowledge to the same
 * parent. Afterwards a co-root may forward all packets before `next`. */
enum mcast_verdict mcast_stream_classify_packet(struct mcast_stream *s, const struct mcast_rules *rules,
                                                uint32_t skew, const struct mcast_arrival *a);

/* True if packet number `taken` waits for the application. */
static inline bool mcast_stream_has_packet(const struct mcast_stream *s)
{
    return s->taken != s->next;
}
void mcast_stream_packet_taken(struct mcast_stream *s);
/* Called when buffers are free again: acknowledges at once if the last acknowledgement reported no room. */
void mcast_stream_buffers_freed(struct mcast_stream *s);
/* Like mcast_stream_buffers_freed, for a stream that is delivered over a connection; `relay` as in struct
 * mcast_arrival. Must be called when a packet was taken or has left the co-root's window. */
void mcast_stream_offer_window(struct mcast_stream *s, const struct mcast_rules *rules, uint32_t relay);
/* Called when the sender has requested an acknowledgement without data. */
void mcast_stream_request_ack(struct mcast_stream *s);

static inline bool mcast_stream_ack_is_due(const struct mcast_stream *s, uint64_t now)
{
    return s->owe || now >= s->due;
}
/* Builds the acknowledgement, which the caller must send now. room, relay: see struct mcast_arrival. */
struct mcast_ack mcast_stream_ack(struct mcast_stream *s, const struct mcast_rules *rules, uint32_t room,
                                  uint32_t relay);

#endif

/* sender.h: the window of packets that a root or co-root stores until all its children have acknowledged them
 * [Liu04 7.2.2, 7.3]. A pure state machine: the caller provides memory, time and network.
 *
 *     base ... next      sent and stored; a packet leaves when the slowest child has it
 *     next ... limit     may be sent now: within the window, and every child has room
 *
 * A missing packet is sent again after a timeout, or at once when a child acknowledges later packets: to each
 * child that misses it if these are few, else to all. A child that has sent nothing since the last timeout
 * gets only its oldest missing packet: it probably computes, and its buffers are full.
 *
 * Children from index `acking` on (co-roots) also receive every packet over a connection [Liu04 7.2.3, step
 * 2]: a packet counts as acknowledged when the connection has accepted it, and their acknowledgements only
 * report room.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MCAST_SENDER_H
#define FP_NET_MCAST_SENDER_H

#include "net/mcast/rules.h"

#define MCAST_ALL UINT32_MAX

struct mcast_child {
    uint32_t next, limit;
    uint64_t early;
    bool answered; /* the child has sent an acknowledgement since the last timeout */
};

struct mcast_sender {
    const struct mcast_rules *rules;
    struct mcast_child *child;
    uint64_t *sent; /* when each packet was last sent, in ns; by number modulo window */
    uint32_t children,
        acking;          /* children with smaller indices acknowledge packets, the others only report room */
    uint32_t base, next; /* number of the oldest packet in the window, and of the next packet to send */
    uint32_t limit;      /* smallest limit of all children */
    uint32_t at_base, at_limit; /* children whose `next` is `base`; whose `limit` is `limit` */
    bool ahead;        /* a child has packets that have not been added to this window yet (co-root only) */
    uint32_t tries;    /* timeouts since the last packet left the window */
    uint64_t deadline; /* time of the next timeout, in ns */
};

/* A packet to send again, and its receivers. */
struct mcast_resend {
    uint32_t seq;
    uint32_t to; /* index of a child, or MCAST_ALL */
    bool ask;    /* no data: request an acknowledgement */
};

/* Opens a window. `child` has `children` entries, `sent` has rules->window. The first packet is number 0. */
void mcast_sender_open(struct mcast_sender *s, const struct mcast_rules *rules, struct mcast_child *child,
                       uint32_t children, uint64_t *sent);

/* Children from index `first` on (co-roots) receive every packet over a connection. */
void mcast_sender_set_first_coroot(struct mcast_sender *s, uint32_t first);
/* True if a packet must be sent to such a child over its connection; *seq is its number. Call
 * mcast_sender_delivered when the connection has accepted the packet. */
static inline bool mcast_sender_next_undelivered(const struct mcast_sender *s, uint32_t child, uint32_t *seq)
{
    const struct mcast_child *c = &s->child[child];
    *seq = c->next;
    return mcast_seq_is_before(c->next, s->next) && mcast_seq_is_before(c->next, c->limit);
}
void mcast_sender_delivered(struct mcast_sender *s, uint32_t child, uint64_t now);

static inline bool mcast_sender_is_idle(const struct mcast_sender *s)
{
    return s->base == s->next;
}
/* Returns the number of packets that the window permits to send now. */
static inline uint32_t mcast_sender_free_slots(const struct mcast_sender *s)
{
    const uint32_t window = s->rules->window - (s->next - s->base);
    if (s->children == 0)
        return s->rules->window;
    if (!mcast_seq_is_before(s->next, s->limit))
        return 0;
    return s->limit - s->next < window ? s->limit - s->next : window;
}

/* Called when a packet is sent; returns its number. The window must have room. *ask: the packet should
 * request an acknowledgement. */
uint32_t mcast_sender_add_packet(struct mcast_sender *s, uint64_t now, bool *ask);
/* Called when a send must wait for room: requests acknowledgements until there is room. */
void mcast_sender_window_full(struct mcast_sender *s, uint64_t now);
/* Handles an acknowledgement; returns the number of packets that have left the window. */
uint32_t mcast_sender_apply_ack(struct mcast_sender *s, uint32_t child, const struct mcast_ack *ack,
                                uint64_t now);

/* Both list packets to resend and return the number of entries, at most `room`. mcast_sender_list_resends,
 * after an acknowledgement: packets that this child misses although later ones have arrived.
 * mcast_sender_timeout, after the deadline: packets that any child misses. */
uint32_t mcast_sender_list_resends(struct mcast_sender *s, uint32_t child, uint64_t now,
                                   struct mcast_resend *out, uint32_t room);
uint32_t mcast_sender_timeout(struct mcast_sender *s, uint64_t now, struct mcast_resend *out, uint32_t room);

#endif

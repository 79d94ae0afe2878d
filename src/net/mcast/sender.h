/* sender.h: the window of packets that a root, or a co-root, keeps until all its children have acknowledged them
 * [Liu04 7.2.2, 7.3]. A pure state machine: memory, clock and network are the caller's.
 *
 *     base ... next      sent, kept; a packet leaves when the slowest child has it
 *     next ... limit     may be sent now: within the window, and every child has room
 *
 * What is missing is sent again after a timeout, or at once when a child acknowledges later packets; to the few who miss it,
 * or to all. A child from which nothing was received since the last timeout gets its oldest missing packet only: it is
 * likely to compute, and its buffers are full.
 *
 * Children from number `acking` on (co-roots) receive every packet over a connection besides [Liu04 7.2.3, step 2]: they count
 * as having a packet when the connection has taken it, and their acknowledgements only report room.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MCAST_SENDER_H
#define FP_NET_MCAST_SENDER_H

#include "net/mcast/rules.h"

#define MCAST_ALL UINT32_MAX

struct mcast_child {
    uint32_t next, limit;
    uint64_t early;
    bool answered; /* the child has acknowledged something since the last timeout */
};

struct mcast_sender {
    const struct mcast_rules *rules;
    struct mcast_child *child;
    uint64_t *sent; /* when each packet was last sent, in ns; by number modulo window */
    uint32_t children,
        acking;          /* acking: children before this one acknowledge packets, the others only room */
    uint32_t base, next; /* number of the oldest packet in the window, and of the next packet to send */
    uint32_t limit;      /* smallest limit of all children */
    uint32_t at_base, at_limit; /* children whose `next` is `base`, and whose `limit` is `limit` */
    bool ahead;        /* a child has packets that this window does not have yet: this is a co-root */
    uint32_t tries;    /* timeouts since a packet left the window */
    uint64_t deadline; /* time of the next timeout, in ns */
};

/* A packet to send again, and to whom. */
struct mcast_resend {
    uint32_t seq;
    uint32_t to; /* index of a child, or MCAST_ALL */
    bool ask;    /* no data: only ask for an acknowledgement */
};

/* `child` has `children` entries, `sent` one for each packet of the window; the first packet is number 0. */
void mcast_sender_open(struct mcast_sender *s, const struct mcast_rules *rules, struct mcast_child *child,
                       uint32_t children, uint64_t *sent);

/* The children from this one on receive every packet over a connection. */
void mcast_sender_deliver(struct mcast_sender *s, uint32_t first);
/* True if a packet must be sent to such a child; *seq is its number. Call mcast_sender_delivered when the connection has accepted it. */
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
/* The number of packets that may be sent. */
static inline uint32_t mcast_sender_free_slots(const struct mcast_sender *s)
{
    const uint32_t window = s->rules->window - (s->next - s->base);
    if (s->children == 0)
        return s->rules->window;
    if (!mcast_seq_is_before(s->next, s->limit))
        return 0;
    return s->limit - s->next < window ? s->limit - s->next : window;
}

/* Called when a packet is sent; returns its number. There must be room. *ask: it should request an acknowledgement. */
uint32_t mcast_sender_add_packet(struct mcast_sender *s, uint64_t now, bool *ask);
/* Called when a send waits for room: acknowledgements are requested from children until there is room. */
void mcast_sender_window_full(struct mcast_sender *s, uint64_t now);
/* Handles an acknowledgement; returns how many packets have left the window. */
uint32_t mcast_sender_apply_ack(struct mcast_sender *s, uint32_t child, const struct mcast_ack *ack,
                                uint64_t now);

/* Both list packets to resend and return how many of `room` entries they have filled. mcast_sender_list_resends, after an
 * acknowledgement: what this child misses although later packets have arrived. The other one, after the deadline: what
 * any child misses. */
uint32_t mcast_sender_list_resends(struct mcast_sender *s, uint32_t child, uint64_t now,
                                   struct mcast_resend *out, uint32_t room);
uint32_t mcast_sender_timeout(struct mcast_sender *s, uint64_t now, struct mcast_resend *out, uint32_t room);

#endif

/* credit.h: flow control of the send/receive channel [Liu04 5] as arithmetic. One struct credit
 * per lane: the number of frames that this side may send, the number of receive buffers posted for the peer,
 * and the number of credits not yet returned to the peer. A pure state machine: no buffers, no verbs, no
 * clock. The transport, the unit test and the exhaustive exploration drive the same code.
 *
 *   hw       No credits. The adapter holds frames back while the receiver has no buffer (receiver-not-ready
 *            with endless retry).
 *   static   A frame takes a credit. Credits are returned by frames in the other direction (piggybacked) or,
 *            when enough are owed, in a credit message. A credit message needs no credit itself, so it cannot
 *            deadlock.
 *   dynamic  Like static, with few buffers at first. A frame that had to wait for a credit makes the receiver
 *            post more buffers. When no frame had to wait for a while, the receiver releases buffers.
 *
 * Invariant: credits held by the sender + frames not consumed yet + credits announced but not yet granted +
 * credits owed by the receiver = buffers posted at the receiver. So a sender without credits is owed some,
 * and credit_message_is_due becomes true at the receiver before all of them are owed: a receiver that sends
 * the credit message when it is due never leaves the peer waiting for ever. Each credit message carries at
 * least due_at credits. With static, therefore, at most first / due_at of them are in flight, and a receiver
 * that keeps that many buffers above `posted` never makes the adapter refuse one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_CREDIT_H
#define FP_NET_IB_CREDIT_H

#include "base/util.h"

enum credit_scheme { CREDIT_HW, CREDIT_STATIC, CREDIT_DYNAMIC };
enum credit_growth { CREDIT_LINEAR, CREDIT_EXPONENTIAL };

struct credit_rules {
    enum credit_scheme scheme;
    enum credit_growth growth;
    uint32_t first;       /* buffers posted for a peer when the connection opens, at least 1 */
    uint32_t buffers_max; /* largest number of buffers for a peer (dynamic) */
    uint32_t step;        /* linear growth: buffers added at a time */
    uint32_t tell_at;     /* owed credits at which a message is due; 0: half of the posted buffers */
    uint32_t calm_after;  /* dynamic: frames without a wait until a buffer is released; 0: never */
};

struct credit {
    const struct credit_rules *rules;
    uint32_t unit; /* credits that a frame takes: 1; 0 with hw */
    /* State of the sender. */
    uint32_t have; /* frames that may be sent; constant with hw */
    bool starved;  /* a frame was refused since the last frame was sent */
    /* State of the receiver. */
    uint32_t posted;      /* buffers for this peer */
    uint32_t most_posted; /* largest value of `posted` so far (table 5.2) */
    uint32_t owed;        /* buffers reposted whose credits were not returned to the peer yet */
    uint32_t due_at;      /* owed credits at which a credit message is due */
    uint32_t calm;        /* frames since the last one that had waited for a credit */
};

/* Initialises the credits to the number of buffers that the other side posted, at least 1. */
void credit_start(struct credit *c, const struct credit_rules *rules, uint32_t peer_posted);

/* Adapts the number of buffers (dynamic scheme); returns as credit_frame_consumed. */
uint32_t credit_adapt(struct credit *c, bool waited);

/* Takes a credit for one frame. False: no credit, the frame must not be sent. *waited: an earlier attempt was
 * refused; the frame must report this to the receiver (IB_WAITED). */
static inline bool credit_take(struct credit *c, bool *waited)
{
    if (unlikely(c->have == 0)) {
        c->starved = true;
        return false;
    }
    *waited = c->starved;
    c->starved = false;
    c->have -= c->unit;
    return true;
}

/* Returns a credit that was taken for a frame that was not sent. */
static inline void credit_return_unused(struct credit *c, bool waited)
{
    c->have += c->unit;
    c->starved |= waited;
}

/* Adds n credits that the peer granted. */
static inline void credit_add_granted(struct credit *c, uint32_t n)
{
    c->have += n;
}

/* Called when a frame that had taken a credit was received and its buffer is free. Returns the number of
 * buffers to post now: 1, more (growth), or 0 (one is released). Their credits are owed to the peer. */
static inline uint32_t credit_frame_consumed(struct credit *c, bool waited)
{
    if (c->rules->scheme == CREDIT_DYNAMIC)
        return credit_adapt(c, waited);
    c->owed += c->unit;
    return 1;
}

/* Returns the credits that the next message carries, at most `limit`; they are no longer owed. */
static inline uint32_t credit_take_owed(struct credit *c, uint32_t limit)
{
    uint32_t n = MIN(c->owed, limit);
    c->owed -= n;
    return n;
}

/* True if at least `due_at` credits are owed: a credit message, which carries all of them, is due. */
static inline bool credit_message_is_due(const struct credit *c)
{
    return c->owed >= c->due_at;
}

#endif

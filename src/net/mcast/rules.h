/* rules.h: definitions that both ends of a reliable multicast share: packet numbers, acknowledgements,
 * settings [Liu04 7.2, 7.3]. The caller passes the time in ns; no clock is read here.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MCAST_RULES_H
#define FP_NET_MCAST_RULES_H

#include <stdbool.h>
#include <stdint.h>

#define MCAST_NEVER UINT64_MAX
#define MCAST_SPAN \
    64 /* packets after a missing one that a receiver stores: mcast_ack.early has a bit for each */

/* Parameters that are the same at all members of a group. */
struct mcast_rules {
    uint32_t window; /* packets that a sender stores until all members have acknowledged them */
    uint32_t ring;   /* packets of one sender that a receiver stores for its application; at least `window` */
    uint32_t aggregate;   /* packets per acknowledgement */
    bool skew;            /* members acknowledge different packets, so that acknowledgements do not collide */
    bool piggyback;       /* an acknowledgement waits up to `delay` for a packet that can carry it */
    uint32_t few;         /* a packet that at most `few` members miss is sent to each of them */
    uint32_t burst;       /* largest number of packets that a timeout sends again */
    uint64_t timeout;     /* ns until a packet is sent again; doubled after each timeout ... */
    uint64_t timeout_max; /* ... up to this value */
    uint64_t quiet;       /* shortest time in ns between two repetitions of a packet */
    uint64_t delay;       /* ns that an aggregated acknowledgement waits for the next packet */
};

/* Derives the other parameters from those that users set. */
static inline struct mcast_rules mcast_rules_derive(uint32_t window, uint32_t aggregate, bool skew,
                                                    uint64_t timeout)
{
    return (struct mcast_rules){.window = window,
                                .ring = 2 * window,
                                .aggregate = aggregate,
                                .skew = skew,
                                .few = 2,
                                .burst = 8,
                                .timeout = timeout,
                                .timeout_max = 64 * timeout,
                                .quiet = timeout / 4,
                                .delay = timeout / 4};
}

struct mcast_ack {
    uint32_t next;  /* all packets before this one have arrived */
    uint32_t limit; /* the receiver has room for packets with numbers below `limit` */
    uint64_t early; /* bit i: packet next + i has arrived; bit 0 is never set */
};

/* Compares packet numbers, which wrap around. */
static inline bool mcast_seq_is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}
static inline uint32_t mcast_seq_later(uint32_t a, uint32_t b)
{
    return mcast_seq_is_before(a, b) ? b : a;
}

#endif

/* pollset.h: which connections the receiver polls by RDMA ring [Liu04 6.1.3, 6.2.6]. The set
 * is bounded, so that polling stays fast; all other messages arrive through the completion queue. A pure
 * state machine over small numbers (the caller's index of a connection): events in, decisions out.
 *
 *   first    the connections that send first, until the set is full; none is ever removed (the paper's own)
 *   traffic  connections that sent a few frames lately, until the set is full; then a connection that sends clearly
 * more (over twice as many frames) than the member with the least traffic replaces that member. Two
 * connections with similar traffic never replace each other.
 *
 * "Lately" is counted in frames, not in time: after a window of frames every count is halved. The window
 * grows with the limit, so that many connections with equal traffic can all reach POLLSET_WORTH.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_POLLSET_H
#define FP_NET_IB_POLLSET_H

#include "base/util.h"

#define POLLSET_MAX    256
#define POLLSET_NONE   UINT32_MAX
#define POLLSET_WORTH  16   /* traffic: recent frames that justify the memory of a ring */
#define POLLSET_WINDOW 4096 /* minimum number of frames until counts are halved */

enum pollset_policy { POLLSET_FIRST, POLLSET_TRAFFIC };
enum pollset_order { POLLSET_SEQUENTIAL, POLLSET_CIRCULAR, POLLSET_PRIORITISED };

struct pollset_member {
    uint32_t id;      /* of the connection */
    uint32_t traffic; /* recent frames; halved once in a window */
    bool leaving;     /* the peer was requested to stop; polled until it confirms */
};

struct pollset {
    enum pollset_policy policy;
    enum pollset_order order;
    uint32_t limit; /* largest number of members; 0: no RDMA channel */
    uint32_t count;
    uint32_t leaving; /* number of members with `leaving` */
    uint32_t next;    /* circular order: first index of the next round */
    uint32_t events;  /* frames since the counts of traffic were last halved */
    uint32_t window;  /* frames between two halvings */
    uint32_t epoch;   /* number of halvings */
    uint32_t least;   /* lower bound of the traffic of members that are not leaving */
    struct pollset_member members[POLLSET_MAX];
};

struct pollset_change {
    uint32_t add;    /* connection that has become the last member; or POLLSET_NONE */
    uint32_t remove; /* connection to stop, a member until pollset_remove_member; or POLLSET_NONE */
};

void pollset_open(struct pollset *s, enum pollset_policy policy, enum pollset_order order, uint32_t limit);

/* Counts a frame that was small enough for a ring but came through the completion queue. *traffic is a
 * private word of pollset that the caller stores per connection, initially 0. Frames of members count too
 * (their ring was full, or they have not received the offer yet). */
struct pollset_change pollset_count_frame(struct pollset *s, uint32_t id, uint32_t *traffic);

/* Removes a connection that has stopped writing to its ring (IB_RING_STOPPED, or closed). Later members move
 * up. A removal or addition during a round of polling may make the round miss or repeat a member; the round
 * stays in bounds if it reads count and pollset_round_place in each step. */
void pollset_remove_member(struct pollset *s, uint32_t id);

void pollset_age_counts(struct pollset *s); /* halves the counts */

/* Counts a frame that member number `place` delivered by ring; returns the member's place afterwards. In
 * prioritised order it may exchange places with the previous member, which was polled already. */
static inline uint32_t pollset_count_hit(struct pollset *s, uint32_t place)
{
    struct pollset_member *m = &s->members[place];
    m->traffic++;
    if (unlikely(++s->events >= s->window))
        pollset_age_counts(s);
    if (s->order != POLLSET_PRIORITISED || place == 0 || m->traffic <= m[-1].traffic)
        return place;
    struct pollset_member forward = *m;
    *m = m[-1];
    m[-1] = forward;
    return place - 1;
}

/* The k-th place to poll in a round, for k in 0..count-1. */
static inline uint32_t pollset_round_place(const struct pollset *s, uint32_t k)
{
    if (s->order != POLLSET_CIRCULAR)
        return k;
    uint32_t place = s->next + k;
    return place >= s->count ? place - s->count : place;
}

/* Ends a round of polling. */
static inline void pollset_end_round(struct pollset *s)
{
    s->next = s->next + 1 < s->count ? s->next + 1 : 0;
}

#endif

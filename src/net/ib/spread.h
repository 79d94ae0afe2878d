/* spread.h: frames over several rails [Liu04 8.2.4]: small messages and the control messages of protocols, multiplexed by
 * FISHPLATE_IB_MESSAGES. net/rails/mux.h chooses a pair of rails for each frame; the sequence number puts what arrives in
 * order. Each pair that carries frames has receive buffers and credits of its own; the credits ride on what travels the other
 * way over the same pair. Slots of a ring are written over any pair: the receiver takes them in their order.
 *
 * A pair that fails with frames under way takes the connection with it for a moment: its queue pairs on all rails are dropped at
 * both ends, so that nothing old can arrive, and what is missing is sent again in order (move.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_SPREAD_H
#define FP_NET_IB_SPREAD_H

#include "net/ib/lane.h"
#include "net/ib/wire.h"
#include "net/rails/mux.h"

struct ib;
struct ib_endpoint;

/* What the frames of a connection have on its pairs. */
struct ib_spread {
    struct mux mux;
    uint32_t owing;            /* pairs whose credits could not be told yet */
    uint32_t seen[RAILS_MAX];  /* requests of the pair that mux knows the end of */
    uint64_t quiet[RAILS_MAX]; /* bytes since the last request that reports */
    uint32_t *bytes
        [RAILS_MAX]; /* of the frame at each place of the send queue, as mux counts it; NULL: unused so far */
};

bool ib_spreads(const struct ib_endpoint *ep); /* frames may take several rails */
void ib_spread_begin(struct ib_endpoint *ep); /* the connection is open: several are wanted, or watched for */
bool ib_spread_rings(const struct ib *ib);    /* rings too */
uint16_t
ib_spread_posted(const struct ib_endpoint *ep); /* receive buffers of a pair that a peer is told of */
void ib_spread_open(struct ib_endpoint *ep);    /* its pairs are known */
void ib_spread_close(struct ib_endpoint *ep);
void ib_spread_home(struct ib_endpoint *ep); /* its home is open again */
void ib_spread_look(struct ib_endpoint *ep); /* pairs came or went: are there several for frames? */
void ib_spread_connected(struct ib_lane *lane, uint16_t posted);
int ib_spread_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                   size_t len);
int ib_spread_reserve(struct ib_endpoint *ep, size_t len, void **payload);
void ib_spread_commit(struct ib_endpoint *ep, const struct frame_header *header, size_t len);
void ib_spread_head(struct ib_lane *lane, struct ib_head *h, enum ib_type type, bool waited);
void ib_spread_credits(struct ib_lane *lane, struct ib_head *h); /* a message came in through a pair */
void ib_spread_owe(struct ib_lane *lane);
void ib_spread_flush(struct ib_endpoint *ep); /* credits that found no room */
void ib_spread_fail(struct ib_endpoint *ep);  /* nothing arrives on its pairs any more */
void ib_spread_drop(struct ib_endpoint *ep);  /* what was under way is kept; the pairs are joined anew */
bool ib_spread_carries(const struct ib_lane *lane); /* a frame is under way there */
bool ib_spread_quiet(
    struct ib_endpoint *ep); /* no frame is under way on pairs; else asks the adapters to tell */
void ib_spread_last(struct ib_endpoint *ep); /* CLOSE or AGREE was sent: the ends of pairs count too */
bool ib_spread_may_end(const struct ib_endpoint *ep); /* there is room for that */

#endif

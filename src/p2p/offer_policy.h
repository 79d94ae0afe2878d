/* offer_policy.h: the receiver starts a transfer [Takagi13 2.2, 3.2]: it offers the sender the memory of one
 * posted receive (RTR, ready to receive). Both sides must agree which message that receive matches, although
 * messages and offers cross in the network. Each side needs only counters:
 *
 * The receiver offers a receive only if the receive names source and tag, and if no older posted receive,
 * with or without wildcards, matches the same messages. The offer contains the number of messages of the same
 * class (envelope_class) that the receiver has received from that peer in frames (eager or announced).
 *
 * The sender counts the messages that it has sent to the peer likewise. An offer that arrives with received
 * != sent has crossed with a message, which the receive may match: the sender discards the offer. With
 * received == sent no message of that class is in transit in frames. A message that was written into an
 * earlier offer may be, but not with the same envelope: its receive would still be posted, and older. So the
 * offered receive matches the next message with this envelope, and the sender stores the offer until it sends
 * that message. A large message that fits is written into the offered memory. Any other message is sent as
 * without an offer; when it arrives, the receiver withdraws the offer.
 *
 * A written message does not arrive in the order of frames. Before the receiver matches a frame with an
 * offered receive, it checks whether that receive has been filled: with put_ordered, a frame sent after the
 * write arrives after the written data, or after WRITTEN. Without put_ordered, the sender sends TAKEN before
 * it sends another message with the same envelope while the write is in progress.
 *
 * So a stored offer belongs to a receive that is still posted. To cancel that receive (MPI_Cancel) the
 * receiver recalls its offers; the sender answers after its writes into them have ended.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_OFFER_POLICY_H
#define FP_P2P_OFFER_POLICY_H

#include "net/peer.h"
#include "p2p/match.h"

#define OFFERS_MAX 16 /* largest number of offers to one peer */

struct offer {
    struct envelope env;
    uint64_t cookie; /* cookie of the offered receive */
    uint64_t address, room;
    struct net_key key;
    uint8_t last; /* value that the receiver has stored in the last byte */
    bool looks;   /* the receiver polls that byte: no message reports its change */
};

/* At the sender: the offers of a peer. */
struct offers {
    int count;
    struct offer held[OFFERS_MAX];
};

/* Messages are counted by classes of envelopes, so that few unrelated messages, for example of a barrier,
 * invalidate an offer. */
static inline uint32_t envelope_class(struct envelope env)
{
    return ((uint32_t)env.context + (uint32_t)env.tag) % PEER_CLASSES;
}

/* Stores an offer that has arrived. Returns false if messages were sent meanwhile, or if the table is
 * full. */
static inline bool offers_add(struct offers *o, const struct offer *offer, uint32_t received, uint32_t sent)
{
    if (received != sent || o->count == OFFERS_MAX)
        return false;
    o->held[o->count++] = *offer;
    return true;
}

/* Removes and returns the offer for a message that is about to be sent; false if there is none. */
static inline bool offers_remove_matching(struct offers *o, struct envelope env, struct offer *out)
{
    for (int i = 0; i < o->count; i++) {
        if (!envelope_equal(o->held[i].env, env))
            continue;
        *out = o->held[i];
        /* stored offers have different envelopes: their order does not matter */
        o->held[i] = o->held[--o->count];
        return true;
    }
    return false;
}

#endif

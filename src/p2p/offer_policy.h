/* offer_policy.h: when the receiver starts a transfer [Takagi13 2.2, 3.2], it offers the sender the memory of one
 * posted receive (RTR, ready to receive). Which message will that receive take? Both sides must agree,
 * although messages and offers cross on their way. Each side needs only counters for that:
 *
 * The receiver offers a receive only if it names source and tag, and if it is the oldest posted one that
 * takes such a message: no older receive, with or without wildcards, could take it first. With the offer goes
 * the number of messages it has received from that peer so far (frames with an envelope: eager or announced) of
 * the same class: those that could be for this receive, and some others.
 *
 * The sender counts the messages that it has sent to the peer likewise. An offer that arrives with received != sent has
 * crossed with a message, which may be the one that this receive takes: the offer is void, and dropped. With received ==
 * sent nothing of that class is under way in frames. A message that was written into an earlier offer may be,
 * but not with the same envelope: its receive would be posted still, and older. So the offered receive takes
 * the next message with this envelope, whatever it is: the sender keeps the offer until it sends one. If that
 * is a large message that fits, it is written into the offered memory; anything else goes as if there were no
 * offer, and arrives where the offer came from, which makes it void there too.
 *
 * A message that was written is not seen in the order of frames. Before the receiver gives an offered receive
 * to a frame, it looks whether it has been filled meanwhile: a frame sent after the write arrives after its
 * data (put_ordered), or after the word that the receiver was promised instead. Where that is not so, the
 * sender first reports that the receive is taken (TAKEN) if it sends another message with the same envelope
 * while it still writes.
 *
 * So an offer that the sender holds belongs to a receive that is still posted. To take that receive back
 * (MPI_Cancel) the receiver recalls its offers; the answer comes behind everything the sender did with
 * them.
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
    uint8_t last; /* value of the last byte of the room */
    bool looks;   /* the receiver polls that byte: no message reports its change */
};

/* At the sender: the offers of a peer. */
struct offers {
    int count;
    struct offer held[OFFERS_MAX];
};

/* Messages are counted by classes of envelopes, so that few unrelated ones cross with an offer: a barrier
 * between the receive and the send, say. */
static inline uint32_t envelope_class(struct envelope env)
{
    return ((uint32_t)env.context + (uint32_t)env.tag) % PEER_CLASSES;
}

/* Adds an offer that has arrived. Returns false if messages that were sent meanwhile make it void. */
static inline bool offers_add(struct offers *o, const struct offer *offer, uint32_t received, uint32_t sent)
{
    if (received != sent || o->count == OFFERS_MAX)
        return false;
    o->held[o->count++] = *offer;
    return true;
}

/* Takes the offer for a message that is about to be sent; false if there is none. */
static inline bool offers_remove_matching(struct offers *o, struct envelope env, struct offer *out)
{
    for (int i = 0; i < o->count; i++) {
        if (!envelope_equal(o->held[i].env, env))
            continue;
        *out = o->held[i];
        o->held[i] = o->held[--o->count]; /* no two have one envelope: the order does not matter */
        return true;
    }
    return false;
}

#endif

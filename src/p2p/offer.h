/* offer.h: receives that are offered to their sender, and the state of both sides for a peer. offer_policy.h
 * defines which message is written into which receive; rendezvous_put.c writes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_OFFER_H
#define FP_P2P_OFFER_H

#include "p2p/engine.h"

/* States of a receive into which the sender may write. */
#define OFFERED_STATES (STATE_BIT(RECV_OFFERED) | STATE_BIT(RECV_TAKEN) | STATE_BIT(RECV_RECALLED))

/* State of offers to and from a peer; created with the first offer in either direction. */
struct link {
    struct list all; /* in p2p->links */
    struct peer *peer;
    /* As the receiver of messages. */
    struct list offered; /* requests whose receive is offered */
    int noffered;
    bool recalling; /* FRAME_RECALLED is awaited: no offer is sent meanwhile */
    /* As the sender of messages. */
    struct offers offers;
    struct list writes; /* requests that are being written into offers */
    bool answer;        /* FRAME_RECALLED is sent when all writes have ended */
};

static inline struct link *peer_link(const struct peer *peer)
{
    return peer->protocol;
}

/* Creates the state of offers to and from a peer; NULL if memory is out. */
struct link *link_make(struct p2p *p, struct peer *peer);
void link_close(struct peer *peer); /* called if the peer disconnects or dies */
void links_close(struct p2p *p);

/* At the receiver: offers a registered and published receive. Its last byte gets the value `last` until the
 * message covers it. */
void offer_begin(struct p2p_request *r, enum p2p_protocol protocol, uint8_t last);
/* Ends the offer: a message of `length` bytes was written into the memory, or (not `used`) the offer was
 * withdrawn. */
void offer_end(struct p2p_request *r, uint64_t length, bool used);
/* Requests the offer back from the sender, to cancel the receive. */
void offer_recall_all(struct p2p_request *r);
frame_handler taken_arrived, recalled_arrived;

/* Handlers of frames at the sender. */
frame_handler rtr_arrived, recall_arrived;
/* Claims the offer for a message that is about to be sent, if there is one. */
bool offer_claim_for_send(struct peer *to, struct envelope env, struct offer *offer);
/* Called when the send begins, and ends, to write into the offer that it has claimed. */
void offer_write_begin(struct p2p_request *r);
void offer_write_end(struct p2p_request *r);
/* Called for a message that is about to be sent in a frame, while to->eager_below is 0: discards an offer for
 * this message. ERR_AGAIN: the message must not be sent yet. */
int offer_discard_for_send(struct peer *to, struct envelope env);
/* True if a send of this size should wait a moment for an offer. */
bool offer_is_awaited(const struct p2p_request *r);

#endif

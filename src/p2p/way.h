/* way.h: which protocol a large message takes, by what both sides can do, what the user forces and what has been
 * measured (choice.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_WAY_H
#define FP_P2P_WAY_H

#include "p2p/rendezvous.h"

/* The protocol for this announced message; r->base.bytes of it are wanted. */
enum p2p_protocol way_choose(struct p2p *p, struct p2p_request *r, const struct announcement *a);
/* The large receive is complete, or has failed: tells the policy and the record of links (net/pace.h). */
void way_took(struct p2p_request *r, int status);
/* The protocol that was chosen is not open after all: in pieces, which always is. */
void way_in_pieces(struct p2p *p, struct p2p_request *r, uint64_t bytes);

/* Messages that are registered in pieces (rendezvous_pipe.c): whether this send can be; whether it is to
 * be; and in pieces of how many bytes. */
bool way_can_pipe(const struct p2p_request *r);
bool way_in_a_pipe(const struct p2p_request *r);
uint64_t way_piece(const struct p2p_request *r, uint64_t bytes);
/* The receiver: the size of pieces, as the sender wants it or else itself. */
uint64_t way_pipe_piece(const struct p2p_request *r, const struct rts *rts, uint64_t bytes);

/* What this rank tells another one with the announcement of a message: bits of rts.can. The lower of the two ranks tells the
 * way + 1 of messages that cross, or that go to and fro (choice.h), 0: nothing; the other one what the last of these took it. */
uint64_t way_told(struct p2p *p, const struct peer *to, uint64_t bytes);
/* The announcement has left. */
void way_announced(struct peer *to, uint64_t bytes);

/* Whether nobody has forced a protocol. */
bool way_measures(void);
/* How a receive is to be offered to this peer: PROTOCOL_PUT, PROTOCOL_PUTNR, or PROTOCOL_RENDEZVOUS: not at
 * all. `sure`: whatever became of earlier offers. */
enum p2p_protocol way_offers(const struct peer *peer, bool *sure);

/* What is learned about large messages from this peer. */
static inline struct choice *choice_of(struct p2p *p, const struct peer *peer)
{
    return &p->choices[peer->caps.cpu_moves];
}

#endif

/* protocol.h: chooses the protocol of a large message by the capabilities of both sides, the user's setting,
 * and the measured costs of the protocols (traffic.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_PROTOCOL_H
#define FP_P2P_PROTOCOL_H

#include "p2p/rendezvous.h"

/* Chooses the protocol for an announced message, of which r->base.bytes bytes are received. */
enum p2p_protocol protocol_choose(struct p2p *p, struct p2p_request *r, const struct announcement *a);
/* Called when a large receive is complete or has failed: reports its cost to the tuner, and its speed to the
 * record of links (net/pace.h). */
void protocol_end(struct p2p_request *r, int status);
/* Falls back to R3, which always works, when the chosen protocol turns out to be impossible. */
void protocol_fall_back(struct p2p *p, struct p2p_request *r, uint64_t bytes);

/* Warns when FISHPLATE_RENDEZVOUS names a protocol that this library was built without. */
void protocol_report_missing(void);

/* protocol_can_pipeline: PIPE is possible for this message. protocol_forces_pipe: FISHPLATE_RENDEZVOUS
 * requests PIPE, and PIPE is possible. */
bool protocol_can_pipeline(const struct p2p_request *r, uint64_t bytes);
bool protocol_forces_pipe(const struct p2p_request *r);
/* True if the user requests that GPU memory be mapped, however short the message is. */
bool protocol_forces_map(void);

/* The protocol by which receives are offered to this peer: PROTOCOL_PUT, PROTOCOL_PUTNR, or
 * PROTOCOL_RENDEZVOUS for none. */
enum p2p_protocol protocol_offers(const struct peer *peer);
/* True if sends wait a moment for an offer. */
bool protocol_waits_for_offers(void);

#endif

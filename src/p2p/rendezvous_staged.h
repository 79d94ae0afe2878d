/* rendezvous_staged.h: STAGED (rendezvous_staged.c): large messages of GPU memory that an adapter moves between
 * staging buffers in host memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_RENDEZVOUS_STAGED_H
#define FP_P2P_RENDEZVOUS_STAGED_H

#include "p2p/rendezvous.h"

void staged_open(struct p2p *p);

/* At the sender: the RTS_* bits that announce it. At the receiver: true if it is possible for the message with
 * these bits. */
uint64_t staged_announce(const struct p2p_request *r);
bool staged_is_possible(const struct p2p_request *r, uint64_t can);

/* At the receiver, with a cookie: requests the message. False: use another protocol. */
bool staged_start(struct p2p_request *r, uint64_t bytes);
/* A chunk was written that ends at byte `length` of the message, or the sender has failed. */
void staged_written(struct p2p_request *r, uint64_t length, int error);

/* At the sender: checks and handles a request, or the grant of one more chunk. */
bool staged_accepts(const struct p2p_request *r, const struct cts_write *cts);
void staged_requested(struct p2p_request *r, const struct cts_write *cts);

#endif

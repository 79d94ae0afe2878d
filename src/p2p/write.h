/* write.h: one write into the peer's memory, retried when the transport refuses it for a while, and the
 * notification of the peer. The sender's half of every protocol that writes (RPUT, SPLIT, PUT, PUTNR).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_WRITE_H
#define FP_P2P_WRITE_H

#include "p2p/engine.h"

/* Starts the write. The caller has set remote, key, from, bytes, tell, looked, whole and done in r->write.
 * Returns 0 if the write was started (r->write.done has been or will be called), or ERR_AGAIN. */
int write_start(struct p2p_request *r);
/* Like write_start, but queues the write while the transport is out of resources. */
void write_start_or_queue(struct p2p_request *r);
int write_resume(struct net_pending *item);
/* True for the operation of a write. *looked: the receiver polls the last byte and may have detected
 * completion. *cookie: cookie of the receive. */
bool write_is_op(const struct net_op *op, bool *looked, uint64_t *cookie);

#endif

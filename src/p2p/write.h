/* write.h: one write into the peer's memory, retried when the transport refuses it for a while, and the notification of the
 * peer. The sender's half of every protocol that writes (RPUT, SPLIT, PUT, PUTNR).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_WRITE_H
#define FP_P2P_WRITE_H

#include "p2p/engine.h"

/* Members of r->write that are set: remote, key, from, bytes, tell, looked, whole, done. 0 when it was started, and r->write.done has
 * been or will be called; or ERR_AGAIN. */
int write_start(struct p2p_request *r);
/* The same; queued while the transport is out of resources. */
void write_start_or_queue(struct p2p_request *r);
int write_resume(struct net_pending *item);
/* True for the op of a write; *looked: its receiver waits for the last byte, and may have seen it. *cookie: the receiver's. */
bool write_is_op(const struct net_op *op, bool *looked, uint64_t *cookie);

#endif

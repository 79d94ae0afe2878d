/* peer_death.h: ends point-to-point requests when processes die or communicators are revoked. The layers above
 * know communicators and decide which envelopes (source, tag, communicator) have failed; this file ends the
 * requests with these envelopes. Before the first fault no receive is checked (p2p->check_posted_from). Sends to dead
 * processes fail in their transport (net/lost.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_PEER_DEATH_H
#define FP_P2P_PEER_DEATH_H

#include "p2p/p2p.h"

/* Judges whether a message with this envelope can still arrive. Returns 0, or the error of a receive that
 * waits for it. MPIX_ERR_PROC_FAILED_PENDING: it can arrive, but a possible sender has died and the program
 * has not acknowledged the death. */
typedef int p2p_judge(void *arg, struct envelope env);

/* Sets the callbacks: `judge`, and `died`, called for a death after all messages of the dead process have
 * been handled. */
void p2p_on_fault(struct p2p *p, p2p_judge *judge, void (*died)(void *arg, uint32_t number), void *arg);

/* Judges all receives and messages again: receives without a possible sender end, and messages that nothing
 * will receive are refused. */
void p2p_recheck_faults(struct p2p *p);

/* The error of a blocking probe for messages with this envelope, or 0. */
int p2p_probe_fault(struct p2p *p, struct envelope env);

/* A suspended receive is still posted, although calls that complete it return
 * MPIX_ERR_PROC_FAILED_PENDING. */
bool p2p_is_suspended(const struct request *r);
/* Ends a suspended receive with MPIX_ERR_PROC_FAILED. Other requests stay as they are. */
void p2p_end_suspended(struct request *r);
/* Called when the program frees a suspended receive: it stays posted and is released when it completes. */
void p2p_free_suspended(struct request *r);

/* True if any failure is known: only then are receives and probes judged. */
bool p2p_has_faults(const struct p2p *p);

#endif

/* fault.h: ends point-to-point requests when processes die or communicators are revoked. The layers above know
 * communicators and decide which envelopes (source, tag, communicator) have failed; this file ends the requests that
 * have them. Before the first fault none of this runs: receives are checked only from then on (p2p->look_from), and
 * sends to dead processes fail in their transport (net/lost.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_FAULT_H
#define FP_P2P_FAULT_H

#include "p2p/p2p.h"

/* Can a message with this envelope still arrive? 0, or the error of a receive that waits for it.
 * MPIX_ERR_PROC_FAILED_PENDING: it can, but a possible sender has died and the program does not know yet. */
typedef int p2p_judge(void *arg, struct envelope env);

/* Callbacks: one that judges messages, one that is called for a death after the messages of the dead have ended. */
void p2p_on_fault(struct p2p *p, p2p_judge *judge, void (*died)(void *arg, uint32_t number), void *arg);

/* The judgement has changed: receives that wait for nothing end, and messages that nobody will receive are refused. */
void p2p_judge_again(struct p2p *p);

/* The judge's verdict on a message that is probed for: an error of a blocking probe, else 0. */
int p2p_probe_fault(struct p2p *p, struct envelope env);

/* A suspended receive is still posted, although calls that complete it return MPIX_ERR_PROC_FAILED_PENDING. */
bool p2p_is_suspended(const struct request *r);
/* Ends a suspended receive with MPIX_ERR_PROC_FAILED. Other requests stay as they are. */
void p2p_end_suspended(struct request *r);
/* The program has freed a suspended receive: the receive stays posted and releases itself when it completes. */
void p2p_free_suspended(struct request *r);

/* Has anything failed yet? Then receives and probes are judged. */
bool p2p_has_faults(const struct p2p *p);

#endif

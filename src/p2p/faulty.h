/* faulty.h: the checks that the message engine makes after the first fault (peer_death.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_FAULTY_H
#define FP_P2P_FAULTY_H

#include "p2p/engine.h"

/* Judges a receive that was just posted. Returns true if it has ended with an error. */
bool fault_check_posted(struct p2p *p, struct p2p_request *r);

/* Judges an unexpected message. Returns true if no receive will ever match it; its sender was notified. */
bool fault_check_unexpected(struct p2p *p, struct peer *from, const struct frame_header *h, uint64_t cookie);

/* Makes a suspended receive an ordinary posted one: its message or an acknowledgement has arrived, or the
 * program has cancelled or freed it. */
void fault_resume_receive(struct p2p_request *r);

#endif

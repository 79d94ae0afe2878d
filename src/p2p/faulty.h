/* faulty.h: the checks that the message engine makes after the first fault (fault.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_FAULTY_H
#define FP_P2P_FAULTY_H

#include "p2p/engine.h"

/* A receive was just posted. True: it has ended with an error. */
bool fault_posted(struct p2p *p, struct p2p_request *r);

/* A message has arrived that no receive waits for. True: none ever will, and its sender was notified. */
bool fault_unexpected(struct p2p *p, struct peer *from, const struct frame_header *h, uint64_t cookie);

/* A suspended receive becomes an ordinary posted one: its message or an acknowledgement has come, or the program has cancelled
 * or freed it. */
void fault_resume(struct p2p_request *r);

#endif

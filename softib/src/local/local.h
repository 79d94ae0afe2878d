/* local.h: the shared-memory wire between the processes of one machine. The sender's thread does the
 * receiver's work; but multicast packets wait in a lane until their members take them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_LOCAL_H
#define SOFTIB_LOCAL_H

#include "hca/wire.h"

extern const struct wire local_wire;
extern const struct attendant local_attendant; /* large copies that two processes share */

/* requester.c, pace.c */
void local_progress(struct qp *q, uint64_t now);
void local_reserve_bandwidth(struct qp *q, struct wqe *w);
/* For a multicast packet that is now put into its lane: the time when its first byte leaves; and the time when its
 * last byte arrives at a member's port. */
uint64_t pace_send_start(uint32_t from, uint32_t length);
uint64_t pace_arrival_time(const struct reg_packet *p, uint32_t port, bool books);

#endif

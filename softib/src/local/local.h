/* local.h: the shared-memory wire between the processes of one machine. The sender's thread executes the
 * receiver's part; multicast packets wait in a lane until the members take them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_LOCAL_H
#define SOFTIB_LOCAL_H

#include "hca/wire.h"

extern const struct wire local_wire;
extern const struct attendant local_attendant; /* callbacks for large copies that two processes share */

/* defined in requester.c, pace.c */
void local_progress(struct qp *q, uint64_t now);
void local_reserve_bandwidth(struct qp *q, struct wqe *w);
/* pace_send_start: time at which a multicast packet's first byte leaves if it is sent now. pace_arrival_time:
 * time at which its last byte arrives at a port; books: its bytes use the port's rate. */
uint64_t pace_send_start(uint32_t from, uint32_t length);
uint64_t pace_arrival_time(const struct reg_packet *p, uint32_t port, bool books);

#endif

/* local.h: the shared-memory wire between the processes of one machine. The sender's thread does the
 * receiver's work.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_LOCAL_H
#define SOFTIB_LOCAL_H

#include "hca/wire.h"

extern const struct wire local_wire;
extern const struct attendant local_attendant; /* large copies that two processes share */

/* requester.c, pace.c */
void local_progress(struct qp *q, uint64_t now);
void local_reserve(struct qp *q, struct wqe *w);

#endif

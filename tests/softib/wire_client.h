/* wire_client.h: a client of the protocol between machines without an adapter: it greets as a member of the
 * fabric would, and then sends whatever bytes a test wants to. It stands in for a peer that stalls, repeats
 * itself or means harm.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_CLIENT_H
#define WIRE_CLIENT_H

#include "../verbs/vt.h"
#include "fabric/fabric.h"
#include "net/frame.h"
#include "net/key.h"

/* Reads SOFTIB_FABRIC and SOFTIB_KEY. */
void wc_setup(struct fabric *fab);
/* A bare TCP connection to the process of q's peer. */
int wc_connect(const struct fabric *fab, const struct vt_qp *q);
/* The same, greeted as q's process. */
int wc_greet(const struct fabric *fab, const struct vt_qp *q);
/* As the process in that slot of q's node; `lie`: with a proof that is none. */
int wc_greet_as(const struct fabric *fab, const struct vt_qp *q, uint32_t slot, bool lie);
/* A frame from q to its peer, complete but for what the caller changes and encodes again. */
struct frame wc_frame(const struct vt_qp *q, enum frame_type type, uint32_t nth);
void wc_send(const struct fabric *fab, int fd, const struct frame *f, const void *payload, size_t bytes);
/* True if the other side has read everything sent before; false if it disconnected. */
bool wc_ping(const struct fabric *fab, int fd, const struct vt_qp *q);
bool wc_read(int fd, void *p, size_t n);

#endif

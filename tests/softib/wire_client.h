/* wire_client.h: a client of softib's protocol between machines that has no adapter: it authenticates like
 * a member of the fabric and then sends any bytes that a test requires. It simulates a peer that stalls,
 * repeats itself or is malicious.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_CLIENT_H
#define WIRE_CLIENT_H

#include "../verbs/vt.h"
#include "fabric/fabric.h"
#include "net/frame.h"
#include "net/key.h"

/* Reads SOFTIB_FABRIC and SOFTIB_KEY. */
void wire_client_setup(struct fabric *fab);
/* Opens a TCP connection to the process of q's peer, without a greeting. */
int wire_client_connect(const struct fabric *fab, const struct vt_qp *q);
/* Opens a connection and sends the greeting of q's process. */
int wire_client_greet(const struct fabric *fab, const struct vt_qp *q);
/* Sends the greeting of the process in that slot of q's node; `lie`: with an invalid proof. */
int wire_client_greet_as(const struct fabric *fab, const struct vt_qp *q, uint32_t slot, bool lie);
/* Returns a valid frame from q to its peer, which the caller may change before it is sent. */
struct frame wire_client_make_frame(const struct vt_qp *q, enum frame_type type, uint32_t nth);
void wire_client_send(const struct fabric *fab, int fd, const struct frame *f, const void *payload,
                      size_t bytes);
/* True if the other side has read everything sent before; false if it disconnected. */
bool wire_client_ping(const struct fabric *fab, int fd, const struct vt_qp *q);
bool wire_client_read(int fd, void *p, size_t n);

#endif

/* xrc.h: extended reliable connections (FISHPLATE_IB_RECEIVE=xrc) [InfiniBand, annex A14]. A process has one initiator queue pair for
 * each remote node, which all its connections to processes of that node share, and sends each message to one
 * of the shared receive queues there. The other end of an initiator is a target queue pair, which the
 * processes of a node share: the first of them that receives a HELLO with the initiator's number creates it,
 * and the others find it in a table in the node's shared memory.
 *
 *     A: opens     HELLO {initiator of A} -->                     B: finds or creates the target of A
 *                  <-- HELLO {initiator of B, target of A}        B is half open: its initiator has no target yet
 *     A: connects  HELLO {initiator of A, target of A, of B} -->  A is open; B connects its initiator and is open
 *
 * Frames that reach a process that is half open are held until it is open, since the process cannot answer
 * them.
 *
 * The initiator of a process may fail while the other direction still works, and a connection that is opened
 * again may use the same initiator. So messages of an earlier generation, which the adapter has acknowledged,
 * can arrive after the new one has begun: the immediate of every message names endpoint and generation, and
 * late frames are delivered by sequence number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_XRC_H
#define FP_NET_IB_XRC_H

#include <stdbool.h>
#include <stdint.h>

#include "net/ib/device/device.h"

struct ib;
struct ib_endpoint;
struct ib_hello;
struct ib_hello_xrc;
struct ib_initiator;
struct ib_lane;
struct ib_shared;

int ib_xrc_open(struct ib *ib);   /* opens the XRC domain; before the shared receive queues */
void ib_xrc_close(struct ib *ib); /* after the shared receive queues */
struct ibv_srq *ib_xrc_create_srq(struct ib *ib, const struct ib_adapter *a, void *context, uint32_t entries);

/* Returns the number of requests that one lane may have in the send queue; 0: the device's send queues are
 * too short for the number of processes on that node. */
uint32_t ib_xrc_lane_depth(const struct ib_lane *lane);
int ib_xrc_lane_create(struct ib_lane *lane);   /* uses the queue pair of the initiator for the peer's node */
void ib_xrc_lane_destroy(struct ib_lane *lane); /* the last lane of an initiator destroys it */
void ib_xrc_send_failed(struct ib *ib, uint32_t qpn); /* new connections use another initiator */

void ib_xrc_fill_hello(const struct ib_endpoint *ep, struct ib_hello *h);
/* Handles a HELLO of the peer: finds the target of its initiator. 0, or an error with a text. */
int ib_xrc_accept(struct ib_endpoint *ep, const struct ib_hello *h);
/* Handles a HELLO with the target of this initiator. Returns false if the initiator is connected to another
 * target, which no longer exists: the connection must be reopened. */
bool ib_xrc_connect(struct ib_endpoint *ep, const struct ib_hello *h, int *rc);

/* Finds the endpoint for which a message is, by its immediate; NULL: it no longer exists. *late: the message
 * is of an earlier generation. */
struct ib_endpoint *ib_xrc_find_endpoint(const struct ib *ib, uint32_t immediate, bool *late);

/* True if all processes of this node have finished. Until then they may need its targets. */
bool ib_xrc_is_finished(struct ib *ib);

#endif

/* wire.h: a wire carries requests between queue pairs. There are two: shared memory between the processes
 * of one machine (local/), and TCP and UDP between machines (net/). With wire=tcp a process uses both;
 * local/ is for processes of its own node. Other modules call a wire through this table of operations
 * only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_WIRE_H
#define SOFTIB_WIRE_H

#include "hca/responder.h"
#include <sys/uio.h>

struct wire {
    /* The lock of the wire's state, acquired after that of a queue pair; NULL: the wire has no lock. */
    void (*lock)(void);
    void (*unlock)(void);

    /* Connected queue pairs. The QP's lock is held in attach, detach, quiet and reserve. */
    /* Called when the node of the peer is known: sets q->wire. False: no memory. */
    bool (*attach)(struct qp *q, uint32_t node);
    void (*detach)(struct qp *q);
    /* Runs the send queue; both locks are held. now 0: the wire reads the clock. */
    void (*progress)(struct qp *q, uint64_t now);
    /* Computes the times at which the request and its acknowledgement arrive, from rate and latency of the
     * ports. */
    void (*reserve)(struct qp *q, struct wqe *w);
    /* Called when the path of the QP has changed; both locks are held. */
    void (*moved)(struct qp *q);
    /* Called when the queue pair has failed: returns when no request accesses the program's memory any
     * more. */
    void (*quiet)(struct qp *q);
    /* Called when a region is deregistered, with the lock held: returns when no request accesses it any
     * more. */
    void (*retract)(struct sh_mr *s);

    /* Sends a datagram. ANS_OK, also if it was lost; ANS_REFUSED: the system does not permit access to the
     * target process. */
    enum answer (*datagram)(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov,
                            int n);
    void (*multicast)(struct qp *q, const struct path *to, const struct request *r, const struct iovec *iov,
                      int n);
    void (*group)(const uint8_t gid[16], bool join);

    /* Send a packet to the barrier unit of the switch, and from it to the process at one of its ports. */
    void (*to_switch)(const struct softib_packet *p);
    void (*from_switch)(const struct softib_packet *p);
};

/* Set when the process joins its fabric. wire_far is NULL unless wire=tcp. */
extern const struct wire *wire_near, *wire_far;

static inline const struct wire *wire_to_node(uint32_t node)
{
    return wire_far && node != proc.fab.node ? wire_far : wire_near;
}

/* The wire that leads to the barrier switch: the network's wire if there is one. */
static inline const struct wire *wire_to_switch(void)
{
    return wire_far ? wire_far : wire_near;
}

#endif

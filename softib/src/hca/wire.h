/* wire.h: a wire carries requests between queue pairs. There are two: shared memory between the processes of
 * one machine (local/), and TCP and UDP between machines (net/). With wire=tcp a process uses both, and
 * local/ connects it to processes of its own node. All other code calls the wire through this table of
 * operations, so that only the two folders know which wire it is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_WIRE_H
#define SOFTIB_WIRE_H

#include "hca/responder.h"
#include <sys/uio.h>

struct wire {
    /* The lock of the wire's own state, taken after a queue pair's; NULL: it has none. */
    void (*lock)(void);
    void (*unlock)(void);

    /* Connected queue pairs; attach and detach need the QP's lock, as quiet and reserve do. */
    bool (*attach)(
        struct qp *q,
        uint32_t node); /* called when the node of its peer is known: sets q->wire; false: no memory */
    void (*detach)(struct qp *q);
    void (*progress)(struct qp *q,
                     uint64_t now); /* runs the send queue; both locks held; now 0: read the clock */
    void (*reserve)(struct qp *q,
                    struct wqe *w); /* rate and latency of the ports decide when it may arrive */
    void (*moved)(struct qp *q);    /* its path has changed; both locks held */
    /* The queue pair has failed: returns when none of its requests touches its memory any more. */
    void (*quiet)(struct qp *q);
    /* The region is deregistered: returns when nothing touches it any more. The wire's lock is held. */
    void (*retract)(struct sh_mr *s);

    /* Datagrams. */
    /* ANS_OK, also when it was lost; ANS_REFUSED: the system does not let us reach a process that lives. */
    enum answer (*datagram)(uint32_t node, uint32_t qpn, const struct request *r, const struct iovec *iov,
                            int n);
    void (*multicast)(struct qp *q, const struct path *to, const struct request *r, const struct iovec *iov,
                      int n);
    void (*group)(const uint8_t gid[16], bool join);

    /* Packets of the switch's barrier unit, to it and from it to the process at a port of it. */
    void (*to_switch)(const struct softib_packet *p);
    void (*from_switch)(const struct softib_packet *p);
};

/* Set when the process joins its fabric. Far is NULL unless wire=tcp. */
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

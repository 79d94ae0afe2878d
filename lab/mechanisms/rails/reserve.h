/* reserve.h: the adapter's half of a reservation [Coll01 3.2]: one adapter is reserved for one direction at a
 * time. A pure state machine, one for each adapter (a rail of a node), which the processes of the node share:
 * events in, frames out.
 *
 *     sender's process    sender's adapter       receiver's adapter
 *     local RTS  ------>  RESERVED  --- RTS -->  FREE: RECEIVING
 *     local CTS  <------  SENDING   <-- CTS ---
 *                         ... the message ...
 *                         FREE      <-- ACK ---  FREE              when the message is in memory
 *
 * Every RTS is answered at once, so no adapter waits while it is reserved. The remaining danger is a circle
 * of requests in which all adapters refuse and repeat their requests. Therefore an adapter that receives an
 * RTS while its own RTS is unanswered compares the two (algorithm 4): the larger priority wins, and of equal
 * priorities the larger number of the requester. The loser grants (RECEIVING, with its own RTS still out) and
 * will refuse to use its own grant. Winning makes the next request weaker, losing stronger.
 *
 * Table 1, with what we do otherwise (each node, RTS out = unanswered):
 *
 *     event        FREE           RESERVED         RECEIVING      RECEIVING, RTS out   SENDING
 *     local RTS    RTS, RESERVED  local NACK       local NACK     local NACK           local NACK
 *     local ACK    -              -                ACK, FREE      ACK, RESERVED        -
 *     local ABORT  -              give up (1)      -              give up (1)          ABORT, FREE
 *     RTS          CTS,RECEIVING  algorithm 4 (2)  NACK           NACK                 NACK
 *     CTS          ABORT (3)      local CTS,       ABORT (3)      ABORT, local NACK,   ABORT (3)
 *                                 SENDING                         RECEIVING (4)
 *     NACK         -              local NACK,FREE  -              local NACK,RECEIVING -
 *     ABORT        -              -                FREE           RESERVED             -
 *     ACK          -              -                -              -                    FREE
 *
 * (1) The paper's process waits for answers "until a timeout expires", but the paper does not define the
 *     state of the adapter afterwards. Here the adapter keeps its state until the answer arrives, and then
 *     uses no CTS. Until then every other request wins against it.
 * (2) The printed tie-break, local_node_id != remote_node_id, is true at both ends: both refuse, for ever. A
 *     strict total order is needed. The value compared is the priority in the unanswered RTS, not the
 *     counter, which may have changed since: all adapters must agree on the order of the requests in flight.
 *     With the counter three nodes can refuse each other for ever
 *     (lab/tests/unit/test_rails_reserve_counter.c).
 * (3) An answer without a request. In the paper a CTS that finds the adapter FREE is a grant, although no
 *     process waits for it. A DONE of the sender is a local ACK (reserve_frame.h).
 * (4) Empty in the paper's table; its text (figure 2) states this.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_LAB_MECHANISMS_RAILS_RESERVE_H
#define FP_LAB_MECHANISMS_RAILS_RESERVE_H

#include "lab/mechanisms/rails/reserve_frame.h"

enum reserve_state {
    RESERVE_FREE,
    RESERVE_RESERVED,      /* the RTS of this adapter awaits its answer */
    RESERVE_RECEIVING,     /* granted to `granted_to` */
    RESERVE_RECEIVING_OUT, /* granted to `granted_to`, and the RTS of this adapter awaits its answer */
    RESERVE_SENDING        /* granted to a process of this node */
};

/* Answer of the adapter to the process that requested the rail. */
enum reserve_local { RESERVE_NO_ANSWER, RESERVE_ANSWER_CTS, RESERVE_ANSWER_NACK };

struct reserve {
    enum reserve_state state;
    uint8_t rail;
    bool given_up;            /* the requester no longer needs the answer to the RTS */
    int16_t priority, bound;  /* within -bound..bound */
    int16_t request_priority; /* priority in the RTS that was sent */
    uint32_t node;            /* process for which the adapter acts at present */
    uint32_t requester;       /* process that made `request` */
    /* request of this adapter: its number and the destination of its RTS; 0: none */
    uint32_t request, requested_from;
    uint32_t grant, granted_to; /* request that this adapter granted: its number and its node */
};

struct reserve_out {
    unsigned frames;
    struct frame frame[2];
    enum reserve_local answer;
    uint32_t request; /* request that `answer` belongs to */
    bool stray;       /* the event is out of order: an outdated frame, or an error of the peer */
};

void reserve_open(struct reserve *n, uint32_t node, unsigned rail, unsigned bound);
/* Before each event of an adapter that several processes share: the process that calls, and its number of the
 * rail. Zeroed memory is a free adapter. */
void reserve_set_user(struct reserve *n, uint32_t node, unsigned rail, unsigned bound);

/* Events. The number of a request is not 0 and differs between consecutive requests of a node. */
struct reserve_out reserve_local_rts(struct reserve *n, uint32_t request, uint32_t to);
struct reserve_out reserve_local_abort(struct reserve *n, uint32_t request);
struct reserve_out
reserve_local_ack(struct reserve *n); /* the message for which the adapter was granted is in memory */
struct reserve_out reserve_frame(struct reserve *n, const struct frame *f);

/* The peer, or the rail to the peer, is gone: releases what is reserved for the peer. */
struct reserve_out reserve_release_peer(struct reserve *n, uint32_t peer);

/* Whether the adapter is reserved for a transfer with this peer, or a request of this process awaits its
 * answer. */
static inline bool reserve_involves_peer(const struct reserve *n, uint32_t peer)
{
    return n->state != RESERVE_FREE &&
           ((n->request != 0 && n->requester == n->node && n->requested_from == peer) ||
            (n->grant != 0 && n->granted_to == peer));
}

static inline bool reserve_is_free(const struct reserve *n)
{
    return n->state == RESERVE_FREE;
}

#endif

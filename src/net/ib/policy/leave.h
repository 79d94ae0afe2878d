/* leave.h: the end of a process on one connection, as a pure state machine. A process that needs no more
 * messages sends LEAVE; that it disappears afterwards is no failure. Processes of a job end together: each
 * waits for the LEAVE of the others, which its own LEAVE states (`awaited`). A process therefore ends only
 * when its LEAVE is delivered: otherwise a peer would wait for ever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_LEAVE_H
#define FP_NET_IB_LEAVE_H

#include <stdbool.h>

struct leave {
    bool sent;      /* this process sent LEAVE, after all its other messages were acknowledged */
    bool under_way; /* LEAVE was sent on the current connection */
    bool delivered; /* the peer has received LEAVE, or will even if the connection fails */
    bool received;  /* the peer sent LEAVE */
    bool awaited;   /* the peer waits for the LEAVE of this process */
};

/* Called when LEAVE is sent, for the first time or again. */
static inline void leave_record_sent(struct leave *l)
{
    l->sent = l->under_way = true;
}

static inline void leave_record_received(struct leave *l, bool awaited)
{
    l->received = true;
    l->awaited |= awaited;
}

/* Called before the queue pairs are destroyed after a failure. acknowledged: the peer's adapter has acknowledged all messages. */
static inline void leave_connection_failed(struct leave *l, bool acknowledged)
{
    l->delivered |= l->under_way && acknowledged;
    l->under_way = false;
}

/* True if LEAVE must be sent again on a reopened connection. */
static inline bool leave_must_be_repeated(const struct leave *l)
{
    return l->sent && !l->delivered;
}

/* True if both processes have sent LEAVE. */
static inline bool leave_is_complete(const struct leave *l)
{
    return l->sent && l->received;
}

/* True if the peer sent LEAVE and no message is lost if the connection fails. acknowledged: see
 * leave_connection_failed; can_reopen: a failed connection can be reopened to repeat LEAVE. */
static inline bool leave_permits_failure(const struct leave *l, bool acknowledged, bool can_reopen)
{
    if (!l->received)
        return false;
    return l->awaited && can_reopen ? l->delivered || (l->under_way && acknowledged)
                                    : l->sent || acknowledged;
}

/* True if this process may end although the connection has failed. */
static inline bool leave_permits_end(const struct leave *l)
{
    return l->received && (l->delivered || !l->awaited);
}

#endif

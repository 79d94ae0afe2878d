/* leave.h: the end of a process on one connection, as a pure state machine. A process that needs nothing more sends LEAVE; when it is
 * gone afterwards nothing is wrong. After both LEAVEs the two need nothing of each other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_LEAVE_H
#define FP_NET_IB_LEAVE_H

#include <stdbool.h>

enum leave_state { LEAVE_NONE, LEAVE_SENT, LEAVE_RECEIVED, LEAVE_BOTH };

static inline bool leave_is_sent(enum leave_state s)
{
    return s == LEAVE_SENT || s == LEAVE_BOTH;
}

static inline bool leave_is_received(enum leave_state s)
{
    return s == LEAVE_RECEIVED || s == LEAVE_BOTH;
}

static inline enum leave_state leave_send(enum leave_state s)
{
    return leave_is_received(s) ? LEAVE_BOTH : LEAVE_SENT;
}

static inline enum leave_state leave_receive(enum leave_state s)
{
    return leave_is_sent(s) ? LEAVE_BOTH : LEAVE_RECEIVED;
}

#endif

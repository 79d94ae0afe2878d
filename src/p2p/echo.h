/* echo.h: tells large messages that go to and fro between two ranks one by one, each the answer to the one before it and of
 * about the same size, from all others. A pure state machine: what is sent and received in, the kind of traffic out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_ECHO_H
#define FP_P2P_ECHO_H

#include "net/peer.h"
#include "p2p/choice.h"

#define ECHO_SURE 4 /* messages in turn, after which the next is expected to be one more */

static inline void echo_next(struct peer_echo *e, bool ours, uint8_t size, bool answer)
{
    if (!answer || e->ours == ours || e->size != size)
        e->turns = 0;
    else if (e->turns < ECHO_SURE)
        e->turns++;
    e->ours = ours;
    e->size = size;
}

/* Whether a message of this size, to be sent now, goes to and fro. */
static inline bool echo_is(const struct peer_echo *e, uint64_t bytes)
{
    return e->turns == ECHO_SURE && !e->ours && e->size == choice_size(bytes);
}

/* This rank has announced a message. */
static inline void echo_sent(struct peer_echo *e, uint64_t bytes)
{
    echo_next(e, true, choice_size(bytes), true);
}

/* It takes one; `crosses`: while one of its own has not been taken. Returns whether it goes to and fro. */
static inline bool echo_took(struct peer_echo *e, uint64_t bytes, bool crosses)
{
    echo_next(e, false, choice_size(bytes), !crosses);
    return e->turns == ECHO_SURE;
}

#endif

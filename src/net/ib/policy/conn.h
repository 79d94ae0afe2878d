/* conn.h: how two processes open and close a connection, as a pure state machine: events in, actions out, no
 * I/O and no clock. Opening uses an unreliable channel (UD datagrams that may be lost, duplicated or
 * reordered); closing uses the connection itself, in order with its frames.
 *
 * Both sides are equal, so that both may start at once: each repeats HELLO with the address of its queue
 * pairs until it knows that the other side has received it. Only then may a side send frames.
 *
 *     HELLO {mine: my generation, yours: the generation of the peer's address that I have, 0: none,
 *            ready: I am open and need no answer}
 *
 * A generation counts the times this side opened a connection to this peer, from 1. A HELLO of an older
 * generation is an old datagram and is dropped. A HELLO that is not ready is answered, a ready one never:
 * otherwise one duplicated datagram would make two open sides answer each other for ever.
 *
 *     A: want      HELLO {1, 0} -->                              A is asking
 *                  <-- HELLO {1, 1}              B: connect      B is half open
 *     A: connect   HELLO {1, 1, ready} -->                       A is open, then B
 *
 * Closing: CLOSE is the last frame of a side that has nothing in flight. The peer answers AGREE (its own
 * last frame) or KEEP (it still has work: the connection stays open). If both send CLOSE at once, each treats
 * the received CLOSE as an AGREE, and waits until its own CLOSE has been sent before it destroys the queue
 * pairs: otherwise CLOSE would be lost, and the peer would wait for ever. A side that must send afterwards
 * opens the next generation.
 *
 * If a port goes down an AGREE may be lost although its sender has closed. The sender of CLOSE must then
 * detect that the peer's queue pairs are destroyed (its probe fails), and treats the connection as broken.
 *
 * A side that waits for AGREE may receive the HELLO of the peer's next generation first, because datagrams
 * overtake frames. It drops this HELLO, which the peer repeats, and processes all messages that have arrived:
 * if an AGREE is among them, the connection closes, else AGREE was lost and the connection has broken
 * (CONN_DO_BREAK).
 *
 * CLOSE, AGREE and KEEP take no credit, like credit messages: the peer that owes credits may be closing, and
 * then returns none before it has the answer.
 *
 * A connection may break: a port goes down, an adapter is removed. The side that detects the failure
 * processes all arrived messages, destroys its queue pairs, and requests the next generation, over another
 * rail if there is one; its HELLO notifies the peer. Sequence numbers continue through all generations, and
 * each HELLO carries the number that is expected next, so that exactly the lost messages are repeated
 * (failover/resend.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_CONN_H
#define FP_NET_IB_CONN_H

#include <stdbool.h>
#include <stdint.h>

enum conn_state {
    CONN_IDLE,    /* no queue pairs */
    CONN_ASKING,  /* this side has queue pairs; those of the peer are unknown */
    CONN_HALF,    /* this side can receive; the peer may not know its queue pairs yet */
    CONN_OPEN,    /* frames may be sent */
    CONN_CLOSING, /* this side sent CLOSE and waits for AGREE, CLOSE or KEEP */
    CONN_AGREED,  /* both sides have sent CLOSE or AGREE; destroys its queue pairs once its own was sent */
    CONN_FAILED   /* the peer never answered, or has ended */
};

/* Actions for the transport, to be performed in the order of the bits. */
enum conn_action {
    CONN_DO_DESTROY = 1 << 0, /* destroy the old queue pairs */
    CONN_DO_CREATE = 1 << 1,  /* create queue pairs, with receives posted */
    CONN_DO_CONNECT = 1 << 2, /* connect the queue pairs to those in the HELLO */
    CONN_DO_HELLO = 1 << 3,   /* send HELLO {mine, yours, conn_is_open}; restart the timer for the answer */
    CONN_DO_OPENED = 1 << 4,  /* the connection is open: frames may be sent, unless AGREE follows */
    CONN_DO_RESUME = 1 << 5,  /* the connection stays open: frames may be sent again */
    CONN_DO_CLOSE = 1 << 6,   /* send CLOSE as the last frame */
    CONN_DO_AGREE = 1 << 7,   /* send AGREE as the last frame */
    CONN_DO_KEEP = 1 << 8,    /* send KEEP, after which frames may follow */
    CONN_DO_FAIL = 1 << 9,    /* report an error if frames wait to be sent; else the peer has ended */
    CONN_DO_BREAK = 1 << 10   /* process all that arrived, then call conn_queue_pair_failed */
};

struct conn {
    enum conn_state state;
    uint32_t mine;  /* generation of this side; 0 before the first */
    uint32_t yours; /* generation of the peer to which `mine` connects; 0: none yet */
    uint32_t seen;  /* newest connected generation of the peer: older HELLOs are dropped */
    uint32_t tries; /* HELLOs sent by the timer since the peer last answered in this generation */
    bool resumes;   /* this generation replaces one that failed after the peer's queue pairs were known */
};

/* Events. Each returns actions (bits of enum conn_action). Events without meaning in a state are ignored. */

/* Called when a frame must be sent, and again after a DESTROY if frames are still queued. */
unsigned conn_request_open(struct conn *c);

/* Called when a HELLO {mine: theirs, yours: of_mine, ready} of the peer arrived. */
unsigned conn_hello_received(struct conn *c, uint32_t theirs, uint32_t of_mine, bool ready);

/* Called when no answer has arrived for a while. The caller must first process all arrived messages, or it
 * could give up on a peer that answered long ago. */
unsigned conn_timer_expired(struct conn *c, uint32_t tries_max);

/* Called when a frame arrived through the queue pairs: the peer has this side's address. */
unsigned conn_frame_received(struct conn *c);

/* Called when the connection budget requires closing and nothing is in flight or queued here. */
unsigned conn_request_close(struct conn *c);

/* Called when CLOSE arrived; busy: something is in flight or queued here. */
unsigned conn_close_received(struct conn *c, bool busy);

/* Called when AGREE arrived. */
unsigned conn_close_accepted(struct conn *c);

/* Called when KEEP arrived. */
unsigned conn_close_refused(struct conn *c);

/* Called when the queue pairs have failed, or those of the peer are destroyed, and all arrived messages were
 * processed. Also restarts an opening over another rail. */
unsigned conn_queue_pair_failed(struct conn *c);

/* Called when a send has failed but no message is missing: the peer has ended. Later sends to it fail. */
unsigned conn_peer_died(struct conn *c);

/* Must be called in state CONN_AGREED whenever the send queue is empty: the final message was sent, or failed
 * because the peer has closed already. */
unsigned conn_peer_disconnected(struct conn *c);

/* True if no HELLO of this side waits for an answer. */
static inline bool conn_has_no_pending_hello(const struct conn *c)
{
    return c->state != CONN_ASKING && c->state != CONN_HALF;
}

/* True if the queue pairs are destroyed because the connection has failed: the next generation continues
 * pending transfers. False: the connection has been closed with nothing in flight. */
static inline bool conn_will_reopen(const struct conn *c)
{
    return c->state == CONN_ASKING;
}

/* `ready` of a HELLO: the sender's connection is open. */
static inline bool conn_is_open(const struct conn *c)
{
    return c->state == CONN_OPEN;
}

#endif

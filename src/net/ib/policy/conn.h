/* conn.h: how two processes open and close a connection, as a pure state machine: events in, actions out, no
 * I/O and no clock. Opening goes over an unreliable channel (UD datagrams that may be lost, doubled or
 * overtake each other); closing goes through the connection itself, in order with its frames.
 *
 * Both sides are equal, so that both may start at once: each sends HELLO with the address of its queue pairs
 * until it knows that the other has it. A side may send frames only then.
 *
 *     HELLO {mine: my generation, yours: the generation of the peer's address I have, 0 when I have none,
 *            ready: I am open and need no answer}
 *
 * A generation counts the times this side opened a connection to this peer, from 1. A HELLO of an older
 * generation is an old datagram and is dropped. A HELLO that is not ready is answered, one that is ready
 * never: without that difference two open sides would greet each other for ever once a datagram was doubled.
 *
 *     A: want      HELLO {1, 0} -->                              A is asking
 *                  <-- HELLO {1, 1}              B: connect      B is half open
 *     A: connect   HELLO {1, 1, ready} -->                       A is open, then B
 *
 * Closing: CLOSE is the last frame of a side that has nothing in flight. The other answers AGREE (its own
 * last frame) or KEEP (it still has work: the connection stays). When both send CLOSE at once, each takes the
 * other's for an AGREE, and waits as after an AGREE of its own until its CLOSE has left: dropping the queue
 * pairs before would take the CLOSE with them, and the peer would wait for ever. A peer that wants to send
 * afterwards opens the next generation.
 *
 * An AGREE may be lost where a port goes down, and its sender has closed: who has sent CLOSE must find out by itself that the other
 * queue pairs are gone, and reports that the connection has broken.
 *
 * CLOSE, AGREE and KEEP go without a credit, as credit messages do: the peer that owes credits may be closing
 * and send none until it has the answer. While CLOSING, a HELLO of the next generation is dropped, although
 * the peer has agreed and gone: its AGREE, and frames before it, may still lie in the completion queue. The
 * HELLO comes again.
 *
 * A connection may break: a port goes down, an adapter is taken out. The side that notices processes all that has arrived,
 * drops its queue pairs, and requests the next generation, over another rail if there is one; its HELLO notifies the peer.
 * Frames are numbered through all generations, and each HELLO carries the number that is expected next: what has not arrived is
 * sent again, and nothing else (failover/resend.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_CONN_H
#define FP_NET_IB_CONN_H

#include <stdbool.h>
#include <stdint.h>

enum conn_state {
    CONN_IDLE,    /* no queue pairs */
    CONN_ASKING,  /* the queue pairs of this side exist; the peer's are not known */
    CONN_HALF,    /* this side can receive; whether the peer knows its queue pairs is not known */
    CONN_OPEN,    /* frames may be sent */
    CONN_CLOSING, /* this side sent CLOSE and waits for AGREE, CLOSE or KEEP */
    CONN_AGREED, /* both sides sent their last frame; the queue pairs are destroyed when that of this side has left */
    CONN_FAILED /* the peer never answered, or has ended */
};

/* Actions for the transport, to be taken in the order of the bits. */
enum conn_action {
    CONN_DO_DESTROY = 1 << 0, /* destroy the old queue pairs */
    CONN_DO_CREATE = 1 << 1,  /* create queue pairs, with receives posted */
    CONN_DO_CONNECT = 1 << 2, /* connect the queue pairs to those in the HELLO */
    CONN_DO_HELLO = 1 << 3,   /* send HELLO {mine, yours, conn_ready}; restart the timer for the answer */
    CONN_DO_OPENED = 1 << 4,  /* the connection is open: frames may go, unless AGREE follows */
    CONN_DO_RESUME = 1 << 5,  /* the connection stays open: frames may go again */
    CONN_DO_CLOSE = 1 << 6,   /* send CLOSE as the last frame */
    CONN_DO_AGREE = 1 << 7,   /* send AGREE as the last frame */
    CONN_DO_KEEP = 1 << 8,    /* send KEEP, after which frames may follow */
    CONN_DO_FAIL = 1 << 9,    /* report an error if frames wait to be sent; else the peer has ended */
    CONN_DO_BREAK = 1 << 10   /* process all that arrived, then call conn_queue_pair_failed */
};

struct conn {
    enum conn_state state;
    uint32_t mine;  /* generation of this side; 0 before the first */
    uint32_t yours; /* generation of the peer that this generation of mine connects to; 0: none yet */
    uint32_t seen;  /* newest generation of the peer that was ever connected to: older HELLOs are dropped */
    uint32_t tries; /* HELLOs that the timer sent since the peer last answered in this generation */
    bool resumes;   /* this generation replaces one that failed after the peer's queue pairs were known */
};

/* Events. Each returns the actions (bits of enum conn_action). Events that mean nothing in a state do
 * nothing. */

/* Called when something waits to be sent, and again after a DESTROY while something waits. */
unsigned conn_request_open(struct conn *c);

/* A HELLO {mine, yours, ready} arrived. */
unsigned conn_hello(struct conn *c, uint32_t theirs, uint32_t of_mine, bool ready);

/* Called when no answer has arrived for a while. A process that was busy elsewhere must first process what has arrived
 * meanwhile, or it could give up on a peer that answered long ago. */
unsigned conn_timer(struct conn *c, uint32_t tries_max);

/* Called when a frame arrived through the queue pairs: the peer has this side's address. */
unsigned conn_frame_received(struct conn *c);

/* Called when the connection budget requires closing and nothing is in flight or queued here. */
unsigned conn_idle(struct conn *c);

/* Called when CLOSE arrived; busy: something is in flight or queued here. */
unsigned conn_close(struct conn *c, bool busy);

/* AGREE arrived. */
unsigned conn_close_accepted(struct conn *c);

/* KEEP arrived. */
unsigned conn_close_refused(struct conn *c);

/* Called when the queue pairs have failed, or their other end is gone, and everything that arrived through them was
 * processed. Also restarts, over another rail, an opening that is under way. */
unsigned conn_queue_pair_failed(struct conn *c);

/* Called when a send has failed permanently and nothing that was promised is missing: the peer has left. A later send
 * to it reports the loss. */
unsigned conn_peer_died(struct conn *c);

/* Called in state CONN_AGREED whenever nothing is in flight, even if nothing was when the state was entered:
 * everything sent has left, or has failed because the peer has left already. */
unsigned conn_peer_disconnected(struct conn *c);

/* True if no HELLO of this side waits for an answer. */
static inline bool conn_has_no_pending_hello(const struct conn *c)
{
    return c->state != CONN_ASKING && c->state != CONN_HALF;
}

/* True if the queue pairs are destroyed because the connection has broken; what was under way continues in the next
 * generation. False: the connection has ended with nothing under way. */
static inline bool conn_will_reopen(const struct conn *c)
{
    return c->state == CONN_ASKING;
}

/* The state of the sender that a HELLO carries. */
static inline bool conn_ready(const struct conn *c)
{
    return c->state == CONN_OPEN;
}

#endif

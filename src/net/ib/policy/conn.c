/* conn.c: opening and closing a connection; see conn.h for the protocol.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/conn.h"

static void conn_begin_generation(struct conn *c, enum conn_state state)
{
    c->state = state;
    c->mine++;
    c->yours = 0;
    c->tries = 0;
    c->resumes = false;
}

static void conn_learn_peer(struct conn *c, uint32_t theirs)
{
    c->yours = c->seen = theirs;
    c->tries = 0;
}

unsigned conn_request_open(struct conn *c)
{
    if (c->state != CONN_IDLE)
        return 0;
    conn_begin_generation(c, CONN_ASKING);
    return CONN_DO_CREATE | CONN_DO_HELLO;
}

/* Handles the first HELLO of a new generation of the peer. */
static unsigned hello_open_generation(struct conn *c, uint32_t theirs, uint32_t of_mine)
{
    unsigned before = 0;
    switch (c->state) {
    case CONN_AGREED: /* the peer has received the final message of this side, or it will be repeated */
        before = CONN_DO_DESTROY;
        /* fall through */
    case CONN_IDLE:
        conn_begin_generation(c, CONN_HALF);
        conn_learn_peer(c, theirs);
        return before | CONN_DO_CREATE | CONN_DO_CONNECT | CONN_DO_HELLO;
    case CONN_ASKING:
        if (of_mine && of_mine != c->mine)
            return 0;
        conn_learn_peer(c, theirs);
        c->state = of_mine ? CONN_OPEN : CONN_HALF;
        return CONN_DO_CONNECT | CONN_DO_HELLO | (of_mine ? CONN_DO_OPENED : 0);
    case CONN_HALF: /* frames of the generation that the peer has given up may have arrived */
    case CONN_OPEN:
    case CONN_CLOSING: /* AGREE may have arrived and not have been processed yet */
        return CONN_DO_BREAK;
    default:
        return 0;
    }
}

unsigned conn_hello_received(struct conn *c, uint32_t theirs, uint32_t of_mine, bool ready)
{
    /* late: this side gave up that generation of the peer before it connected. The peer has since connected
     * to the current generation. */
    bool late = c->state == CONN_ASKING && theirs == c->seen && of_mine == c->mine;
    if (theirs > c->seen || late)
        return hello_open_generation(c, theirs, of_mine);
    if (theirs != c->yours)
        return 0;
    switch (c->state) {
    case CONN_HALF:
        c->tries = 0;
        if (of_mine != c->mine) /* the peer is still in CONN_ASKING: the answer was lost or is in flight */
            return CONN_DO_HELLO;
        c->state = CONN_OPEN;
        /* If the peer is half open too, and the HELLO of this side was lost, the peer repeats its HELLO and
         * is answered below. */
        return CONN_DO_OPENED;
    case CONN_OPEN:
    case CONN_CLOSING: /* with XRC a half-open peer holds CLOSE until the answer arrives */
        return of_mine == c->mine && !ready ? CONN_DO_HELLO : 0;
    default:
        return 0;
    }
}

unsigned conn_timer_expired(struct conn *c, uint32_t tries_max)
{
    if (conn_has_no_pending_hello(c))
        return 0;
    if (c->tries >= tries_max) {
        c->state = CONN_FAILED;
        return CONN_DO_FAIL;
    }
    c->tries++;
    return CONN_DO_HELLO;
}

unsigned conn_frame_received(struct conn *c)
{
    if (c->state != CONN_HALF)
        return 0;
    c->state = CONN_OPEN;
    return CONN_DO_OPENED;
}

unsigned conn_request_close(struct conn *c)
{
    if (c->state != CONN_OPEN)
        return 0;
    c->state = CONN_CLOSING;
    return CONN_DO_CLOSE;
}

unsigned conn_close_received(struct conn *c, bool busy)
{
    unsigned opened = conn_frame_received(c);
    switch (c->state) {
    case CONN_OPEN:
        if (busy)
            return opened | CONN_DO_KEEP;
        c->state = CONN_AGREED;
        return opened | CONN_DO_AGREE;
    case CONN_CLOSING: /* both sides sent CLOSE at once */
        c->state = CONN_AGREED;
        return 0;
    default:
        return 0;
    }
}

unsigned conn_close_accepted(struct conn *c)
{
    if (c->state != CONN_CLOSING)
        return 0;
    c->state = CONN_IDLE;
    return CONN_DO_DESTROY;
}

unsigned conn_close_refused(struct conn *c)
{
    if (c->state != CONN_CLOSING)
        return 0;
    c->state = CONN_OPEN;
    return CONN_DO_RESUME;
}

unsigned conn_queue_pair_failed(struct conn *c)
{
    if (c->state == CONN_IDLE || c->state == CONN_FAILED)
        return 0;
    const uint32_t tries = c->state == CONN_ASKING ? c->tries : 0;
    const bool resumes = c->resumes || c->yours != 0;
    conn_begin_generation(c, CONN_ASKING);
    c->tries = tries; /* nothing was received from the peer meanwhile */
    c->resumes = resumes;
    return CONN_DO_DESTROY | CONN_DO_CREATE | CONN_DO_HELLO;
}

unsigned conn_peer_died(struct conn *c)
{
    c->state = CONN_FAILED;
    return 0;
}

unsigned conn_peer_disconnected(struct conn *c)
{
    if (c->state != CONN_AGREED)
        return 0;
    c->state = CONN_IDLE;
    return CONN_DO_DESTROY;
}

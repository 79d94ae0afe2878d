/* frame_route.h: whether frames may be sent on a connection, and over which rails, as a pure state machine. conn.h opens and closes the
 * connection; failover/ reports its failure; rails/ reports whether further rails carry frames.
 *
 *     CLOSED --opened--> RESENDING --all sent--> COUNTED, SPREAD or PRIMARY --failed--> FAILING --queue pairs destroyed--> CLOSED
 *
 * FAILING is left only when the queue pairs are destroyed, whatever the connection does meanwhile: frames
 * that have arrived are still delivered, and may be those that close it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_FRAME_ROUTE_H
#define FP_NET_IB_FRAME_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

enum frame_route_state {
    FRAME_ROUTE_CLOSED,    /* no connection, or it is being opened or closed */
    FRAME_ROUTE_RESENDING, /* open; messages that the failed connection lost are repeated first */
    FRAME_ROUTE_FAILING,   /* the queue pairs have failed; the next poll reopens the connection */
    /* In the following states frames may be sent. */
    FRAME_ROUTE_COUNTED, /* over the primary rail; larger frames are counted until further rails are requested */
    FRAME_ROUTE_SPREAD, /* over several rails */
    FRAME_ROUTE_PRIMARY /* over the primary rail */
};

struct frame_route {
    enum frame_route_state state;
    bool pairs;      /* further rails carry frames */
    uint8_t counted; /* larger frames left until further rails are requested; 0: not counted */
};

static inline bool frame_route_is_ready(const struct frame_route *t)
{
    return t->state >= FRAME_ROUTE_COUNTED;
}

/* Called when the state of the connection changes. open: frames may be sent; resend: recorded messages are sent first. */
void frame_route_follow_connection(struct frame_route *t, bool open, bool resend);
void frame_route_resend_finished(struct frame_route *t); /* all recorded messages were repeated */
void frame_route_set_failing(struct frame_route *t);
void frame_route_reset(struct frame_route *t); /* the queue pairs have no message left to deliver */
void frame_route_set_pairs(struct frame_route *t, bool pairs);
void frame_route_set_counted(struct frame_route *t, uint8_t frames);
bool frame_route_count_frame(
    struct frame_route *t); /* counts a larger frame; true: request further rails now */

#endif

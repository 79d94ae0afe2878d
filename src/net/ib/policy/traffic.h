/* traffic.h: whether frames may be sent on a connection, and over which rails, as a pure state machine. conn.h opens and closes the
 * connection; failover/ reports its failure; rails/ reports whether further rails carry frames.
 *
 *     CLOSED --opened--> RESENDING --all sent--> COUNTED, SPREAD or PRIMARY --failed--> FAILING --queue pairs destroyed--> CLOSED
 *
 * FAILING is left only when the queue pairs are destroyed, whatever the connection does meanwhile: frames
 * that have arrived are still delivered, and may be those that close it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_TRAFFIC_H
#define FP_NET_IB_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

enum traffic_state {
    TRAFFIC_CLOSED,    /* no connection, or it is being opened or closed */
    TRAFFIC_RESENDING, /* open; messages that the failed connection lost are repeated first */
    TRAFFIC_FAILING,   /* the queue pairs have failed; the next poll reopens the connection */
    /* In the following states frames may be sent. */
    TRAFFIC_COUNTED, /* over the primary rail; larger frames are counted until further rails are requested */
    TRAFFIC_SPREAD,  /* over several rails */
    TRAFFIC_PRIMARY  /* over the primary rail */
};

struct traffic {
    enum traffic_state state;
    bool pairs;      /* further rails carry frames */
    uint8_t counted; /* larger frames left until further rails are requested; 0: not counted */
};

static inline bool traffic_is_ready(const struct traffic *t)
{
    return t->state >= TRAFFIC_COUNTED;
}

/* Called when the state of the connection changes. open: frames may be sent; resend: recorded messages are sent first. */
void traffic_follow_connection(struct traffic *t, bool open, bool resend);
void traffic_resend_finished(struct traffic *t); /* all recorded messages were repeated */
void traffic_set_failing(struct traffic *t);
void traffic_reset(struct traffic *t); /* the queue pairs have no message left to deliver */
void traffic_set_pairs(struct traffic *t, bool pairs);
void traffic_set_counted(struct traffic *t, uint8_t frames);
bool traffic_count_frame(struct traffic *t); /* counts a larger frame; true: request further rails now */

#endif

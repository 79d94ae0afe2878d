/* events.h: reports of a module of this transport to a later one. A module calls only earlier modules; an
 * event that a later module must handle is reported through one of these two tables. transport/events.c fills
 * both, and struct ib has pointers to them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_EVENTS_H
#define FP_NET_IB_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/ib/wire.h"

struct ib;
struct ib_buffer;
struct ib_endpoint;
struct ib_lane;
struct ibv_wc;

struct ib_events {
    /* Reported by queue pairs. */
    bool (*failed)(struct ib_endpoint *ep, const char *why); /* false: the connection cannot be opened again.
                                                              * why: for a warning; NULL: no warning */
    void (*last_sent)(struct ib_endpoint *ep);               /* marker after CLOSE or AGREE has completed */

    /* Reported by completion queues. */
    void (*send_failed)(struct ib_lane *lane, const struct ibv_wc *wc);
    void (*hello_arrived)(struct ib *ib, struct ib_buffer *b, uint32_t length);

    /* Reported by the channels. */
    void (*wanted)(struct ib_endpoint *ep);      /* a frame or transfer finds no connection */
    void (*first_frame)(struct ib_endpoint *ep); /* a half-open connection has received something */

    /* Reported, or queried, by the connection. */
    bool (*is_busy)(const struct ib_endpoint *ep); /* a later module needs the connection: do not close it */
    void (*closing)(struct ib_endpoint *ep);       /* the queue pairs are about to be destroyed */
    void (*connected)(struct ib_endpoint *ep, const struct ib_hello *h);
    void (*opened)(struct ib_endpoint *ep);
    bool (*unreachable)(struct ib_endpoint *ep); /* false: the job cannot continue without this peer */

    /* Reported by the further rails of a connection. */
    void (*pairs_known)(struct ib_endpoint *ep);
    void (*pair_connected)(struct ib_lane *lane);
    void (*pair_changed)(struct ib_endpoint *ep, unsigned pair, bool up);
    void (*pair_dropped)(struct ib_lane *lane); /* the queue pair is about to be destroyed */
    void (*pair_settled)(struct ib_endpoint *ep,
                         unsigned pair); /* nothing of the old queue pair can arrive any more */
    void (*pairs_freed)(struct ib_endpoint *ep);
};

/* The functions of one type of control message. */
struct ib_message {
    size_t (*fill)(struct ib_endpoint *ep,
                   void *body); /* writes the body, returns its length; NULL: no body */
    void (*take)(struct ib_endpoint *ep, const struct ib_head *h,
                 size_t len);               /* handles a received message; NULL: the header has everything */
    void (*posted)(struct ib_endpoint *ep); /* called after the message was posted; may be NULL */
};

extern const struct ib_events ib_events;
extern const struct ib_message ib_messages[IB_TYPES];

#endif

/* filter.h: the completion filter [Liu04 8.2.1]: the protocol is notified of a striped message once, when every stripe is known
 * to have arrived. A pure state machine, one for each message in flight.
 *
 * Each stripe has at most one attempt in flight, identified by a number. A completion with another number is
 * of a failed attempt and is ignored. Whether a failed stripe has arrived is unknown, so it is posted again
 * on another rail, to the same addresses: that is harmless because no process reads these bytes before the
 * protocol is notified that the message is complete. The transport must report a failure only when the
 * attempt can write no more (its queue pair is in the error state and has been flushed).
 *
 *     waiting ---filter_next--> under way --filter_completed--> arrived
 *        ^                          |
 *        +------filter_failed-------+
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_FILTER_H
#define FP_NET_RAILS_FILTER_H

#include "net/rails/adapt.h"
#include "net/rails/stripe.h"

enum filter_state { FILTER_WAITING, FILTER_UNDER_WAY, FILTER_ARRIVED };

/* The required reaction to an event. */
enum filter_verdict {
    FILTER_NOTHING, /* other stripes are still missing, or the completion is of a failed attempt */
    FILTER_DONE,    /* report the end of the transfer to the protocol */
    FILTER_AGAIN,   /* post the stripes that filter_next returns */
    FILTER_STUCK    /* a stripe waits, but no rail is up */
};

struct filter_stripe {
    struct stripe stripe;
    enum filter_state state;
    uint8_t attempt; /* number of the current attempt, from 1 */
    uint32_t failed; /* rails that failed this stripe since a rail last came up */
    uint64_t started;
};

struct filter {
    uint8_t count, missing; /* number of stripes; of those that have not arrived */
    uint32_t up;            /* rails that work */
    struct filter_stripe stripes[RAILS_MAX];
};

/* The number of an attempt, which the stripe's operation carries: stripe << 8 | attempt. */
static inline uint32_t filter_make_ticket(unsigned stripe, unsigned attempt)
{
    return (uint32_t)stripe << 8 | attempt;
}

void filter_open(struct filter *f, const struct stripe *stripes, unsigned count, uint32_t up);

/* Selects the next waiting stripe and its rail, and marks it as under way. -1: none. A failed stripe uses the
 * least busy rail that has not failed it; if all have, any rail. */
int filter_next(struct filter *f, uint64_t now, uint32_t *ticket);

/* Called if the stripe of filter_next could not be posted (no room in the queue): the stripe waits again. */
void filter_undo_issue(struct filter *f, unsigned stripe);

/* Handles the completion of an attempt, and passes it to adaptive striping (a; NULL: none). The time of a
 * repeated stripe is not used as a sample of its rail. */
enum filter_verdict filter_completed(struct filter *f, uint32_t ticket, uint64_t now, struct adapt *a);
enum filter_verdict filter_failed(struct filter *f, uint32_t ticket);

/* Called when a rail came up or went down. Attempts on a rail that went down remain under way until they
 * complete or fail. */
enum filter_verdict filter_set_rail_up(struct filter *f, unsigned rail, bool up);

#endif

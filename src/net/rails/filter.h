/* filter.h: the completion filter [Liu04 8.2.1]: the protocol is notified of a striped message once, when every stripe is known
 * to have arrived. A pure state machine, one for each message that is under way.
 *
 * A stripe has an owner: the attempt that is under way. A completion with another number is of an attempt that was given up
 * and means nothing. A stripe that failed may have arrived, in part or as a whole; that is unknown. It is issued again on another
 * rail, over the same bytes, which is harmless since the protocol was not notified that the message is done and nobody reads
 * the bytes before. Therefore two rules: the transport reports a failure only when that attempt can write no more (its
 * queue pair is in the error state and has been flushed), and a stripe has never more than one attempt under way.
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

/* What to do after an event. */
enum filter_verdict {
    FILTER_NOTHING, /* other stripes are still missing, or the completion is an old one */
    FILTER_DONE,    /* report the end of the transfer to the protocol, once */
    FILTER_AGAIN,   /* issue the stripes that filter_next returns */
    FILTER_STUCK    /* a stripe waits and no rail is up */
};

struct filter_stripe {
    struct stripe stripe;
    enum filter_state state;
    uint8_t attempt; /* number of the present attempt, from 1 */
    uint32_t failed; /* rails that failed this stripe since the last one came up */
    uint64_t started;
};

struct filter {
    uint8_t count, missing; /* stripes, and stripes that have not arrived */
    uint32_t up;            /* rails that work */
    struct filter_stripe stripes[RAILS_MAX];
};

/* The number of an attempt, carried in its work request's id beside the message's own number. */
static inline uint32_t filter_make_ticket(unsigned stripe, unsigned attempt)
{
    return (uint32_t)stripe << 8 | attempt;
}

void filter_open(struct filter *f, const struct stripe *stripes, unsigned count, uint32_t up);

/* Selects the next stripe to issue and its rail; it is under way then. -1: none. Failed stripes go to the rail with
 * the fewest bytes under way among those that have not failed them; if all have, to any. */
int filter_next(struct filter *f, uint64_t now, uint32_t *ticket);

/* Called if the transport could not issue the stripe of filter_next (no room in the queue): it waits again. */
void filter_undo_issue(struct filter *f, unsigned stripe);

/* Reports the stripe to adaptive striping, and the message when all stripes are complete. a: NULL without adaptive striping. The time
 * of a repeated stripe is no sample of its rail. */
enum filter_verdict filter_completed(struct filter *f, uint32_t ticket, uint64_t now, struct adapt *a);
enum filter_verdict filter_failed(struct filter *f, uint32_t ticket);

/* Called when a rail came up or went down. Attempts on a rail that went down stay under way until they complete or
 * fail. */
enum filter_verdict filter_rail(struct filter *f, unsigned rail, bool up);

#endif

/* filter.c: reports a striped message when all its stripes have arrived.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/rails/filter.h"

void filter_open(struct filter *f, const struct stripe *stripes, unsigned count, uint32_t up)
{
    *f = (struct filter){.count = (uint8_t)count, .missing = (uint8_t)count, .up = up};
    for (unsigned i = 0; i < count; i++)
        f->stripes[i].stripe = stripes[i];
}

static uint64_t bytes_in_flight_on(const struct filter *f, unsigned rail)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < f->count; i++)
        if (f->stripes[i].state == FILTER_UNDER_WAY && f->stripes[i].stripe.rail == rail)
            bytes += f->stripes[i].stripe.bytes;
    return bytes;
}

/* Returns the current rail of the stripe if that rail is up and has not failed the stripe; else the least
 * busy rail of the others. */
static unsigned choose_stripe_rail(const struct filter *f, const struct filter_stripe *s)
{
    uint32_t fresh = f->up & ~s->failed;
    if (rail_set_contains(fresh, s->stripe.rail))
        return s->stripe.rail;
    uint32_t set = fresh ? fresh : f->up;
    unsigned best = RAIL_NONE;
    for (unsigned r = 0; r < RAILS_MAX; r++)
        if (rail_set_contains(set, r) &&
            (best == RAIL_NONE || bytes_in_flight_on(f, r) < bytes_in_flight_on(f, best)))
            best = r;
    return best;
}

int filter_next(struct filter *f, uint64_t now, uint32_t *ticket)
{
    for (unsigned i = 0; i < f->count; i++) {
        struct filter_stripe *s = &f->stripes[i];
        if (s->state != FILTER_WAITING)
            continue;
        unsigned rail = choose_stripe_rail(f, s);
        if (rail == RAIL_NONE)
            return -1;
        if (rail_set_contains(s->failed, rail))
            s->failed = 0; /* all rails that are up have failed the stripe: try all again */
        s->stripe.rail = (uint8_t)rail;
        s->state = FILTER_UNDER_WAY;
        s->started = now;
        s->attempt++;
        if (s->attempt == 0) /* completions of attempts 255 rounds ago have arrived */
            s->attempt = 1;
        *ticket = filter_make_ticket(i, s->attempt);
        return (int)i;
    }
    return -1;
}

void filter_undo_issue(struct filter *f, unsigned stripe)
{
    f->stripes[stripe].state = FILTER_WAITING;
    f->stripes[stripe].attempt--;
}

/* Returns the stripe if this attempt of it is under way, else NULL. */
static struct filter_stripe *filter_find_stripe(struct filter *f, uint32_t ticket)
{
    uint32_t i = ticket >> 8;
    if (i >= f->count || f->stripes[i].state != FILTER_UNDER_WAY || f->stripes[i].attempt != (ticket & 255))
        return NULL;
    return &f->stripes[i];
}

static enum filter_verdict filter_current_verdict(const struct filter *f)
{
    for (unsigned i = 0; i < f->count; i++)
        if (f->stripes[i].state == FILTER_WAITING)
            return f->up ? FILTER_AGAIN : FILTER_STUCK;
    return FILTER_NOTHING;
}

static uint32_t stripes_rail_set(const struct filter *f)
{
    uint32_t set = 0;
    for (unsigned i = 0; i < f->count; i++)
        set |= rail_bit(f->stripes[i].stripe.rail);
    return set;
}

enum filter_verdict filter_completed(struct filter *f, uint32_t ticket, uint64_t now, struct adapt *a)
{
    struct filter_stripe *s = filter_find_stripe(f, ticket);
    if (!s)
        return FILTER_NOTHING;
    s->state = FILTER_ARRIVED;
    if (a && s->attempt == 1)
        adapt_stripe(a, s->stripe.rail, s->stripe.bytes, s->started, now);
    if (--f->missing)
        return FILTER_NOTHING;
    if (a)
        adapt_count_message(a, stripes_rail_set(f));
    return FILTER_DONE;
}

enum filter_verdict filter_failed(struct filter *f, uint32_t ticket)
{
    struct filter_stripe *s = filter_find_stripe(f, ticket);
    if (!s)
        return FILTER_NOTHING;
    s->state = FILTER_WAITING;
    s->failed |= rail_bit(s->stripe.rail);
    return filter_current_verdict(f);
}

enum filter_verdict filter_set_rail_up(struct filter *f, unsigned rail, bool up)
{
    f->up = up ? f->up | rail_bit(rail) : f->up & ~rail_bit(rail);
    for (unsigned i = 0; up && i < f->count; i++)
        f->stripes[i].failed &= ~rail_bit(rail);
    return filter_current_verdict(f);
}

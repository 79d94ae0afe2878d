/* frame_route.c: whether frames may be sent, and over which rails; see frame_route.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/frame_route.h"

static void frame_route_choose(struct frame_route *t)
{
    t->state = t->pairs ? FRAME_ROUTE_SPREAD : t->counted > 0 ? FRAME_ROUTE_COUNTED : FRAME_ROUTE_PRIMARY;
}

void frame_route_follow_connection(struct frame_route *t, bool open, bool resend)
{
    if (t->state == FRAME_ROUTE_FAILING)
        return;
    t->state = open ? FRAME_ROUTE_RESENDING : FRAME_ROUTE_CLOSED;
    if (open && !resend)
        frame_route_choose(t);
}

void frame_route_resend_finished(struct frame_route *t)
{
    if (t->state == FRAME_ROUTE_RESENDING)
        frame_route_choose(t);
}

void frame_route_set_failing(struct frame_route *t)
{
    t->state = FRAME_ROUTE_FAILING;
}

void frame_route_reset(struct frame_route *t)
{
    t->state = FRAME_ROUTE_CLOSED;
}

void frame_route_set_pairs(struct frame_route *t, bool pairs)
{
    t->pairs = pairs;
    if (frame_route_is_ready(t))
        frame_route_choose(t);
}

void frame_route_set_counted(struct frame_route *t, uint8_t frames)
{
    t->counted = frames;
    if (frame_route_is_ready(t))
        frame_route_choose(t);
}

bool frame_route_count_frame(struct frame_route *t)
{
    if (t->counted == 0 || --t->counted > 0)
        return false;
    if (frame_route_is_ready(t))
        frame_route_choose(t);
    return true;
}

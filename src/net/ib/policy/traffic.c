/* traffic.c: whether frames may be sent, and over which rails; see traffic.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/traffic.h"

static void traffic_choose(struct traffic *t)
{
    t->state = t->pairs ? TRAFFIC_SPREAD : t->counted > 0 ? TRAFFIC_COUNTED : TRAFFIC_PRIMARY;
}

void traffic_follow_connection(struct traffic *t, bool open, bool resend)
{
    if (t->state == TRAFFIC_FAILING)
        return;
    t->state = open ? TRAFFIC_RESENDING : TRAFFIC_CLOSED;
    if (open && !resend)
        traffic_choose(t);
}

void traffic_resend_finished(struct traffic *t)
{
    if (t->state == TRAFFIC_RESENDING)
        traffic_choose(t);
}

void traffic_set_failing(struct traffic *t)
{
    t->state = TRAFFIC_FAILING;
}

void traffic_reset(struct traffic *t)
{
    t->state = TRAFFIC_CLOSED;
}

void traffic_set_pairs(struct traffic *t, bool pairs)
{
    t->pairs = pairs;
    if (traffic_is_ready(t))
        traffic_choose(t);
}

void traffic_set_counted(struct traffic *t, uint8_t frames)
{
    t->counted = frames;
    if (traffic_is_ready(t))
        traffic_choose(t);
}

bool traffic_count_frame(struct traffic *t)
{
    if (t->counted == 0 || --t->counted > 0)
        return false;
    if (traffic_is_ready(t))
        traffic_choose(t);
    return true;
}

/* credit.c: the less frequent part of flow control: initialisation, and changes of the number of buffers
 * ([Liu04 5.4]; that section leaves the release of buffers to future work).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/credit.h"

/* Returns the number of owed credits at which a message is due: half of the buffers, so that the sender
 * receives credits before it runs out. With two buffers, one credit does not justify a message: the next
 * frame carries it if traffic flows in both directions. */
static uint32_t credit_message_threshold(const struct credit_rules *rules, uint32_t posted)
{
    if (rules->tell_at)
        return MIN(rules->tell_at,
                   posted); /* a sender without credits must be granted all of them in the end */
    return MAX(posted / 2, MIN(posted, 2));
}

static void credit_set_posted(struct credit *c, uint32_t posted)
{
    c->posted = posted;
    c->most_posted = MAX(c->most_posted, posted);
    c->due_at = credit_message_threshold(c->rules, posted);
}

void credit_start(struct credit *c, const struct credit_rules *rules, uint32_t peer_posted)
{
    *c = (struct credit){.rules = rules, .unit = rules->scheme == CREDIT_HW ? 0 : 1, .have = peer_posted};
    credit_set_posted(c, rules->first);
}

uint32_t credit_adapt(struct credit *c, bool waited)
{
    const struct credit_rules *r = c->rules;
    if (waited) {
        uint32_t room = r->buffers_max > c->posted ? r->buffers_max - c->posted : 0;
        uint32_t more = MIN(r->growth == CREDIT_LINEAR ? r->step : c->posted, room);
        c->calm = 0;
        c->owed += 1 + more;
        credit_set_posted(c, c->posted + more);
        return 1 + more;
    }
    if (r->calm_after && c->posted > r->first && ++c->calm >= r->calm_after) {
        /* The credit of the frame is not returned: one buffer is released. */
        c->calm = 0;
        credit_set_posted(c, c->posted - 1);
        return 0;
    }
    c->owed++;
    return 1;
}

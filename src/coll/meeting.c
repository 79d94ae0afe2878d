/* meeting.c: see meeting.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/meeting.h"

static enum meeting_action begin(struct meeting *m, const struct meeting_shape *shape)
{
    m->turn++;
    m->round = -1;
    if (!shape->leads) {
        m->stage = MEET_RELEASE;
        return MEET_REPORT;
    }
    m->stage = MEET_GATHER;
    return MEET_EXPECT;
}

/* The members, or the partners of a round, are here. */
static enum meeting_action go_on(struct meeting *m, const struct meeting_shape *shape)
{
    if (++m->round < shape->rounds) {
        m->stage = MEET_CROSS;
        return MEET_ROUND;
    }
    m->stage = MEET_RELEASE;
    return MEET_FREE;
}

enum meeting_action meeting_next(struct meeting *m, const struct meeting_shape *shape, bool ready)
{
    switch (m->stage) {
    case MEET_AWAY:
        return begin(m, shape);
    case MEET_GATHER:
        return ready || shape->alone ? go_on(m, shape) : MEET_WAIT;
    case MEET_CROSS:
        return ready ? go_on(m, shape) : MEET_WAIT;
    case MEET_RELEASE:
        if (!ready && !shape->leads)
            return MEET_WAIT;
        m->stage = MEET_AWAY;
    }
    return MEET_OVER;
}

int meeting_partners(int leader, int leaders, int n, struct meeting_partner *out, int most, int *rounds)
{
    int count = 0, round = 0;
    for (int64_t step = 1; step < leaders; step *= n + 1, round++)
        for (int64_t distance = step; distance <= n * step && distance < leaders; distance += step) {
            if (count == most)
                return -1;
            out[count++] = (struct meeting_partner){.to = (int)((leader + distance) % leaders),
                                                    .from = (int)((leader - distance + leaders) % leaders),
                                                    .round = round};
        }
    *rounds = round;
    return count;
}

/* choice_machine.h: a machine that messages cost time on, for tests of the choice of their way: single messages and windows, as the
 * choice says or forced, and how far it is behind the best one forced.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_CHOICE_MACHINE_H
#define FP_TESTS_CHOICE_MACHINE_H

#include <inttypes.h>
#include <string.h>

#include "cost_tables.h"
#include "p2p/choice.h"
#include "test.h"

#define ALL (WAY_BIT(WAY_PIECES) | WAY_BIT(WAY_READ) | WAY_BIT(WAY_SPLIT))

/* A machine: its clock, its costs, and what disturbs it. */
struct machine {
    const struct cost_row *row;
    uint64_t now;
    uint32_t seed;
    uint32_t noise;        /* percent by which costs vary */
    uint32_t stalls[WAYS]; /* one message in so many waits for the other rank; 0: none */
    uint64_t stall_ns;
    uint64_t others_ns; /* where ranks share cores: others' turns, for every message in pieces */
    unsigned open;
    uint32_t cold[WAYS]; /* percent that a window costs more when the one before it went another way */
    uint32_t slow;       /* ... and so many percent of that in the next one, and so on */
    uint32_t chill;      /* percent of that */
    int last;            /* ... that way + 1 */
    int used[WAYS];
};

static uint32_t dice(struct machine *m, uint32_t n)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (m->seed >> 8) % n;
}

static uint64_t cost_of(struct machine *m, enum way way, bool window)
{
    const struct cost_row *r = m->row;
    const uint32_t lone[WAYS] = {r->lone_pieces, r->lone_read, UINT32_MAX, r->lone_split};
    const uint32_t shared[WAYS] = {r->window_pieces, r->window_read, UINT32_MAX, r->window_split};
    uint64_t ns = window ? shared[way] : lone[way];
    if (m->noise)
        ns = ns * (100 + dice(m, m->noise)) / 100;
    if (m->stalls[way] && dice(m, m->stalls[way]) == 0)
        ns += m->stall_ns;
    return ns;
}

/* What it costs more because the caches are in the state that suits another way. */
static uint64_t chilled(struct machine *m, enum way way, uint64_t cost)
{
    m->chill = m->last - 1 != (int)way ? 100 : m->chill * m->slow / 100;
    m->last = (int)way + 1;
    return cost * m->cold[way] * m->chill / 10000;
}

/* One message at a time, there and back: the way back takes as long. Returns the time of all in ns; `forced`:
 * nobody is asked. */
static uint64_t ping_pong(struct choice *c, struct machine *m, int n, int forced)
{
    uint64_t total = 0;
    for (int i = 0; i < n; i++) {
        struct choice_ticket t;
        enum way way = forced >= 0 ? (enum way)forced
                                   : choice_ask(c, m->row->bytes, m->open, WAY_READ, CHOICE_LONE, m->now, &t);
        uint64_t cost = cost_of(m, way, false);
        cost += chilled(m, way, cost);
        m->now += cost + (way == WAY_PIECES ? m->others_ns : 0);
        if (forced < 0 && m->others_ns)
            choice_learn_work(c, &t, m->now, cost);
        else if (forced < 0)
            choice_learn(c, &t, m->now);
        m->used[way]++;
        total += cost;
        m->now += cost + 300;
    }
    return total;
}

/* Windows of 64: announcements come together. What is read is complete when it is asked for; of what is split
 * the receiver's half is read at once; the rest comes when all announcements have been dealt with. */
static uint64_t stream(struct choice *c, struct machine *m, int windows, int forced)
{
    uint64_t total = 0;
    for (int i = 0; i < windows; i++) {
        struct choice_ticket t[64];
        uint64_t begun = m->now, late[64];
        int nlate = 0, which[64];
        uint64_t extra = 0;
        for (int k = 0; k < 64; k++) {
            enum way way = forced >= 0
                               ? (enum way)forced
                               : choice_ask(c, m->row->bytes, m->open, WAY_READ, CHOICE_LONE, m->now, &t[k]);
            uint64_t cost = cost_of(m, way, true);
            if (k == 0)
                extra = chilled(m, way, 100);
            cost += cost * extra / 100;
            m->used[way]++;
            uint64_t at_once = way == WAY_READ ? cost : way == WAY_SPLIT ? cost / 2 : 20;
            m->now += at_once;
            if (way == WAY_READ && forced < 0)
                choice_learn(c, &t[k], m->now);
            if (way != WAY_READ) {
                which[nlate] = k;
                late[nlate++] = cost > at_once ? cost - at_once : 0;
            }
        }
        for (int k = 0; k < nlate; k++) {
            m->now += late[k];
            if (forced < 0)
                choice_learn(c, &t[which[k]], m->now);
        }
        total += m->now - begun;
        m->now += 2000;
    }
    return total;
}

typedef uint64_t traffic(struct choice *c, struct machine *m, int n, int forced);

/* How much more than with the best way forced, in percent. */
static int behind(struct choice *c, struct machine *m, traffic *run, int n)
{
    uint64_t best = UINT64_MAX;
    for (int w = 0; w < WAYS; w++) {
        struct machine copy = *m;
        uint64_t took = m->open & WAY_BIT(w) ? run(c, &copy, n, w) : UINT64_MAX;
        best = took < best ? took : best;
    }
    memset(m->used, 0, sizeof(m->used));
    uint64_t took = run(c, m, n, -1);
    return (int)(((int64_t)took - (int64_t)best) * 100 / (int64_t)best);
}

static void expect_within(const char *what, const struct machine *m, int percent, int limit)
{
    if (percent > limit)
        printf("%s, %" PRIu64 " bytes: %d %% behind the best; %d in pieces, %d read, %d split\n", what,
               m->row->bytes, percent, m->used[WAY_PIECES], m->used[WAY_READ], m->used[WAY_SPLIT]);
    EXPECT(percent <= limit);
}

#endif

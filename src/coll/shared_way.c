/* shared_way.c: the choice between slots, reading, and reading with help. The first calls of a class try one after the other;
 * later calls take the fastest, and try another occasionally, more rarely when it was much slower. A way is tried in several
 * calls in a row: the first call after another way finds the caches of both processors in a state that suits the other, and
 * takes up to three times as long.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shared_way.h"

#include "base/util.h"

#define LOOK        2048  /* of so many calls the last go another way; */
#define LOOK_FAR    16384 /* of so many, where that takes FAR_BEHIND times as long as the best */
#define FAR_BEHIND  3
#define BEHIND_PART 4  /* a way is far behind that takes longer by one part in so many */
#define FALL        2  /* a cheaper call counts for one part in so many, */
#define RISE        16 /* a dearer one for one part in so many, */
#define SPIKE       8  /* and as at most so many times what is known */
#define SERIES_ON   4  /* series of a way after the first have so many times as many calls; */
#define MEAN        4  /* they count for one part in so many, */
#define MEAN_SPIKE  4  /* and as at most so many times what is known */

/* How a way is tried: in so many calls in a row; at first in so many rounds, then again after `look` calls, at twice as many each time,
 * and at last in each LOOK. Where ranks share processors, data that runs ahead through slots is on its way for several calls, and
 * only a whole series of calls says what one takes. In a long call each rank has had its turn. */
static const struct manner {
    uint32_t run, rounds, look;
} manners[] = {[PACE_ALONE] = {.run = 7, .rounds = 1, .look = 64},
               [PACE_TURNS] = {.run = 13, .rounds = 2, .look = 128},
               [PACE_LONG] = {.run = 4, .rounds = 2, .look = 64}};

uint32_t shared_cost_blend(uint32_t known, uint64_t ns, bool early)
{
    ns = MIN(MAX(ns, 1u), UINT32_MAX / 4);
    if (known == 0 || (early && ns < known))
        return (uint32_t)ns;
    if (early)
        return known;
    if (ns <= known)
        return known - (known - (uint32_t)ns) / FALL;
    return known + (uint32_t)((MIN(ns, SPIKE * (uint64_t)known) - known) / RISE);
}

/* A way that is looked at again is believed at once where it is cheaper: what is known of it is old. */
static uint32_t mean_blend(uint32_t known, uint32_t ns, uint32_t last, bool early)
{
    if (known == 0 || ((early || last == 0) && ns < known))
        return ns;
    if (early)
        return known;
    if (ns <= known)
        return known - (known - ns) / MEAN;
    if (last == 0) /* what a look finds dear stays as dear as it was */
        return known;
    ns = MIN(ns, last);
    return ns <= known ? known : known + (uint32_t)((MIN(ns, MEAN_SPIKE * (uint64_t)known) - known) / MEAN);
}

uint32_t shared_series_learn(struct shared_series *s, enum shared_pace pace, enum shared_way way, uint64_t ns,
                             uint32_t known, bool early)
{
    const uint32_t first = manners[pace].run - 1; /* calls of the first series of a way */
    if (s->way != way + 1) {
        *s = (struct shared_series){.way = (uint8_t)(way + 1)};
        return known;
    }
    s->ns += ns;
    const uint32_t all = s->last == 0 ? first : SERIES_ON * first;
    if (++s->calls < all)
        return known;
    const uint32_t mean = (uint32_t)MIN(MAX(s->ns / all, 1u), UINT32_MAX / 4);
    known = mean_blend(known, mean, s->last, early);
    *s = (struct shared_series){.way = s->way, .last = mean};
    return known;
}

/* The one to look at in the n-th call, or the best. Those far behind are looked at more rarely; in turn. At first looks are
 * twice as far apart each time: the first calls of a program are not like those that follow. */
static unsigned look(const struct manner *m, uint32_t n, const uint32_t ns[], unsigned ways, unsigned best)
{
    uint32_t end = m->look, turn = 0;
    for (; end <= n && end < LOOK; end *= 2)
        turn++;
    if (n >= LOOK) {
        turn += n / LOOK + n / LOOK_FAR;
        end = (n / LOOK + 1) * LOOK;
    }
    const unsigned other = (best + 1 + turn % (ways - 1)) % ways;
    if (ns[other] > FAR_BEHIND * (uint64_t)ns[best])
        end = (n / LOOK_FAR + 1) * LOOK_FAR;
    return n >= end - m->run ? other : best;
}

bool shared_way_is_new(uint32_t n, unsigned ways, enum shared_pace pace)
{
    const struct manner *m = &manners[pace];
    return n < m->run * ways * m->rounds;
}

enum shared_way shared_way_pick(uint32_t n, const uint32_t ns[], unsigned ways, enum shared_pace pace)
{
    const struct manner *m = &manners[pace];
    unsigned best = 0;
    bool known = true;
    for (unsigned w = 0; w < ways; w++) {
        known &= ns[w] != 0;
        if (ns[w] < ns[best])
            best = w;
    }
    if (shared_way_is_new(n, ways, pace) || !known)
        return (enum shared_way)(n / m->run % ways);
    return (enum shared_way)look(m, n, ns, ways, best);
}

enum shared_way shared_way_pick_new(uint32_t n, const uint32_t ns[], const uint32_t before[], unsigned ways)
{
    uint32_t now[SHARED_WAYS];
    unsigned best = 0;
    for (unsigned w = 0; w < ways; w++)
        if (before[w] && (!before[best] || before[w] < before[best]))
            best = w;
    for (unsigned w = 0; w < ways; w++) {
        const bool behind = before[w] > before[best] + before[best] / BEHIND_PART;
        now[w] = ns[w] == 0 && behind ? 2 * before[w] : ns[w];
    }
    const enum shared_way way = shared_way_pick(n, now, ways, PACE_ALONE);
    const bool first = shared_way_is_new(n, ways, PACE_ALONE) && ns[way] == 0 && now[way] != 0;
    return first ? (enum shared_way)best : way;
}

enum shared_own_manner shared_own_pick(const struct shared_own *o)
{
    return (enum shared_own_manner)shared_way_pick(o->calls, o->ns, OWN_MANNERS, PACE_ALONE);
}

void shared_own_learn(struct shared_own *o, enum shared_own_manner manner, uint64_t ns)
{
    const bool early = shared_way_is_new(o->calls++, OWN_MANNERS, PACE_ALONE);
    o->ns[manner] = shared_cost_blend(o->ns[manner], ns, early);
}

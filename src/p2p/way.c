/* way.c: tries each way a few times, then takes the cheaper one, and looks at the other again now and then.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/way.h"

#include <stdbool.h>

#include "base/util.h"

#define FIRST_TRIES 6   /* of each way, in turn; the cheapest counts: the first touch of memory is slow */
#define LOOK_AGAIN  256 /* one message in so many goes the other way */
#define LOOK_SOON   32  /* ... while few have been seen: the first impression may be wrong */
#define FEW         512
#define CLEARLY     8 /* cheaper by one part in so many: less may be chance */
#define SMALLEST    32768u

/* Costs are compared within a factor of two of the size: what does not grow with it is a part of them. */
static struct way_state *class_of(struct way_table *t, uint64_t bytes)
{
    int i = 0;
    for (uint64_t limit = 2 * SMALLEST; i < WAY_CLASSES - 1 && bytes >= limit; limit *= 2)
        i++;
    return &t->classes[i];
}

static bool look_again(struct way_state *s)
{
    s->picks++;
    return s->picks % (s->picks < FEW ? LOOK_SOON : LOOK_AGAIN) == 0;
}

enum way way_pick(struct way_table *t, uint64_t bytes, enum way one, enum way other)
{
    struct way_state *s = class_of(t, bytes);
    if (s->samples[one] < FIRST_TRIES || s->samples[other] < FIRST_TRIES)
        return s->samples[other] < s->samples[one] ? other : one;
    bool cheaper = s->cost[other] < s->cost[one] - s->cost[one] / CLEARLY;
    return cheaper != look_again(s) ? other : one;
}

void way_learn(struct way_table *t, enum way way, uint64_t bytes, uint64_t ns)
{
    struct way_state *s = class_of(t, bytes);
    uint64_t cost = bytes ? ns * 65536 / bytes : 0;
    uint32_t sample = (uint32_t)MIN(cost, UINT32_MAX / 2);
    if (s->samples[way]++ == 0)
        s->cost[way] = sample;
    else if (s->samples[way] <= FIRST_TRIES)
        s->cost[way] = MIN(s->cost[way], sample);
    else if (sample < s->cost[way]) /* what disturbs a measurement makes it longer */
        s->cost[way] = (s->cost[way] + sample) / 2;
    else
        s->cost[way] = (uint32_t)(((uint64_t)s->cost[way] * 7 + sample) / 8);
}

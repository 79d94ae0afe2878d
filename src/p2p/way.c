/* way.c: tries each way a few times, then takes the cheaper one, and looks at the other again now and then.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/way.h"

#include <stdbool.h>

#include "base/util.h"

#define FIRST_TRIES 3   /* of each way; the cheapest counts, since the first touch of memory is slow */
#define LOOK_AGAIN  256 /* one message in so many goes the other way */

static struct way_state *class_of(struct way_table *t, uint64_t bytes)
{
    static const uint64_t limits[WAY_CLASSES - 1] = {128 << 10, 1 << 20, 8 << 20};
    int i = 0;
    while (i < WAY_CLASSES - 1 && bytes >= limits[i])
        i++;
    return &t->classes[i];
}

enum way way_pick(struct way_table *t, uint64_t bytes, enum way one, enum way other)
{
    struct way_state *s = class_of(t, bytes);
    if (s->samples[one] < FIRST_TRIES)
        return one;
    if (s->samples[other] < FIRST_TRIES)
        return other;
    bool look_again = ++s->picks % LOOK_AGAIN == 0;
    return (s->cost[other] < s->cost[one]) != look_again ? other : one;
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
    else
        s->cost[way] = (uint32_t)(((uint64_t)s->cost[way] * 7 + sample) / 8);
}

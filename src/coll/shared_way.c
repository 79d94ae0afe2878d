/* shared_way.c: the choice between slots and reading. The first calls of a class try both in turn; later ones
 * take the cheaper, and look at the other now and then, more rarely when it was far behind.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/shared_way.h"

#include "base/util.h"

#define TRIALS     8   /* first calls of a class, half of them each way */
#define LOOK       128 /* one call in so many goes the other way */
#define LOOK_FAR   2048
#define FAR_BEHIND 3  /* times the better one's cost */
#define FALL       2  /* a cheaper call counts for one part in so many, */
#define RISE       16 /* a dearer one for one part in so many, */
#define SPIKE      8  /* and as at most so many times what is known */

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

enum shared_way shared_way_pick(uint32_t *asked, uint32_t slots_ns, uint32_t reading_ns)
{
    const uint32_t n = (*asked)++;
    if (n < TRIALS || slots_ns == 0 || reading_ns == 0)
        return n % 2 ? BY_READING : BY_SLOTS;
    const enum shared_way best = reading_ns < slots_ns ? BY_READING : BY_SLOTS;
    const uint64_t low = MIN(slots_ns, reading_ns), high = MAX(slots_ns, reading_ns);
    const uint32_t period = high > FAR_BEHIND * low ? LOOK_FAR : LOOK;
    return n % period == period - 1 ? (enum shared_way)(1 - best) : best;
}

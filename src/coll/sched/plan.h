/* plan.h: a schedule with the inputs of its generation, and the cache of schedules of a communicator.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_SCHED_PLAN_H
#define FP_COLL_SCHED_PLAN_H

#include "base/counter.h"
#include "coll/sched/algorithm.h"

#define PLAN_CACHE_SLOTS 64
#define PLAN_CACHE_STEPS_MAX \
    2048 /* longer schedules are not cached: generating them is fast compared with their messages */

struct plan {
    const struct coll_algorithm *algorithm;
    int64_t count, segment;
    int root, window;
    int parameter[COLL_PARAMETERS];
    bool in_place, commutative, adjacent;
    bool in_objmem; /* the steps are in memory of objmem.h, not in the heap */
    int refs;
    struct sched sched;
};

struct plan_cache {
    struct plan *slot[PLAN_CACHE_SLOTS];
};

extern struct counter coll_bytes; /* bytes allocated for schedules and flags */

/* Returns a cached or new schedule for this shape. The caller releases it with plan_release(). */
int plan_get(struct plan_cache *cache, const struct coll_algorithm *a, const struct coll_shape *shape,
             struct plan **out);
void plan_release(struct plan *plan);
void plan_cache_close(struct plan_cache *cache);

#endif

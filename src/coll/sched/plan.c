/* plan.c: generates schedules and caches them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/sched/plan.h"

#include <string.h>

#include "base/err.h"
#include "base/objmem.h"

static COUNTER(made, "coll_schedules_made", "Collective schedules generated.");
static COUNTER(found, "coll_schedules_reused", "Collective schedules taken from a communicator's cache.");

COUNTER(coll_bytes, "coll_bytes",
        "Bytes allocated for schedules and barrier flags, summed over all communicators.");

static unsigned plan_slot(const struct coll_algorithm *a, const struct coll_shape *shape)
{
    uint64_t h = (uint64_t)(uintptr_t)a >> 4;
    h = h * 31 + (uint64_t)shape->count;
    h = h * 31 + (uint64_t)(unsigned)shape->root;
    h = h * 31 + (uint64_t)shape->segment + (shape->in_place ? 7 : 0);
    return (unsigned)((h * 0x9e3779b97f4a7c15ull) >> 58);
}
_Static_assert(PLAN_CACHE_SLOTS == 64, "plan_slot gives six bits");

static bool plan_matches(const struct plan *p, const struct coll_algorithm *a, const struct coll_shape *shape)
{
    return p->algorithm == a && p->count == shape->count && p->root == shape->root &&
           p->segment == shape->segment && p->window == shape->window && p->in_place == shape->in_place &&
           p->commutative == shape->commutative && p->adjacent == shape->adjacent &&
           memcmp(p->parameter, shape->parameter, sizeof(p->parameter)) == 0;
}

/* Moves the steps of a cached schedule out of the heap of the program: they may live as long as the
 * communicator and would fragment the heap. */
static bool move_to_objmem(struct plan *plan)
{
    struct sched *s = &plan->sched, built = *s;
    struct step *steps = objmem_new(s->count * sizeof(*steps));
    if (!steps)
        return false;
    if (built.count > 0)
        memcpy(steps, built.steps, built.count * sizeof(*steps));
    s->steps = steps;
    s->capacity = built.count;
    sched_free(&built);
    return plan->in_objmem = true;
}

/* Releases one reference (of a call or of the cache); frees the plan with the last one. */
void plan_release(struct plan *plan)
{
    if (--plan->refs > 0)
        return;
    if (plan->in_objmem)
        objmem_free(plan->sched.steps);
    else
        sched_free(&plan->sched);
    objmem_free(plan);
}

static struct plan *plan_make(const struct coll_algorithm *a, const struct coll_shape *shape)
{
    struct plan *plan = objmem_new(sizeof(*plan));
    if (!plan)
        return NULL;
    *plan = (struct plan){.algorithm = a,
                          .count = shape->count,
                          .segment = shape->segment,
                          .root = shape->root,
                          .window = shape->window,
                          .in_place = shape->in_place,
                          .commutative = shape->commutative,
                          .adjacent = shape->adjacent,
                          .refs = 1};
    memcpy(plan->parameter, shape->parameter, sizeof(plan->parameter));
    sched_init(&plan->sched);
    a->generate(shape, &plan->sched);
    counter_add(&made, 1);
    counter_add(&coll_bytes, sizeof(*plan) + plan->sched.count * sizeof(struct step));
    if (!plan->sched.failed)
        return plan;
    plan_release(plan);
    return NULL;
}

int plan_get(struct plan_cache *cache, const struct coll_algorithm *a, const struct coll_shape *shape,
             struct plan **out)
{
    /* The key has no block sizes, so a reduce_scatter with different block sizes is not cached. */
    const bool cacheable = shape->kind != COLL_REDUCE_SCATTER || shape->adjacent;
    struct plan **slot = &cache->slot[plan_slot(a, shape)];
    if (cacheable && *slot && plan_matches(*slot, a, shape)) {
        (*slot)->refs++;
        counter_add(&found, 1);
        *out = *slot;
        return 0;
    }
    struct plan *plan = plan_make(a, shape);
    if (!plan)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the schedule of a collective of %d ranks",
                       shape->size);
    if (cacheable && plan->sched.count <= PLAN_CACHE_STEPS_MAX && move_to_objmem(plan)) {
        if (*slot)
            plan_release(*slot);
        plan->refs++;
        *slot = plan;
    }
    *out = plan;
    return 0;
}

void plan_cache_close(struct plan_cache *cache)
{
    for (int i = 0; i < PLAN_CACHE_SLOTS; i++)
        if (cache->slot[i])
            plan_release(cache->slot[i]);
}

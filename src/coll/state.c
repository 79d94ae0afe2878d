/* state.c: opens and closes the per-communicator state, and keeps its cache of schedules.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/objmem.h"
#include "boot/boot.h"
#include "coll/exec.h"
#include "coll/multicast.h"
#include "coll/shared.h"
#include "coll/multicast_trial.h"
#include "coll/size_trial.h"
#include "coll/trial.h"
#include "coll/written.h"
#include "obj/fault.h"
#include "obj/topo.h"

static COUNTER(made, "coll_schedules_made", "Collective schedules generated.");
static COUNTER(found, "coll_schedules_reused", "Collective schedules taken from a communicator's cache.");

COUNTER(coll_bytes, "coll_bytes",
        "Bytes of memory taken for schedules and for the flags of barriers, by all communicators so far.");

static bool on_one_node(const struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    if (!c->proc->net->area || c->remote)
        return false;
    for (int r = 0; r < c->size; r++) {
        uint32_t job_rank = group_job_rank(c->group, r);
        if (job_rank >= boot->size || boot->node_of[job_rank] != boot->node)
            return false;
    }
    return true;
}

static bool on_several_nodes(const struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    bool several = false;
    for (int r = 0; r < c->size && !c->remote; r++) {
        uint32_t job_rank = group_job_rank(c->group, r);
        if (job_rank >= boot->size)
            return false;
        several |= boot->node_of[job_rank] != boot->node;
    }
    return several;
}

/* The same at every rank; 0 when a rank's place is not known. Negative: out of memory. */
static int count_nodes(const struct comm *c)
{
    const struct boot *boot = c->proc->boot;
    int count = 0;
    if (c->remote)
        return 0;
    bool *known = calloc(boot->nnodes, sizeof(*known));
    for (int r = 0; r < c->size && known; r++) {
        const uint32_t job_rank = group_job_rank(c->group, r);
        if (job_rank >= boot->size) {
            free(known);
            return 0;
        }
        count += !known[boot->node_of[job_rank]];
        known[boot->node_of[job_rank]] = true;
    }
    if (!known)
        return -1;
    free(known);
    return count;
}

int coll_state_open(struct comm *c, struct coll_state **out)
{
    int rc = comm_whole(c);
    rc = rc ? rc : coll_open(c->proc);
    if (rc)
        return rc;
    struct coll_state *state = calloc(1, sizeof(*state));
    const int nodes = count_nodes(c);
    if (nodes < 0 || !state) {
        free(state);
        return err_set(MPI_ERR_NO_MEM, "out of memory for the collective state of a communicator");
    }
    state->comm = c;
    /* A rank that dies at a flag leaves the others there. Where the job goes on without it, collectives are messages. */
    state->one_node = !c->proc->net->lost && on_one_node(c);
    state->nodes = !c->proc->net->lost && on_several_nodes(c);
    state->node_count = nodes;
    state->page = page_comm_open(c->proc->page, c->context, c->rank, c->size, comm_label(c));
    if (!state->page)
        state->page = &state->own;
    *out = c->coll = state;
    return 0;
}

void coll_state_close(struct comm *c)
{
    struct coll_state *state = c->coll ? c->coll : c->coll_kept;
    if (!state)
        return;
    if (c->coll)
        mismatch_look_at(c); /* what waits for this communicator now will wait for ever */
    shared_close(state);
    trial_close(state);
    multicast_trial_close(state);
    size_trial_close(state);
    written_close(state);
    multicast_close(state);
    page_comm_close(state->page);
    for (int i = 0; i < CACHE_SLOTS; i++)
        if (state->cache[i]) {
            state->cache[i]->cached = false;
            plan_drop(state->cache[i]);
        }
    coll_requests_free(state);
    free(state->scratch);
    free(state->sources);
    free(state);
    c->coll = c->coll_kept = NULL;
}

static unsigned slot_of(const struct coll_algorithm *a, const struct coll_shape *shape)
{
    uint64_t h = (uint64_t)(uintptr_t)a >> 4;
    h = h * 31 + (uint64_t)shape->count;
    h = h * 31 + (uint64_t)(unsigned)shape->root;
    h = h * 31 + (uint64_t)shape->segment + (shape->in_place ? 7 : 0);
    return (unsigned)((h * 0x9e3779b97f4a7c15ull) >> 58);
}
_Static_assert(CACHE_SLOTS == 64, "slot_of gives six bits");

static bool same(const struct plan *p, const struct coll_algorithm *a, const struct coll_shape *shape)
{
    return p->algorithm == a && p->count == shape->count && p->root == shape->root &&
           p->segment == shape->segment && p->window == shape->window && p->in_place == shape->in_place &&
           p->commutative == shape->commutative && p->adjacent == shape->adjacent &&
           memcmp(p->parameter, shape->parameter, sizeof(p->parameter)) == 0;
}

/* A schedule in the cache may stay for long. In the program's heap, between buffers that come and go, it would cut that up,
 * so its steps move to memory of the library's own. */
static bool settle(struct plan *plan)
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
    return plan->settled = true;
}

/* A plan goes when the last call that runs it is over and the cache has let go of it. */
void plan_drop(struct plan *plan)
{
    if (--plan->refs > 0)
        return;
    if (plan->settled)
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
    plan_drop(plan);
    return NULL;
}

int plan_get(struct coll_state *state, const struct coll_algorithm *a, const struct coll_shape *shape,
             struct plan **out)
{
    /* Blocks of different sizes make a reduce_scatter's schedule depend on more than the key holds. */
    const bool cacheable = shape->kind != COLL_REDUCE_SCATTER || shape->adjacent;
    struct plan **slot = &state->cache[slot_of(a, shape)];
    if (cacheable && *slot && same(*slot, a, shape)) {
        (*slot)->refs++;
        counter_add(&found, 1);
        *out = *slot;
        return 0;
    }
    struct plan *plan = plan_make(a, shape);
    if (!plan)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the schedule of a collective of %d ranks",
                       shape->size);
    if (cacheable && plan->sched.count <= CACHE_STEPS_MAX && settle(plan)) {
        if (*slot)
            plan_drop(*slot);
        plan->cached = true;
        plan->refs++;
        *slot = plan;
    }
    *out = plan;
    return 0;
}

/* Messages between two ranks match in the order of their edges; but on a cartesian grid what one rank sends
 * to its left arrives at the other from the right, so the two receives of a dimension are taken in the
 * opposite order. */
int coll_neighbors(struct coll_state *state)
{
    if (state->neighbors)
        return 0;
    struct comm *c = state->comm;
    int in, out;
    int rc = topology_degrees(c, &in, &out);
    if (rc)
        return rc;
    int *lists = malloc((size_t)(2 * in + out + 1) * sizeof(int));
    if (!lists)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a list of %d neighbours", in + out);
    state->sources = lists;
    state->receive_order = lists + in;
    state->destinations = lists + 2 * in;
    state->nsources = in;
    state->ndestinations = out;
    rc = topology_neighbors(c, state->sources, state->destinations);
    for (int i = 0; i < in; i++) {
        state->receive_order[i] = c->topology->kind == MPI_CART ? i ^ 1 : i;
        if (state->sources[i] == MPI_PROC_NULL)
            state->sources[i] = -1;
    }
    for (int i = 0; i < out; i++)
        if (state->destinations[i] == MPI_PROC_NULL)
            state->destinations[i] = -1;
    state->neighbors = rc == 0;
    if (rc) {
        free(lists);
        state->sources = NULL;
    }
    return rc;
}

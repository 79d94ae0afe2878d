/* run.c: the path of a call: describe it, choose an algorithm, get the schedule, run it. A blocking call
 * starts and waits, a nonblocking one returns the request, a persistent one can be started repeatedly.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "coll/call.h"
#include "coll/debug.h"
#include "coll/exec.h"
#include "coll/multicast.h"
#include "coll/multicast_trial.h"
#include "coll/shared.h"
#include "coll/size_trial.h"
#include "coll/trial.h"
#include "obj/context.h"
#include "coll/written.h"

int coll_open(struct proc *p)
{
    if (p->comm_closing == coll_state_close)
        return 0;
    int rc = coll_select_open();
    if (!rc)
        rc = debug_open();
    if (!rc) {
        p->comm_closing = coll_state_close;
        mismatch_open(p);
    }
    return rc;
}

int coll_choose_again(struct proc *p)
{
    for (int i = 0; p && i < CONTEXT_IDS; i++)
        if (p->comms[i] && p->comms[i]->coll) {
            memset(p->comms[i]->coll->short_limit, 0, sizeof(p->comms[i]->coll->short_limit));
            multicast_forget(p->comms[i]->coll);
            p->comms[i]->coll->quick = false;
        }
    return coll_select_open();
}

/* Everything up to the first step. */
static int prepare(const struct coll_args *args, struct coll_state *state, struct call *call,
                   const struct coll_choice *choice, struct coll_request **out)
{
    struct plan *plan;
    call_choose(call, args, choice);
    int rc = plan_get(state, choice->algorithm, &call->shape, &plan);
    if (rc)
        return rc;
    return coll_request_new(state, args, &call->shape, plan, call_splits(call, choice->algorithm), out);
}

/* Its messages are those of the call `as`. */
static int run_schedule(const struct coll_args *args, const struct coll_args *as, struct coll_state *state,
                        struct call *call, const struct coll_choice *choice)
{
    struct coll_request *r;
    int rc = prepare(args, state, call, choice, &r);
    if (rc)
        return rc;
    coll_request_number(r, as, FORM_BLOCKING);
    r->number = state->page->calls;
    coll_request_begin(r);
    net_wait(args->comm->proc->net, &r->base.complete);
    rc = r->base.error;
    coll_request_free(r);
    return rc;
}

/* Does this go by nodes, in a way of its own? */
static bool between_nodes(const struct coll_state *state, const struct coll_choice *choice)
{
    return (choice->algorithm->needs & NEED_NODES) || (choice->by_node && state->nodes);
}

static struct coll_choice choose_schedule(struct call *call, bool blocking)
{
    call->where.nodes = false;
    return coll_select(&call->shape, &call->where, blocking);
}

/* ... or what a trial has found to be faster. */
static struct coll_choice best_schedule(const struct coll_args *args, const struct coll_state *state,
                                        struct call *call, bool blocking)
{
    struct coll_choice choice = choose_schedule(call, blocking);
    size_trial_choose(args, state, call, &choice);
    return choice;
}

/* ---- what a trial of barriers needs ---- */

static int barrier_by(const struct coll_args *args, struct coll_state *state,
                      const struct coll_choice *choice)
{
    struct coll_choice other = *choice;
    struct call call;
    int rc = call_make(&call, args, state);
    if (rc)
        return rc;
    if (!between_nodes(state, choice) || !written_run(args, state, choice, &rc)) {
        if (!other.algorithm->generate)
            other = choose_schedule(&call, true);
        rc = run_schedule(args, args, state, &call, &other);
    }
    call_free(&call);
    return rc;
}

static int greatest(const struct coll_args *args, struct coll_state *state, uint64_t *word, int words)
{
    const struct coll_side side = {.buf = word, .count = words, .type = dtype_from(MPI_UINT64_T)};
    const struct coll_args reduction = {.kind = COLL_ALLREDUCE,
                                        .name = args->name,
                                        .comm = args->comm,
                                        .send = side,
                                        .recv = side,
                                        .op = op_from(MPI_MAX),
                                        .in_place = true};
    const struct coll_choice choice = {.algorithm = algorithm_find(COLL_ALLREDUCE, "recursive_doubling")};
    struct call call;
    int rc = call_make(&call, &reduction, state);
    if (rc)
        return rc;
    rc = run_schedule(&reduction, args, state, &call, &choice);
    call_free(&call);
    return rc;
}

/* The next one need not ask which barrier is chosen, unless a trial may have an answer by then. */
static bool run_written(const struct coll_args *args, struct coll_state *state,
                        const struct coll_choice *choice, int *rc)
{
    const bool done = written_run(args, state, choice, rc);
    state->quick = done && state->written && !debug_coll && written_is_quick(state->written) &&
                   (choice->named || state->picked.algorithm || !trial_wanted());
    return done;
}

/* The barrier that a trial has found, without asking the rules. */
static bool picked_barrier(const struct coll_args *args, struct coll_state *state, int *rc)
{
    if (unlikely(debug_coll) || coll_is_forced(COLL_BARRIER) || !coll_takes_trials() ||
        !between_nodes(state, &state->picked))
        return false;
    return run_written(args, state, &state->picked, rc);
}

static const struct trial_means trial_means = {.barrier = barrier_by, .greatest = greatest};

/* ---- and one of sizes ---- */

static int run_by(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice)
{
    struct call call;
    int rc = call_make(&call, args, state);
    if (rc)
        return rc;
    rc = run_schedule(args, args, state, &call, choice);
    call_free(&call);
    return rc;
}

/* By the rules, or by what trials of sizes found. */
static int plan(const struct coll_args *args, struct coll_state *state, bool found, struct coll_choice *out)
{
    struct call call;
    int rc = call_make(&call, args, state);
    if (rc)
        return rc;
    *out = found ? best_schedule(args, state, &call, true) : choose_schedule(&call, true);
    call_free(&call);
    return 0;
}

static int rules_of(const struct coll_args *args, struct coll_state *state, struct coll_choice *out)
{
    return plan(args, state, false, out);
}

static const struct size_means size_means = {.run = run_by, .rules = rules_of, .greatest = greatest};

/* Tries, now and then, and takes what was found. */
static int choose_by_size(const struct coll_args *args, struct coll_state *state, struct call *call,
                          struct coll_choice *choice)
{
    int rc = size_trial_step(args, state, call, &size_means, choice);
    size_trial_choose(args, state, call, choice);
    return rc;
}

/* ---- multicast ---- */

static bool run_multicast(const struct coll_args *args, struct coll_state *state, const struct call *call,
                          const struct coll_choice *choice, int *rc)
{
    switch (args->kind) {
    case COLL_BCAST:
        return multicast_run(args, state, call, choice, rc);
    case COLL_ALLGATHER:
        return multicast_allgather(args, state, call, rc);
    case COLL_ALLREDUCE:
        return multicast_allreduce(args, state, call, rc);
    default:
        return false;
    }
}

static int run_one_way(const struct coll_args *args, struct coll_state *state,
                       const struct coll_choice *choice, bool *went)
{
    struct call call;
    int rc = call_make(&call, args, state);
    if (rc)
        return rc;
    *went = !choice || run_multicast(args, state, &call, choice, &rc);
    if (!choice) {
        const struct coll_choice rules = best_schedule(args, state, &call, true);
        rc = run_schedule(args, args, state, &call, &rules);
    }
    call_free(&call);
    return rc;
}

static int best_of(const struct coll_args *args, struct coll_state *state, struct coll_choice *out)
{
    return plan(args, state, true, out);
}

static const struct multicast_means multicast_means = {
    .run = run_one_way, .rules = best_of, .greatest = greatest};

/* Multicast, if it is faster. Whether it is, only blocking calls find out. */
static int choose_multicast(const struct coll_args *args, struct coll_state *state, struct call *call,
                            bool blocking, struct coll_choice *choice)
{
    const bool may_try = blocking && (choice->named || !size_trial_is_on(state, args->kind));
    int rc = may_try ? multicast_trial_step(args, state, &multicast_means, choice) : 0;
    if (!rc && !multicast_trial_won(state, args->kind, call->where.bytes, choice))
        *choice = best_schedule(args, state, call, blocking);
    return rc;
}

/* A reduction that ended because a process died: whoever was to have the result has its own part of it. */
static __attribute__((cold, noinline)) int fail(const struct coll_args *args, int rc)
{
    const bool root = args->kind == COLL_ALLREDUCE ||
                      (args->kind == COLL_REDUCE && args->root == args->comm->rank && !args->comm->remote);
    if (rc == MPIX_ERR_PROC_FAILED && root && !args->in_place)
        dt_copy(args->send.buf, args->send.count, args->send.type, args->recv.buf, args->send.count,
                args->send.type);
    return rc;
}

int coll_run(const struct coll_args *args)
{
    struct coll_state *state;
    struct call call;
    int rc = coll_state(args->comm, &state);
    if (unlikely(rc))
        return fail(args, rc);
    page_comm_count(state->page);
    if (shared_short(args, state, &rc))
        return rc;
    page_comm_kind(state->page, args->kind);
    if (state->quick && args->kind == COLL_BARRIER && written_quick(args, state, &rc))
        return likely(rc == 0) ? 0 : fail(args, rc);
    if (state->picked.algorithm && args->kind == COLL_BARRIER && picked_barrier(args, state, &rc))
        return rc;
    rc = call_make(&call, args, state);
    if (rc)
        return rc;
    if (unlikely(debug_coll))
        rc = debug_check(args, &call, true);
    if (!rc) {
        struct coll_choice choice = coll_select(&call.shape, &call.where, true);
        bool done = args->kind == COLL_BARRIER && state->nodes &&
                    trial_barrier(args, state, &trial_means, &choice, &rc);
        if (state->nodes && !done) {
            rc = choose_by_size(args, state, &call, &choice);
            done = rc != 0;
        }
        if (!done && unlikely(multicast_trial_wants(state, &choice))) {
            rc = choose_multicast(args, state, &call, true, &choice);
            done = rc != 0;
        }
        if (!done && (choice.algorithm->needs & NEED_NODE)) {
            done = shared_run(args, state, &call, &rc);
            if (!done) {
                call.where.one_node = false;
                choice = coll_select(&call.shape, &call.where, true);
            }
        }
        if (!done && between_nodes(state, &choice)) {
            done = args->kind == COLL_BARRIER ? run_written(args, state, &choice, &rc)
                                              : run_multicast(args, state, &call, &choice, &rc);
            if (!done)
                choice = choose_schedule(&call, true);
        }
        if (!done)
            rc = run_schedule(args, args, state, &call, &choice);
    }
    call_free(&call);
    return likely(rc == 0) ? 0 : fail(args, rc);
}

/* A call by nodes has a request of its own: *other; else *out. */
static int make_by_nodes(const struct coll_args *args, struct coll_state *state, const struct call *call,
                         const struct coll_choice *choice, enum coll_form form, struct request **other)
{
    struct written_run *barrier = NULL;
    int rc = 0;
    if (args->kind == COLL_ALLGATHER || args->kind == COLL_ALLREDUCE)
        return 0; /* by multicast they block */
    if (args->kind == COLL_BCAST) {
        multicast_make(args, state, call, choice, form, other, &rc);
        return rc;
    }
    written_make(args, state, choice, form, &barrier, &rc);
    *other = barrier ? &barrier->base : NULL;
    return rc;
}

static int make(const struct coll_args *args, enum coll_form form, struct coll_request **out,
                struct request **other)
{
    struct coll_state *state;
    struct call call;
    int rc = coll_state(args->comm, &state);
    if (!rc)
        rc = call_make(&call, args, state);
    if (rc)
        return rc;
    if (unlikely(debug_coll))
        rc = debug_check(args, &call, false);
    if (!rc) {
        struct coll_choice choice = coll_select(&call.shape, &call.where, false);
        if (args->kind == COLL_BARRIER)
            trial_choose(state, &choice);
        else if (state->nodes)
            size_trial_choose(args, state, &call, &choice);
        if (multicast_trial_wants(state, &choice))
            rc = choose_multicast(args, state, &call, false, &choice);
        if (between_nodes(state, &choice)) {
            rc = make_by_nodes(args, state, &call, &choice, form, other);
            if (!rc && !*other)
                choice = choose_schedule(&call, false);
        }
        if (!rc && !*other)
            rc = prepare(args, state, &call, &choice, out);
    }
    call_free(&call);
    if (rc || *other)
        return rc;
    rc = coll_request_hold(*out, args);
    if (rc)
        request_free(&(*out)->base);
    return rc;
}

int coll_start(const struct coll_args *args, struct request **out)
{
    struct coll_request *r;
    struct request *other = NULL;
    int rc = make(args, FORM_NONBLOCKING, &r, &other);
    if (rc)
        return rc;
    if (other) {
        *out = other;
        return 0;
    }
    coll_request_number(r, args, FORM_NONBLOCKING);
    page_comm_count(r->state->page);
    page_comm_kind(r->state->page, args->kind);
    r->number = r->state->page->calls;
    coll_request_begin(r);
    *out = &r->base;
    return 0;
}

/* Requests may be started in different orders at different ranks, but are made in the same one: that numbers
 * them. */
int coll_init(const struct coll_args *args, struct request **out)
{
    struct coll_request *r;
    struct request *other = NULL;
    int rc = make(args, FORM_PERSISTENT, &r, &other);
    if (rc)
        return rc;
    if (other) {
        *out = other;
        return 0;
    }
    coll_request_number(r, args, FORM_PERSISTENT);
    r->number = 0; /* started in any order */
    r->base.ops = &coll_persistent_ops;
    r->base.persistent = true;
    r->base.active = false;
    atomic_store_explicit(&r->base.complete, 1, memory_order_relaxed);
    *out = &r->base;
    return 0;
}

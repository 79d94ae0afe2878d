/* shared_executor.c: the executor of blocking calls through the shared block of a node.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/counter.h"
#include "coll/device_collectives.h"
#include "coll/shm/shared_transfer.h"

static bool shared_is_applicable(const struct call *call, const struct coll_choice *choice)
{
    return (choice->algorithm->needs & NEED_NODE) && call->form == FORM_BLOCKING;
}

static bool must_report_device(const struct call *call)
{
    return call->where.bytes >= coll_device_min_bytes(call->args->comm->size) &&
           call->args->kind != COLL_BARRIER;
}

/* Declines calls on GPU memory if the data of all ranks is there. A rank without the shared block does not
 * decline; the block is opened at all ranks in the same call. */
static bool shared_declines_device(struct call *call)
{
    if (!call->state->shared || !must_report_device(call))
        return false;
    call->device_posted = true;
    return shared_all_on_device(call->state->shared, true);
}

static bool shared_run(struct call *call, const struct coll_choice *choice, struct request **request, int *rc)
{
    const struct coll_args *args = call->args;
    struct coll_state *state = call->state;
    struct shared *b = state->shared;
    (void)choice, (void)request;
    if (unlikely(!b) && state->shared_tried)
        return false;
    const uint32_t number = coll_number_call(state, args, FORM_BLOCKING, COLL_PAST_OTHER);
    if (unlikely(!b)) {
        b = shared_open(state, args, number);
        if (!b)
            return false;
        shared_cache_selection(state);
    }
    if (must_report_device(call) && !call->device_posted)
        shared_all_on_device(b, false);
    counter_add(&shared_runs, 1);
    shared_enter_call(b, args->kind, args->root, call->where.bytes, number);
    if (args->kind == COLL_BARRIER)
        shared_barrier(b);
    else if (call->where.bytes == 0)
        return true;
    else if (!(kind_reduces(args->kind) ? shared_combine(b, args, call, rc)
                                        : shared_move_data(b, args, call->where.bytes, rc)))
        return false;
    if (unlikely(b->mismatched_rank))
        *rc = shared_mismatch(b);
    else
        b->mismatch_reported = false;
    return true;
}

static void shared_reselect(struct coll_state *state)
{
    memset(state->short_limit, 0, sizeof(state->short_limit));
}

const struct coll_executor shared_executor = {.name = "shared memory",
                                              .fits = shared_is_applicable,
                                              .run = shared_run,
                                              .declines_device = shared_declines_device,
                                              .reselect = shared_reselect,
                                              .close = shared_close};

/* coll.c: the common path of blocking, nonblocking and persistent calls: describe the call, select an
 * algorithm by rules and measurements, execute. Repeated short calls use a selection that the communicator
 * has cached.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/coll_debug.h"
#include "coll/device_collectives.h"
#include "coll/executor.h"
#include "coll/select/tuning.h"

/* Handles a reduction that failed because a process died: copies this rank's data to the result. */
static __attribute__((cold, noinline)) int fail_reduction(const struct coll_args *args, int rc)
{
    const bool root = args->kind == COLL_ALLREDUCE ||
                      (args->kind == COLL_REDUCE && args->root == args->comm->rank && !args->comm->remote);
    if (rc == MPIX_ERR_PROC_FAILED && root && !args->in_place)
        dt_copy(args->send.buf, args->send.count, args->send.type, args->recv.buf, args->send.count,
                args->send.type);
    return rc;
}

static int coll_execute(const struct coll_args *args, struct coll_state *state, enum coll_form form,
                        bool on_device, struct request **request)
{
    struct call call;
    int rc = call_make(&call, args, state, form);
    if (rc)
        return rc;
    call.on_device = on_device;
    call.device_direct = on_device && coll_device_is_direct(args);
    if (unlikely(debug_coll))
        rc = debug_check(args, &call, form == FORM_BLOCKING);
    if (!rc) {
        struct coll_choice choice = coll_select(&call.shape, &call.where, form == FORM_BLOCKING);
        if (unlikely(args->kind == COLL_BARRIER && state->selected_barrier && form == FORM_BLOCKING))
            choice = *state->selected_barrier;
        rc = tuning_select(&call, &choice);
        if (!rc)
            rc = executor_run(&call, &choice, request);
    }
    call_free(&call);
    return rc;
}

int coll_run(const struct coll_args *args)
{
    struct coll_state *state;
    const bool on_device = coll_is_on_device(args);
    int rc = coll_state(args->comm, &state);
    if (unlikely(rc))
        return fail_reduction(args, rc);
    page_comm_count(state->page);
    coll_cached *const cached = state->cached[args->kind];
    if (likely(cached != NULL && !on_device) && cached(args, state, &rc))
        return likely(rc == 0) ? 0 : fail_reduction(args, rc);
    page_comm_record_kind(state->page, args->kind);
    rc = coll_execute(args, state, FORM_BLOCKING, on_device, NULL);
    return likely(rc == 0) ? 0 : fail_reduction(args, rc);
}

static int coll_make_request(const struct coll_args *args, enum coll_form form, struct request **out)
{
    struct coll_state *state;
    int rc = coll_state(args->comm, &state);
    return rc ? rc : coll_execute(args, state, form, coll_is_on_device(args), out);
}

int coll_start(const struct coll_args *args, struct request **out)
{
    return coll_make_request(args, FORM_NONBLOCKING, out);
}

/* Creates a persistent request. Ranks may start requests in different orders, but create them in the same
 * order, which defines their numbers. */
int coll_init(const struct coll_args *args, struct request **out)
{
    return coll_make_request(args, FORM_PERSISTENT, out);
}

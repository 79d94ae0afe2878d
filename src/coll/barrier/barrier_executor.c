/* barrier_executor.c: MPI_Barrier, MPI_Ibarrier and MPI_Barrier_init of ranks on several nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/objmem.h"
#include "base/tunable.h"
#include "coll/barrier/barrier_internal.h"
#include "coll/coll_debug.h"

static LABORATORY_INT(
    before, "BARRIER_BEFORE", 8, 0, 255,
    "Barriers of a communicator by messages before its barrier between nodes is opened: many "
    "communicators live for one or two barriers only. 0: at the first barrier. Must be the "
    "same on all ranks.");

static bool hbarrier_is_applicable(const struct call *call, const struct coll_choice *choice)
{
    return call->args->kind == COLL_BARRIER && call->where.nodes &&
           ((choice->algorithm->needs & NEED_NODES) || choice->by_node);
}

static int make_run_tag(struct coll_state *state, const struct call *call)
{
    return coll_make_tag(COLL_BARRIER, 0, call->form, coll_number_call(state, call->args, call->form, 0));
}

static bool choices_are_equal(const struct coll_choice *a, const struct coll_choice *b)
{
    return a->algorithm == b->algorithm && a->by_node == b->by_node && a->named == b->named &&
           memcmp(a->parameter, b->parameter, sizeof(a->parameter)) == 0;
}

/* Returns the inter-node barrier for this call, or NULL if it is not opened yet or failed to open. Ranks
 * may call MPI_Barrier and MPI_Ibarrier in different orders and agree on each kind of call separately, so
 * each kind has its own barrier. Barrier algorithms that the user names share one, because switch groups,
 * barrier networks and multicast groups are scarce. */
static struct hbarrier *get_hbarrier(struct coll_state *state, const struct call *call,
                                     const struct coll_choice *choice, int *rc)
{
    const enum coll_form form =
        call->form == FORM_NONBLOCKING && !choice->named ? FORM_NONBLOCKING : FORM_BLOCKING;
    struct hbarrier **w = &state->hbarrier[form];
    if (unlikely(*w && !choices_are_equal(&(*w)->choice, choice))) {
        hbarrier_release(*w); /* all ranks change the choice at the same call */
        *w = NULL;
        state->cached[COLL_BARRIER] = NULL;
    }
    if (unlikely(!*w)) {
        if ((!choice->named || choice->lazy) && state->barriers_before[form] < before.value) {
            state->barriers_before[form]++;
            return NULL;
        }
        *rc = hbarrier_open(state, choice, w);
    }
    return *w;
}

/* True if the next barrier uses multicast. The first one uses messages, which also carry the setup data. */
static bool uses_multicast(struct hbarrier *w)
{
    return w->calls++ > 0 && w->multicast;
}

static int run_blocking(const struct call *call, struct hbarrier *w)
{
    struct coll_state *state = call->state;
    struct hbarrier_run r;
    if (unlikely(w->may_multicast && !w->opened_multicast && w->calls > 0)) {
        const int rc = hbarrier_open_multicast(w);
        if (rc)
            return rc;
    }
    r.w = w;
    r.comm = state->comm;
    r.lane = r.pending = r.error = 0;
    r.tree = uses_multicast(w);
    r.over = r.crossed = false;
    r.method = METHOD_SETUP; /* until hbarrier_advance() starts the run */
    r.tag = make_run_tag(state, call);
    list_append(&w->lane[0].runs, &r.link);
    hbarrier_advance(&r);
    if (!r.over)
        hbarrier_wait(&r);
    if (!debug_coll && hbarrier_can_run_fast(w))
        state->cached[COLL_BARRIER] = hbarrier_run_fast;
    return r.error;
}

/* ---- requests ---- */

static int progress_hook(struct net_hook *hook)
{
    struct hbarrier_run *r = container_of(hook, struct hbarrier_run, hook);
    if (!hbarrier_can_advance(r))
        return 0;
    hbarrier_advance(r);
    if (!r->over)
        return 1;
    list_remove(&r->hook.link);
    r->w->net->unrung--;
    request_complete(&r->base, r->error);
    return 1;
}

/* Starts a run. RDMA-written flags ring no doorbell, and a rank that waits for this request does not poll
 * them before it sleeps, so net->unrung limits its sleep to a short time. */
static void barrier_begin(struct hbarrier_run *r)
{
    struct net *net = r->w->net;
    r->pending = r->error = 0;
    r->over = false;
    atomic_store_explicit(&r->base.complete, 0, memory_order_relaxed);
    list_append(&hbarrier_get_lane(r)->runs, &r->link);
    hbarrier_advance(r);
    if (r->over) {
        request_complete(&r->base, r->error);
        return;
    }
    net->unrung++;
    list_append(&net->hooks, &r->hook.link);
}

static int barrier_start(struct request *base)
{
    base->active = true;
    barrier_begin(container_of(base, struct hbarrier_run, base));
    return 0;
}

static void free_run(struct request *base)
{
    struct hbarrier_run *r = container_of(base, struct hbarrier_run, base);
    hbarrier_release(r->w);
    objmem_free(r);
}

const struct request_ops hbarrier_ops = {.name = "barrier", .release = free_run};
const struct request_ops hbarrier_persistent_ops = {
    .name = "persistent barrier", .start = barrier_start, .release = free_run};

/* True if a lane is free for a new persistent barrier. Persistent barriers may be started in any order, so
 * none of them can be the first barrier, which carries the setup. */
static bool has_free_lane(const struct hbarrier *w)
{
    return w->calls > 0 && w->lanes < HBARRIER_LANES;
}

static int make_request(const struct call *call, struct hbarrier *w, struct request **request)
{
    struct coll_state *state = call->state;
    const bool persistent = call->form == FORM_PERSISTENT;
    struct hbarrier_run *r = objmem_new(sizeof(*r));
    if (!r)
        return err_set(MPI_ERR_NO_MEM, "out of memory for the request of a barrier");
    *r = (struct hbarrier_run){.w = w, .comm = state->comm, .hook.progress = progress_hook};
    request_setup(&r->base, state->comm->proc->p2p, persistent ? &hbarrier_persistent_ops : &hbarrier_ops);
    r->base.comm = comm_retain(state->comm);
    w->refs++;
    list_init(&r->hook.link);
    r->tag = make_run_tag(state, call);
    if (persistent) {
        r->lane = w->lanes++;
        r->base.persistent = true;
        r->base.active = false;
        atomic_store_explicit(&r->base.complete, 1, memory_order_relaxed);
    } else {
        r->tree = uses_multicast(w);
        page_comm_count(state->page);
        page_comm_record_kind(state->page, COLL_BARRIER);
        r->number = state->page->calls;
        barrier_begin(r);
    }
    *request = &r->base;
    return 0;
}

static bool hbarrier_run(struct call *call, const struct coll_choice *choice, struct request **request,
                         int *rc)
{
    struct hbarrier *w = get_hbarrier(call->state, call, choice, rc);
    if (!w || (call->form == FORM_PERSISTENT && !has_free_lane(w)))
        return *rc != 0;
    *rc = request ? make_request(call, w, request) : run_blocking(call, w);
    return true;
}

static void hbarrier_reselect(struct coll_state *state)
{
    if (state->nodes)
        state->cached[COLL_BARRIER] = NULL;
}

const struct coll_executor hbarrier_executor = {.name = "barrier between nodes",
                                                .fits = hbarrier_is_applicable,
                                                .run = hbarrier_run,
                                                .reselect = hbarrier_reselect,
                                                .close = hbarrier_close};

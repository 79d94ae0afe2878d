/* bcast.c: runs broadcasts by multicast. On the root's node the data is sent to the leader, which multicasts
 * the data; on other nodes the leader receives the data and broadcasts it within the node. A root returns
 * when its packets are in the window: acknowledgements arrive in the background [Liu04 7.2.2].
 *
 * Blocking broadcasts of a communicator run one after the other in the order of the calls, and so do
 * nonblocking ones: each of the two forms has a channel of the multicast group. Persistent broadcasts may be
 * started in different orders at the ranks, so each has its own channel and its own persistent broadcast
 * within the node, and is not queued.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/counter.h"
#include "base/objmem.h"
#include "coll/multicast/multicast_internal.h"

static COUNTER(runs, "coll_bcast_multicast", "Broadcasts between nodes by multicast.");

enum { CHANNEL_BLOCKING, CHANNEL_NONBLOCKING, CHANNEL_PERSISTENT };

enum stage { STAGE_WAITING, STAGE_SEND, STAGE_FLUSH, STAGE_RECEIVE, STAGE_NODE, STAGE_OVER };

struct multicast_run {
    struct request base;  /* first; unused by blocking calls */
    struct net_hook hook; /* linked while a nonblocking or persistent call is in progress */
    struct list link;     /* in the queue *turn */
    struct list *turn;    /* queue: multicast.runs or .requests, which run in order; NULL: persistent */
    struct multicast *m;
    struct comm *comm;
    enum stage stage;
    bool blocking, basic, is_root;
    bool on_node; /* the root is on this node */
    uint32_t channel;
    struct net_group_want want; /* receive of the leader if the root is on another node */
    int place;                  /* root of the broadcast within the node */
    char *data;
    size_t bytes, at;      /* total bytes; bytes sent so far */
    struct request *local; /* broadcast within the node; NULL: none, or blocking */
    int error;
    /* If the user's buffer is not contiguous: packed copy, and the user's buffer. */
    void *staged, *user;
    MPI_Count count;
    struct dtype *type;
};

static void multicast_record_error(struct multicast_run *r, int rc)
{
    if (rc && !r->error)
        r->error = rc;
}

/* Returns the stage after the current one. */
static enum stage multicast_next_stage(const struct multicast_run *r)
{
    const bool leads = r->m->group != NULL, first = r->place == 0;
    switch (r->stage) {
    case STAGE_WAITING:
        if (!leads)
            return STAGE_NODE;
        return !r->on_node ? STAGE_RECEIVE : first ? STAGE_SEND : STAGE_NODE;
    case STAGE_SEND:
        return r->basic ? STAGE_FLUSH : first ? STAGE_NODE : STAGE_OVER;
    case STAGE_FLUSH:
        return first ? STAGE_NODE : STAGE_OVER;
    case STAGE_RECEIVE:
        return STAGE_NODE;
    case STAGE_NODE:
        return leads && r->on_node && !first ? STAGE_SEND : STAGE_OVER;
    default:
        return STAGE_OVER;
    }
}

/* ---- within the node ---- */

static struct coll_args make_node_broadcast(const struct multicast_run *r)
{
    return (struct coll_args){.kind = COLL_BCAST,
                              .name = r->turn ? "MPI_Bcast" : "MPI_Bcast_init",
                              .comm = r->m->node,
                              .recv = make_bytes_side(r->data, r->bytes),
                              .root = r->place};
}

static void start_node_broadcast(struct multicast_run *r)
{
    const struct coll_args args = make_node_broadcast(r);
    if (args.comm->size == 1)
        return;
    if (!r->turn)
        multicast_record_error(r, r->local->ops->start(r->local));
    else
        multicast_record_error(r, r->blocking ? coll_run(&args) : coll_start(&args, &r->local));
}

static bool node_done(struct multicast_run *r)
{
    if (!r->local)
        return true;
    if (!atomic_load_explicit(&r->local->complete, memory_order_acquire))
        return false;
    multicast_record_error(r, r->local->error);
    if (!r->turn)
        return true;
    request_free(r->local);
    r->local = NULL;
    return true;
}

/* ---- between nodes ---- */

static bool multicast_receive(struct multicast_run *r)
{
    if (!r->want.complete)
        return false;
    if (r->want.total != r->bytes)
        multicast_record_error(r, err_set(MPI_ERR_TRUNCATE,
                                          "a broadcast of %zu bytes was called for %zu bytes on this rank",
                                          r->want.total, r->bytes));
    return true;
}

/* Sends more of the data; true if all is sent. Only one call of the group sends at a time (m->sending). */
static bool multicast_send(struct multicast_run *r)
{
    struct multicast *m = r->m;
    if (m->sending && m->sending != r)
        return false;
    r->at += net_group_send(m->group, r->channel, r->data, r->at, r->bytes);
    m->sending = r->at == r->bytes ? NULL : r;
    return r->at == r->bytes;
}

static void multicast_enter_stage(struct multicast_run *r)
{
    if (r->stage == STAGE_RECEIVE)
        net_group_post_receive(r->m->group, &r->want);
    else if (r->stage == STAGE_NODE)
        start_node_broadcast(r);
}

static bool stage_done(struct multicast_run *r)
{
    switch (r->stage) {
    case STAGE_WAITING:
        return !r->turn || list_first(r->turn) == &r->link;
    case STAGE_SEND:
        return multicast_send(r);
    case STAGE_FLUSH:
        return net_group_is_idle(r->m->group);
    case STAGE_RECEIVE:
        return multicast_receive(r);
    case STAGE_NODE:
        return node_done(r);
    default:
        return false;
    }
}

/* Advances the broadcast without waiting; true if a stage was completed. */
static bool multicast_advance(struct multicast_run *r)
{
    bool moved = false;
    while (r->stage != STAGE_OVER && stage_done(r)) {
        r->stage = multicast_next_stage(r);
        moved = true;
        multicast_enter_stage(r);
    }
    return moved;
}

static void multicast_finish(struct multicast_run *r)
{
    if (r->staged && !r->is_root && !r->error)
        dt_unpack_all(r->type, r->count, r->user, r->staged, r->bytes);
    if (r->turn) {
        free(r->staged);
        list_remove(&r->link);
    }
    counter_add(&runs, 1);
}

/* ---- the calls ---- */

static int multicast_describe(struct multicast_run *r, const struct coll_args *args, struct multicast *m,
                              size_t bytes, const struct coll_choice *choice)
{
    const struct comm *c = args->comm;
    const struct coll_side *side = &args->recv;
    const uint32_t from = m->member_of[args->root];
    r->m = m;
    r->comm = args->comm;
    r->is_root = args->root == c->rank;
    r->basic = choice->parameter[PARAMETER_BASIC] != 0;
    r->on_node = from == m->member_of[c->rank];
    r->place = r->on_node ? m->place_of[args->root] : 0;
    r->bytes = bytes;
    r->data = side->buf;
    if (!side->type->contiguous) {
        r->staged = malloc(bytes);
        if (!r->staged)
            return err_set(MPI_ERR_NO_MEM, "out of memory to pack %zu bytes for a broadcast", bytes);
        r->data = r->staged;
        r->user = side->buf;
        r->count = side->count;
        r->type = side->type;
    }
    r->want =
        (struct net_group_want){.from = from, .channel = r->channel, .message = r->data, .length = r->bytes};
    return 0;
}

/* Starts the broadcast and advances it as far as possible. */
static void multicast_begin(struct multicast_run *r)
{
    r->stage = STAGE_WAITING;
    r->at = 0;
    r->error = 0;
    if (r->staged && r->is_root)
        dt_pack_all(r->type, r->count, r->user, r->staged);
    if (r->turn)
        list_append(r->turn, &r->link);
    multicast_advance(r);
}

/* True if the broadcast can advance. Checked before sleep, since a hook may have made progress. */
static bool can_advance(void *arg)
{
    const struct multicast_run *r = arg;
    switch (r->stage) {
    case STAGE_WAITING:
        return !r->turn || list_first(r->turn) == &r->link;
    case STAGE_SEND:
        return (!r->m->sending || r->m->sending == r) && net_group_can_send(r->m->group);
    case STAGE_FLUSH:
        return net_group_is_idle(r->m->group);
    case STAGE_RECEIVE:
        return r->want.complete;
    case STAGE_NODE:
        return !r->local || atomic_load_explicit(&r->local->complete, memory_order_acquire);
    default:
        return true;
    }
}

static bool run_blocking(const struct call *call, const struct coll_choice *choice, int *rc)
{
    const struct coll_args *args = call->args;
    struct multicast *m = multicast_get(call->state, call->where.bytes, choice, true, rc);
    if (!m)
        return *rc != 0;
    struct multicast_run r = {.blocking = true, .turn = &m->runs, .channel = CHANNEL_BLOCKING};
    coll_number_call(call->state, args, FORM_BLOCKING, COLL_PAST_OTHER);
    *rc = multicast_describe(&r, args, m, call->where.bytes, choice);
    if (*rc)
        return true;
    struct net_waiter waiter = {
        .ready = can_advance, .arg = &r, .awaited_kind = NET_MEMBERS, .awaited = args->comm};
    multicast_begin(&r);
    while (r.stage != STAGE_OVER) {
        net_wait_step(args->comm->proc->net, &waiter);
        multicast_advance(&r);
    }
    net_wait_end(args->comm->proc->net, &waiter);
    multicast_finish(&r);
    *rc = r.error;
    return true;
}

/* ---- requests ---- */

static int progress_hook(struct net_hook *hook)
{
    struct multicast_run *r = container_of(hook, struct multicast_run, hook);
    if (!multicast_advance(r))
        return 0;
    if (r->stage == STAGE_OVER) {
        list_remove(&r->hook.link);
        multicast_finish(r);
        request_complete(&r->base, r->error);
    }
    return 1;
}

static uint64_t multicast_next_deadline(struct net_hook *hook, uint64_t now)
{
    (void)now;
    return can_advance(container_of(hook, struct multicast_run, hook)) ? 0 : NET_FOREVER;
}

static void begin_request(struct multicast_run *r)
{
    multicast_begin(r);
    if (r->stage == STAGE_OVER) {
        multicast_finish(r);
        request_complete(&r->base, r->error);
    } else {
        list_append(&r->comm->proc->net->hooks, &r->hook.link);
    }
}

static int multicast_start(struct request *base)
{
    struct multicast_run *r = container_of(base, struct multicast_run, base);
    base->active = true;
    atomic_store_explicit(&base->complete, 0, memory_order_relaxed);
    begin_request(r);
    return 0;
}

static void free_run(struct request *base)
{
    struct multicast_run *r = container_of(base, struct multicast_run, base);
    if (r->type)
        dtype_release(r->type);
    if (!r->turn) {
        free(r->staged);
        if (r->local)
            request_free(r->local);
        r->m->persistent--;
    }
    objmem_free(r);
}

static const struct request_ops multicast_ops = {.name = "broadcast by multicast", .release = free_run};
static const struct request_ops persistent_ops = {
    .name = "persistent broadcast by multicast", .start = multicast_start, .release = free_run};

/* Prepares a persistent broadcast and its part within the node: both may be started any number of times,
 * in different orders at the ranks. */
static int make_persistent(struct multicast_run *r)
{
    const struct coll_args args = make_node_broadcast(r);
    r->base.ops = &persistent_ops;
    r->base.persistent = true;
    r->base.active = false;
    atomic_store_explicit(&r->base.complete, 1, memory_order_relaxed);
    return args.comm->size > 1 ? coll_init(&args, &r->local) : 0;
}

static bool make_request(const struct call *call, const struct coll_choice *choice, struct request **out,
                         int *rc)
{
    const struct coll_args *args = call->args;
    struct coll_state *state = call->state;
    const enum coll_form form = call->form;
    const bool persistent = form == FORM_PERSISTENT;
    struct multicast *m = multicast_get(state, call->where.bytes, choice, persistent, rc);
    if (!m)
        return *rc != 0;
    struct multicast_run *r = objmem_new(sizeof(*r));
    if (!r) {
        *rc = err_set(MPI_ERR_NO_MEM, "out of memory for the request of a broadcast");
        return true;
    }
    *r = (struct multicast_run){.hook = {.progress = progress_hook, .rests = multicast_next_deadline}};
    r->turn = persistent ? NULL : &m->requests;
    r->channel = persistent ? CHANNEL_PERSISTENT + m->channels++ : CHANNEL_NONBLOCKING;
    coll_number_call(state, args, form, COLL_PAST_OTHER);
    *rc = multicast_describe(r, args, m, call->where.bytes, choice);
    if (*rc) {
        objmem_free(r);
        return true;
    }
    request_setup(&r->base, state->comm->proc->p2p, &multicast_ops);
    r->base.comm = comm_retain(args->comm);
    if (r->type)
        dtype_retain(r->type);
    list_init(&r->hook.link);
    if (persistent) {
        m->persistent++;
        *rc = make_persistent(r);
        if (*rc) {
            request_free(&r->base);
            return true;
        }
    } else {
        page_comm_count(state->page);
        page_comm_record_kind(state->page, args->kind);
        begin_request(r);
    }
    *out = &r->base;
    return true;
}

bool multicast_bcast(const struct call *call, const struct coll_choice *choice, struct request **request,
                     int *rc)
{
    return request ? make_request(call, choice, request, rc) : run_blocking(call, choice, rc);
}

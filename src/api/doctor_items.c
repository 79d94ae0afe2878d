/* doctor_items.c: from a waiter to the receives, sends, collectives and probes that it waits for, with the
 * communicators they belong to.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "api/doctor_items.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/call_stack.h"
#include "coll/barrier/hbarrier.h"
#include "coll/sched/exec.h"
#include "coll/shm/block.h"
#include "obj/context.h"
#include "obj/create.h"
#include "p2p/request_view.h"

enum { FRAMES = 32 };

void doctor_write_caller(struct page_wait *out)
{
    void *frames[FRAMES];
    Dl_info there;
    const char *name = "";
    const int count = backtrace(frames, FRAMES);
    const int mpi = frames_find_mpi_call(frames, 0, count, &name);
    snprintf(out->call, sizeof(out->call), "%s", mpi < 0 ? "" : name);
    const int caller = mpi < 0 ? -1 : frames_find_caller(frames, mpi, count);
    if (caller < 0 || !dladdr((const char *)frames[caller] - 1, &there) || !there.dli_fname)
        return;
    /* dladdr() returns the program's own name as in argv[0], so its path is read from /proc. A path that does
     * not fit is omitted. */
    if (there.dli_fname[0] != '/') {
        const ssize_t n = readlink("/proc/self/exe", out->caller.module, sizeof(out->caller.module) - 1);
        out->caller.module[n > 0 ? n : 0] = '\0';
    } else if (strlen(there.dli_fname) < sizeof(out->caller.module)) {
        strcpy(out->caller.module, there.dli_fname);
    }
    out->caller.offset = (uint64_t)((char *)frames[caller] - (char *)there.dli_fbase);
    snprintf(out->caller.symbol, sizeof(out->caller.symbol), "%s", there.dli_sname ? there.dli_sname : "");
}

/* Writes the job ranks in the order of the group, as runs of equal stride. */
static void write_members(struct page_group *out, const struct group *g)
{
    for (int i = 0; i < g->size;) {
        if (out->nruns == PAGE_RUNS) {
            out->nruns = PAGE_RUNS + 1;
            return;
        }
        struct page_run *run = &out->runs[out->nruns++];
        run->first = group_job_rank(g, i);
        run->count = 1;
        run->stride = i + 1 < g->size ? (int32_t)(group_job_rank(g, i + 1) - run->first) : 1;
        while (++i < g->size && group_job_rank(g, i) == run->first + run->count * (uint32_t)run->stride)
            run->count++;
    }
}

/* Returns the index of the communicator's description, added if absent; PAGE_GROUPS: no room. */
static uint8_t group_index(struct page_wait *w, uint32_t context, int rank, const struct group *g,
                           const char *label)
{
    for (int i = 0; i < PAGE_GROUPS; i++) {
        struct page_group *out = &w->groups[i];
        if (out->size == 0 && !out->label[0]) {
            out->context = context;
            out->rank = rank;
            out->size = g->size;
            snprintf(out->label, sizeof(out->label), "%s", label);
            write_members(out, g);
            return (uint8_t)i;
        }
        if (out->context == context)
            return (uint8_t)i;
    }
    return PAGE_GROUPS;
}

/* Returns the index of the communicator's description. Its members are the processes that messages are sent
 * to and received from. */
static uint8_t comm_index(struct page_wait *w, const struct comm *c)
{
    return c ? group_index(w, c->context, c->rank, c->remote ? c->remote : c->group, comm_label(c))
             : PAGE_GROUPS;
}

static struct page_item *add_item(struct page_wait *w, enum page_kind kind)
{
    static struct page_item unwanted;
    w->total++;
    struct page_item *item = w->nitems < PAGE_ITEMS ? &w->items[w->nitems++] : &unwanted;
    *item = (struct page_item){
        .kind = (uint8_t)kind, .group = PAGE_GROUPS, .peer = PAGE_UNKNOWN, .rank = PAGE_UNKNOWN};
    return item;
}

static void add_named_object(struct page_wait *w, const struct net_named *named)
{
    struct page_item *item = add_item(w, named->is_lock ? PAGE_LOCK : PAGE_NAMED);
    item->peer = named->rank == NET_NOBODY ? PAGE_UNKNOWN : (int32_t)named->rank;
    for (uint8_t i = 0; i < PAGE_GROUPS && item->group == PAGE_GROUPS; i++) {
        struct page_group *g = &w->groups[i];
        if (g->size > 0 || (g->label[0] && strcmp(g->label, named->name) != 0))
            continue;
        snprintf(g->label, sizeof(g->label), "%s", named->name);
        item->group = i;
    }
}

static int32_t items_wildcard(int32_t value, int32_t wildcard)
{
    return value == wildcard ? PAGE_ANY : value;
}

static void add_envelope(struct proc *p, struct page_wait *w, struct page_item *item, struct envelope env)
{
    const struct comm *c = env.context & 1 ? NULL : comm_of_context(p, env.context);
    item->context = (uint32_t)env.context;
    item->tag = items_wildcard(env.tag, MPI_ANY_TAG);
    item->rank = items_wildcard(env.source, MPI_ANY_SOURCE);
    item->peer = item->rank == PAGE_ANY ? PAGE_ANY : PAGE_UNKNOWN;
    item->group = comm_index(w, c);
    if (c && env.source >= 0 && env.source < comm_peers(c))
        item->peer = (int32_t)group_job_rank(c->remote ? c->remote : c->group, env.source);
}

static void add_collective(struct page_wait *w, const struct comm *c, uint64_t number, int kind, int root,
                           uint64_t bytes)
{
    struct page_item *item = add_item(w, PAGE_COLL);
    item->context = c->context;
    item->group = comm_index(w, c);
    item->number = number;
    item->coll = (uint8_t)kind;
    item->rank = root;
    item->bytes = bytes;
    if (c->remote && item->group < PAGE_GROUPS) /* both groups take part: the list is incomplete */
        w->groups[item->group].nruns = PAGE_RUNS + 1;
}

static bool has_root(int kind)
{
    return kind == COLL_BCAST || kind == COLL_GATHER || kind == COLL_SCATTER || kind == COLL_REDUCE;
}

/* Adds a wait for all members of a communicator: a collective in shared memory, or an agreement. */
static void add_members(struct page_wait *w, const struct comm *c)
{
    const struct coll_state *state = c->coll;
    if (!state) {
        add_named_object(w, &(struct net_named){"other members of a communicator", NET_NOBODY, false});
        return;
    }
    const uint64_t what = state->shared ? state->shared->call : 0;
    const int noted = page_comm_get_kind(state->page, state->page->calls);
    const int kind = noted >= 0 ? noted : (int)(what >> 56) - 1;
    const bool known = kind >= 0 && what >> 56 == (uint64_t)kind + 1;
    add_collective(w, c, state->page->calls, kind,
                   known && has_root(kind) ? (int)(what >> 40 & 0xffff) : PAGE_UNKNOWN,
                   known ? what & ~SHARED_WHAT_KIND : 0);
}

static void add_message(struct proc *p, struct page_wait *w, const struct p2p_view *v)
{
    const struct comm *c = comm_of_context(p, v->env.context);
    if (v->env.context & 1) { /* a message of the library: part of the collective that the rank is in */
        if (c && v->env.tag < ASSEMBLY_TAG_FIRST)
            add_members(w, c);
        else
            add_named_object(w, &(struct net_named){v->send ? "receive for a message of the library"
                                                            : "message of the library",
                                                    v->peer == VIEW_NO_PEER ? NET_NOBODY : v->peer, false});
        return;
    }
    struct page_item *item = add_item(w, v->send ? PAGE_SEND : PAGE_RECV);
    add_envelope(p, w, item, v->env);
    item->step = (uint8_t)v->step;
    item->bytes = v->bytes;
    if (v->peer == VIEW_NO_PEER)
        return;
    item->peer = (int32_t)v->peer;
    if (v->send && c) /* the envelope contains the sender's rank, not the receiver's */
        item->rank = group_find(c->remote ? c->remote : c->group, v->peer);
}

static void add_creation(struct page_wait *w, const struct creation *c)
{
    const struct gang *gang = &c->agree.round.gang;
    struct page_item *item = add_item(w, PAGE_CREATION);
    item->context = gang->context & ~1u;
    item->tag = gang->tag;
    item->number = (uint64_t)(uint32_t)gang->tag;
    item->group = group_index(w, item->context, gang->members->rank, gang->members,
                              c->parent ? comm_label(c->parent) : "no communicator");
    if (gang->bridged && item->group < PAGE_GROUPS) /* both groups take part: the list is incomplete */
        w->groups[item->group].nruns = PAGE_RUNS + 1;
}

static void add_request(struct proc *p, struct page_wait *w, const struct request *r)
{
    struct p2p_view v;
    int count = 0;
    if (r->complete)
        return;
    struct request *const *parts = r->ops->parts ? r->ops->parts(r, &count) : NULL;
    for (int i = 0; i < count; i++)
        if (parts[i])
            add_request(p, w, parts[i]);
    if (count > 0)
        return;
    const struct creation *creation = creation_from_request(r);
    if (p2p_view_request(r, &v)) {
        add_message(p, w, &v);
    } else if (r->ops == &coll_request_ops || r->ops == &coll_persistent_ops) {
        const struct coll_request *c = (const struct coll_request *)r;
        const int kind = (int)c->plan->algorithm->kind;
        add_collective(w, c->comm, c->number, kind, has_root(kind) ? c->plan->root : PAGE_UNKNOWN, 0);
    } else if (r->ops == &hbarrier_ops || r->ops == &hbarrier_persistent_ops) {
        const struct hbarrier_run *b = (const struct hbarrier_run *)r;
        add_collective(w, b->comm, b->number, COLL_BARRIER, PAGE_UNKNOWN, 0);
    } else if (creation) {
        add_creation(w, creation);
    } else {
        add_named_object(w, &(struct net_named){"other ranks, in an operation that the call has begun",
                                                NET_NOBODY, false});
    }
}

static void add_request_set(struct proc *p, struct page_wait *w, const struct request_set *set)
{
    for (int i = 0; i < set->count; i++) {
        const struct request *r = request_from_handle(set->handles[i]);
        if (r && !(r->persistent && !r->active))
            add_request(p, w, r);
    }
}

static void add_waiting_send(struct page_wait *w, const struct peer *peer)
{
    struct page_item *item = add_item(w, PAGE_STALLED_SEND);
    item->peer = (int32_t)peer->rank;
    item->step = PAGE_QUEUED;
}

/* Adds sends that wait for room at their receivers. */
static void add_stalled_sends(struct page_wait *w, const struct net *net)
{
    list_foreach(pos, &net->stalled) add_waiting_send(w, list_entry(pos, struct peer, stalled_link));
}

void doctor_items(struct proc *p, const struct net_waiter *w, struct page_wait *out)
{
    switch (w->awaited_kind) {
    case NET_FLAG:
        add_request(p, out, container_of((const char *)w->awaited, struct request, complete));
        break;
    case NET_ANY_OF:
        out->any = 1;
        add_request_set(p, out, w->awaited);
        break;
    case NET_ALL_OF:
        add_request_set(p, out, w->awaited);
        break;
    case NET_MESSAGE:
        add_envelope(p, out, add_item(out, PAGE_PROBE), *(const struct envelope *)w->awaited);
        break;
    case NET_MEMBERS:
        add_members(out, w->awaited);
        break;
    case NET_ROOM:
        add_stalled_sends(out, p->net);
        break;
    case NET_PEER:
        add_waiting_send(out, w->awaited);
        break;
    case NET_NAMED:
        add_named_object(out, w->awaited);
        break;
    case NET_UNRECORDED:
        break;
    }
    if (out->total == 0) /* the wait has just ended, or has no description */
        add_named_object(out, &(struct net_named){"event inside the library", NET_NOBODY, false});
}

/* Writes to the status page of this process the links on which its large messages are slowest. */

/* Lowest cost among the links of each kind: [local][way][class]. */
struct fastest {
    uint32_t cost[2][PACE_DIRECTIONS][PACE_CLASSES];
};

static uint32_t *get_fastest_cost(struct fastest *f, const struct pace *pace, unsigned class)
{
    return &f->cost[pace->local][pace->direction][class];
}

static struct page_pace pace_to_page(const struct net *net, const struct pace *pace,
                                     const struct pace_class *c, unsigned class)
{
    struct page_pace out = {.peer = (int32_t)pace->rank,
                            .rail = pace->rail,
                            .out = pace->direction == PACE_OUT,
                            .local = pace->local,
                            .class = (uint8_t) class,
                            .messages = c->messages,
                            .best = c->best,
                            .bytes = c->bytes,
                            .ns = c->ns};
    if (pace->rank < net->size && net->peers[pace->rank])
        peer_describe(net->peers[pace->rank], out.how, sizeof(out.how));
    return out;
}

/* Inserts a link into the list, the slowest first. `slow`: costs relative to the fastest link of a kind. */
static void paces_insert_slow(struct page *page, double slow[PAGE_PACES], double part,
                              const struct page_pace *it)
{
    uint32_t at = page->npaces;
    while (at > 0 && slow[at - 1] < part)
        at--;
    if (at == PAGE_PACES)
        return;
    const uint32_t last = MIN(page->npaces, PAGE_PACES - 1);
    for (uint32_t i = last; i > at; i--) {
        page->paces[i] = page->paces[i - 1];
        slow[i] = slow[i - 1];
    }
    page->paces[at] = *it;
    slow[at] = part;
    page->npaces = last + 1;
}

void doctor_paces(struct page *page, struct net *net)
{
    const uint32_t known = atomic_load_explicit(&net->paces.count, memory_order_relaxed);
    struct fastest fastest = {0};
    double slow[PAGE_PACES];
    unsigned class = 0;
    page->npaces = page->paces_known = 0;
    for (uint32_t i = 0; i < known; i++) {
        struct pace *pace = paces_get(&net->paces, i);
        pace_finish_run(pace);
        const struct pace_class *c = pace_busiest_class(pace, &class);
        if (!c)
            continue;
        uint32_t *least = get_fastest_cost(&fastest, pace, class);
        *least = *least == 0 ? c->best : MIN(*least, c->best);
    }
    for (uint32_t i = 0; i < known; i++) {
        const struct pace *pace = paces_get(&net->paces, i);
        const struct pace_class *c = pace_busiest_class(pace, &class);
        if (!c)
            continue;
        const struct page_pace it = pace_to_page(net, pace, c, class);
        page->paces_known++;
        paces_insert_slow(page, slow, (double)c->best / (*get_fastest_cost(&fastest, pace, class) + 1.0),
                          &it);
    }
}

/* mismatch_query.c: sends queries about collective calls that have waited long, and handles received queries.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/mismatch_query.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "coll/sched/exec.h"
#include "coll/comm_state.h"
#include "net/lost.h"

#define PATIENCE_NS UINT64_C(1000000000)
#define RECEIVERS   16 /* limit of receivers of one round of queries */

static const struct coll_request *schedule_of_request(const struct request *r)
{
    const bool is = r && !r->complete && (r->ops == &coll_request_ops || r->ops == &coll_persistent_ops);
    return is ? container_of(r, struct coll_request, base) : NULL;
}

/* Returns the collective request for which this rank waits, or NULL. */
static const struct coll_request *find_awaited_schedule(const struct net_waiter *w)
{
    const struct coll_request *found = NULL;
    if (w->awaited_kind == NET_FLAG)
        return schedule_of_request(container_of((const char *)w->awaited, struct request, complete));
    const struct request_set *set = w->awaited;
    for (int i = 0; w->awaited_kind == NET_ALL_OF && i < set->count && !found; i++)
        found = schedule_of_request(request_from_handle(set->handles[i]));
    return found;
}

static bool is_awaited(const struct coll_request *r, struct comm *c, int rank, int tag)
{
    return p2p_is_posted(r->base.p2p, comm_coll_envelope(c, rank, tag));
}

/* Sends a query. If the send queue is full, the query is dropped: a later one follows. */
static void send_query(const struct coll_request *r, struct comm *c, int rank, int tag)
{
    struct peer *peer;
    const struct frame_header h = {
        .kind = P2P_FRAME_CALL, .context = c->context + 1, .source = c->rank, .tag = tag};
    struct call_query q = {.blocked = !r->comm->proc->threaded};
    memcpy(q.calls, r->comm->coll_sequence, sizeof(q.calls));
    if (comm_get_peer(c, rank, &peer) == 0 && !net_is_lost(c->proc->net, peer->rank))
        (void)peer_send(peer, &h, &q, sizeof(q));
}

/* Sends queries to the ranks from which the current steps (since the last fence) receive. */
static void query_senders(const struct coll_request *r)
{
    const struct sched *s = &r->plan->sched;
    int most = RECEIVERS;
    for (uint32_t i = r->next; i-- > 0 && most > 0 && s->steps[i].kind != STEP_FENCE;) {
        const struct step *step = &s->steps[i];
        if (step->kind != STEP_RECV)
            continue;
        const bool remote = PEER_IS_REMOTE(step->peer);
        struct comm *c = r->comm->remote && !remote ? r->comm->local_comm : r->comm;
        const int rank = remote ? PEER_REMOTE(step->peer) : step->peer;
        const int tag = c == r->comm ? r->tag : r->tag | COLL_TAG_LOCAL;
        if (rank != c->rank && is_awaited(r, c, rank, tag)) {
            send_query(r, c, rank, tag);
            most--;
        }
    }
}

/* Ends the job if another rank waits in a call that this rank has not made, while this rank waits in a
 * call that the other rank has not made. */
static void check_deadlock(const struct coll_request *r, struct query_state *q)
{
    struct comm *c = r->comm;
    if (!q->query.blocked || c->proc->threaded || c->remote || coll_get_tag_form(r->tag) >= COLL_FORMS ||
        call_is_made(c->coll_sequence[coll_get_tag_form(q->tag)], q->tag) ||
        call_is_made(q->query.calls[coll_get_tag_form(r->tag)], r->tag) ||
        !is_awaited(r, c, q->source, r->tag))
        return;
    mismatch_report_deadlock(c, r->tag, comm_coll_envelope(c, q->source, q->tag));
}

static void query_wait(void *arg, const struct net_waiter *w)
{
    const struct coll_request *r = find_awaited_schedule(w);
    mismatch_check_all(arg);
    if (!r || w->begun == 0)
        return;
    struct query_state *q = &r->state->query;
    if (q->begun != w->begun) {
        q->begun = w->begun;
        q->next = w->begun + PATIENCE_NS;
    }
    const uint64_t now = clock_ns();
    if (now < q->next)
        return;
    q->next = now + (now - q->begun);
    check_deadlock(r, q);
    query_senders(r);
}

static void query_arrived(void *arg, struct peer *from, const struct frame_header *h, const void *payload,
                          size_t len)
{
    const struct envelope env = {.context = h->context, .source = h->source, .tag = h->tag};
    struct proc *p = arg;
    struct call_query q;
    CHECK(len == sizeof(q), "a query about a collective call has a wrong length");
    memcpy(&q, payload, sizeof(q));
    struct comm *c = mismatch_comm(p, env);
    if (!c || coll_get_tag_form(env.tag) >= COLL_FORMS || env.source < 0)
        return;
    const struct group *g = c->remote && !(env.tag & COLL_TAG_LOCAL) ? c->remote : c->group;
    if (env.source >= g->size || group_job_rank(g, env.source) != from->rank || mismatch_compare(c, env))
        return;
    if (p->ending)
        mismatch_report_absent(c, env);
    if (!c->coll || !q.blocked)
        return;
    c->coll->query.source = env.source;
    c->coll->query.tag = env.tag;
    c->coll->query.query = q;
}

void query_open(struct proc *p)
{
    p->net->look = query_wait;
    p->net->look_arg = p;
    p2p_set_layer_handler(p->p2p, P2P_FRAME_CALL, query_arrived, p);
}

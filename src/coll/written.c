/* written.c: barriers of ranks on several nodes [Hoefler05 4.1.3]. Within a node the ranks set flags in shared memory. The
 * leaders of the nodes meet by n-way dissemination: each has a few bytes of registered memory, one for each partner of each
 * round; the partner writes the number of the barrier there, and the leader looks at it. No message, no matching, no receive:
 * a write is taken into the request (inline), and nobody is told when it is done. A flag is one byte, so no adapter can be
 * seen in the middle of writing it. What comes after what is in meeting.c.
 *
 * The first barrier of a communicator is done by messages, which carry where to write: a leader sends its address against
 * the direction of the writes, that is, to those who will write to it. The same messages carry whether all leaders heard of so
 * far can do it this way. After the last round every leader knows of every other, as in any dissemination, so all agree.
 * Where they cannot, leaders go on by messages.
 *
 * Barriers of a communicator that are under way at the same time take turns (struct written_lane): the next one begins at a
 * rank when the one before is over there. So a flag needs no more than one number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "coll/written.h"

#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "coll/written_part.h"

/* Many communicators live for one or two barriers only. */
#define BARRIERS_BEFORE 8

static COUNTER(runs, "coll_written", "Barriers in which nodes met by RDMA writes.");
static COUNTER(switched, "coll_switched", "Barriers in which nodes met in the switch.");
static COUNTER(wired, "coll_wired", "Barriers in which nodes met by the wires of a barrier network.");
static COUNTER(by_tree, "coll_barrier_multicast", "Barriers in which nodes were released by one multicast.");
static COUNTER(
    by_node, "coll_by_node",
    "Barriers in which the ranks of a node met in shared memory, and nodes through their leaders.");

static struct written_lane *lane_of(const struct written_run *r)
{
    return &r->w->lane[r->lane];
}

static void note(struct written_run *r, int rc)
{
    if (unlikely(rc) && !r->error)
        r->error = rc;
}

/* ---- messages ---- */

static void message_done(struct request *m)
{
    struct written_run *r = m->user;
    note(r, m->error);
    r->pending--;
}

static void watch(struct written_run *r, int rc, struct request *m)
{
    note(r, rc);
    if (rc)
        return;
    if (request_leave(m, message_done, r)) {
        r->pending++;
        return;
    }
    note(r, m->error);
    request_free(m);
}

void written_send(struct written_run *r, int rank, const void *data, size_t bytes)
{
    struct comm *c = r->comm;
    struct request *m = NULL;
    struct peer *peer;
    int rc = comm_peer(c, rank, &peer);
    if (!rc)
        rc = p2p_isend(c->proc->p2p, data, (MPI_Count)bytes, byte_type(), peer,
                       comm_coll_envelope(c, c->rank, r->tag), SEND_STANDARD, &m);
    watch(r, rc, m);
}

void written_recv(struct written_run *r, int rank, void *data, size_t bytes)
{
    struct comm *c = r->comm;
    struct request *m = NULL;
    int rc =
        p2p_irecv(c->proc->p2p, data, (MPI_Count)bytes, byte_type(), comm_coll_envelope(c, rank, r->tag), &m);
    watch(r, rc, m);
}

/* ---- the first barrier ---- */

/* What the partners of this round have said. */
static void hear(struct written *w, int round)
{
    for (int i = 0; i < w->partners; i++) {
        const struct written_invitation *in = &w->inbox[i];
        if (w->meets[i].round != round)
            continue;
        w->mine.all_write = w->mine.all_write && in->all_write;
        w->mine.all_switch = w->mine.all_switch && in->all_switch;
        w->mine.group = MIN(w->mine.group, in->group);
    }
}

/* The second time around, messages say that their senders have joined the group: nobody may enter before. */
static void joined(struct written_run *r, int round)
{
    struct written *w = r->w;
    if (round == 0) {
        hear(w, w->rounds[WAY_WRITE] - 1);
        written_join(w);
    }
    for (int i = 0; i < w->partners; i++)
        if (w->meets[i].round == round) {
            written_recv(r, w->leader_rank[w->meets[i].from], NULL, 0);
            written_send(r, w->leader_rank[w->meets[i].to], NULL, 0);
        }
}

static void invite(struct written_run *r, int round)
{
    struct written *w = r->w;
    if (round >= w->rounds[WAY_WRITE]) {
        joined(r, round - w->rounds[WAY_WRITE]);
        return;
    }
    hear(w, round - 1);
    for (int i = 0; i < w->partners; i++)
        if (w->meets[i].round == round) {
            written_recv(r, w->leader_rank[w->meets[i].to], &w->inbox[i], sizeof(w->inbox[i]));
            written_send(r, w->leader_rank[w->meets[i].from], &w->mine, sizeof(w->mine));
        }
}

/* ---- within a node ---- */

static bool by_flags(const struct written_run *r)
{
    return r->w->block && r->way != WAY_INVITE;
}

static bool all_reported(const struct written *w, int lane, uint8_t turn)
{
    for (int i = 1; i < w->nlocal; i++)
        if (!meeting_flag_set(atomic_load_explicit(&w->block->report[i].turn[lane], memory_order_acquire),
                              turn))
            return false;
    return true;
}

static struct doorbell *bell_of(const struct written *w, int place)
{
    return net_bell_local(w->net, group_job_rank(w->comm->group, w->local[place]));
}

/* A leader that sleeps is woken by the rank that reports last, not by each. Of two that report together at least one finds
 * the other there: both order their report before their look. */
static void report(struct written_run *r)
{
    struct written *w = r->w;
    struct doorbell *bell = bell_of(w, 0);
    const uint8_t turn = lane_of(r)->meeting.turn;
    atomic_store_explicit(&w->block->report[w->place].turn[r->lane], turn, memory_order_release);
    net_order_local(w->net);
    if (likely(atomic_load_explicit(&bell->sleepers, memory_order_relaxed) == 0))
        return;
    atomic_thread_fence(memory_order_seq_cst);
    if (all_reported(w, r->lane, turn))
        net_wake_local(bell);
}

static void release(struct written_run *r)
{
    struct written *w = r->w;
    atomic_store_explicit(&w->block->release.turn[r->lane], lane_of(r)->meeting.turn, memory_order_release);
    for (int i = 1; i < w->nlocal; i++)
        net_ring_bell_local(w->net, bell_of(w, i));
}

static void report_by_message(struct written_run *r)
{
    struct written *w = r->w;
    const bool told = r->way == WAY_INVITE;
    written_recv(r, w->local[0], told ? &w->note : NULL, told ? sizeof(w->note) : 0);
    written_send(r, w->local[0], NULL, 0);
}

static void release_by_message(struct written_run *r)
{
    struct written *w = r->w;
    const bool tell = r->way == WAY_INVITE;
    if (tell) {
        if (!w->may_switch)
            hear(w, w->rounds[WAY_WRITE] - 1);
        w->note.way = w->mine.all_write ? WAY_WRITE : WAY_MESSAGE;
        w->note.switched = w->member != NULL;
    }
    for (int i = 1; i < w->nlocal; i++)
        written_send(r, w->local[i], tell ? &w->note : NULL, tell ? sizeof(w->note) : 0);
}

/* ---- between nodes ---- */

/* Others must not wait long for room in the send queue: completions make it. */
int written_flag(struct written *w, int i, int lane)
{
    const struct written_partner *p = &w->partner[i];
    const uint8_t turn = w->lane[lane].meeting.turn;
    const uint64_t address = p->address + (uint64_t)lane;
    int rc;
    w->busy = true; /* progress may come back here */
    while ((rc = p->to->ops->put(p->to, &turn, NULL, address, &p->key, 1, NULL)) == ERR_AGAIN)
        net_progress(w->net);
    w->busy = false;
    return rc;
}

static void write_round(struct written_run *r, int round)
{
    for (int i = 0; i < r->w->partners; i++)
        if (r->w->meets[i].round == round)
            note(r, written_flag(r->w, i, r->lane));
}

static void send_round(struct written_run *r, int round)
{
    const struct written *w = r->w;
    for (uint32_t i = w->round_at[round]; i < w->round_at[round + 1]; i++) {
        const struct step *step = &w->sched.steps[i];
        if (step->kind == STEP_SEND)
            written_send(r, w->leader_rank[step->peer], NULL, 0);
        else if (step->kind == STEP_RECV)
            written_recv(r, w->leader_rank[step->peer], NULL, 0);
    }
}

static bool round_written(const struct written *w, int round, int lane, uint8_t turn)
{
    for (int i = 0; i < w->partners; i++)
        if (w->meets[i].round == round &&
            !meeting_flag_set(atomic_load_explicit(&w->flags[i * WRITTEN_LANES + lane], memory_order_acquire),
                              turn))
            return false;
    return true;
}

/* ---- the run ---- */

/* Is it this one's turn? Persistent ones have flags of their own, but the first barrier must be over. */
static bool is_first(const struct written_run *r)
{
    return list_first(&lane_of(r)->runs) == &r->link && (r->lane == 0 || r->w->way != WAY_INVITE) &&
           !r->w->busy;
}

/* The network says it once. */
static bool is_switched(struct written_run *r)
{
    if (!r->crossed)
        r->crossed = r->w->unit->over(r->w->unit, r->w->member);
    return r->crossed;
}

/* Has what the stage waits for happened? */
static bool ready(struct written_run *r)
{
    const struct written *w = r->w;
    const struct meeting *m = &lane_of(r)->meeting;
    if (m->stage == MEET_CROSS && r->way == WAY_WRITE)
        return round_written(w, m->round, r->lane, m->turn);
    if (m->stage == MEET_CROSS && r->way == WAY_SWITCH)
        return is_switched(r);
    if (m->stage == MEET_CROSS && r->way == WAY_TREE)
        return r->pending == 0 && written_tree_over(r, m->round);
    if (m->stage == MEET_GATHER && by_flags(r))
        return all_reported(w, r->lane, m->turn);
    if (m->stage == MEET_RELEASE && by_flags(r) && !w->leads)
        return meeting_flag_set(atomic_load_explicit(&w->block->release.turn[r->lane], memory_order_acquire),
                                m->turn);
    return r->pending == 0;
}

static bool can_go_on(void *arg)
{
    struct written_run *r = arg;
    return is_first(r) && (lane_of(r)->meeting.stage == MEET_AWAY || ready(r));
}

void written_count(const struct written *w, enum written_way way)
{
    if (way == WAY_WRITE)
        counter_add(&runs, 1);
    else if (way == WAY_SWITCH)
        counter_add(w->may_wire ? &wired : &switched, 1);
    else if (way == WAY_TREE)
        counter_add(&by_tree, 1);
    if (w->block)
        counter_add(&by_node, 1);
}

static void finish(struct written_run *r)
{
    if (r->way == WAY_INVITE)
        written_settle(r->w);
    written_count(r->w, (enum written_way)r->way);
    list_remove(&r->link);
    r->over = true;
}

static void cross(struct written_run *r, int round)
{
    struct written *w = r->w;
    r->crossed = false;
    if (r->way == WAY_WRITE)
        write_round(r, round);
    else if (r->way == WAY_MESSAGE)
        send_round(r, round);
    else if (r->way == WAY_SWITCH)
        w->unit->enter(w->unit, w->member);
    else if (r->way == WAY_TREE)
        written_tree_round(r, round);
    else
        invite(r, round);
}

static void act(struct written_run *r, enum meeting_action action)
{
    struct written *w = r->w;
    const int round = lane_of(r)->meeting.round;
    if (action == MEET_EXPECT && !by_flags(r)) {
        for (int i = 1; i < w->nlocal; i++)
            written_recv(r, w->local[i], NULL, 0);
    } else if (action == MEET_REPORT) {
        by_flags(r) ? report(r) : report_by_message(r);
    } else if (action == MEET_FREE) {
        by_flags(r) ? release(r) : release_by_message(r);
    } else if (action == MEET_ROUND) {
        cross(r, round);
    }
}

static enum written_way way_of(const struct written_run *r)
{
    if (r->tree)
        return WAY_TREE;
    return r->lane == 0 && r->w->switched ? WAY_SWITCH : r->w->way;
}

/* As far as it goes now. */
static void advance(struct written_run *r)
{
    while (!r->over && is_first(r)) {
        struct meeting *m = &lane_of(r)->meeting;
        /* What it sent to its node must have left before its memory is given up. */
        if (m->stage == MEET_RELEASE && r->w->leads && r->pending > 0)
            return;
        if (m->stage == MEET_AWAY)
            r->way = way_of(r);
        const struct meeting_shape shape = {r->w->leads, r->w->nlocal == 1, r->w->rounds[r->way]};
        enum meeting_action action = meeting_next(m, &shape, m->stage != MEET_AWAY && ready(r));
        if (action == MEET_WAIT)
            return;
        if (action == MEET_OVER)
            finish(r);
        else
            act(r, action);
    }
}

/* Nobody rings a doorbell when a flag is written from another node. */
static bool is_unrung(const struct written_run *r)
{
    return (r->way == WAY_WRITE || r->way == WAY_SWITCH) && lane_of(r)->meeting.stage == MEET_CROSS;
}

void written_wait(struct written_run *r)
{
    struct net *net = r->w->net;
    struct net_waiter waiter = {.ready = can_go_on, .arg = r, .what = NET_MEMBERS, .of = r->comm};
    while (!r->over) {
        if (!can_go_on(r)) {
            const uint32_t unrung = is_unrung(r);
            net->unrung += unrung;
            net_wait_step(net, &waiter);
            net->unrung -= unrung;
        }
        advance(r);
    }
    net_wait_end(net, &waiter);
}

static int tag_of(uint32_t number, enum coll_form form)
{
    return coll_tag_of(COLL_BARRIER, 0, number) | (form == FORM_PERSISTENT ? COLL_TAG_PERSISTENT : 0);
}

static bool same_choice(const struct coll_choice *a, const struct coll_choice *b)
{
    return a->algorithm == b->algorithm && a->by_node == b->by_node && a->named == b->named &&
           memcmp(a->parameter, b->parameter, sizeof(a->parameter)) == 0;
}

/* NULL: not this way, or not yet. */
static struct written *written_of(struct coll_state *state, const struct coll_choice *choice, int *rc)
{
    *rc = 0;
    if (unlikely(state->written && !same_choice(&state->written->choice, choice)))
        written_close(state); /* every rank changes its choice at the same call */
    if (unlikely(!state->written)) {
        if ((!choice->named || choice->lazy) && state->barriers_before < BARRIERS_BEFORE) {
            state->barriers_before++;
            return NULL;
        }
        *rc = written_open(state, choice, &state->written);
    }
    return state->written;
}

/* For the next barrier of the first lane. The first one is done by messages, which tell more than that. */
static bool by_multicast(struct written *w)
{
    return w->calls++ > 0 && w->multicast;
}

bool written_run(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice,
                 int *rc)
{
    struct written *w = written_of(state, choice, rc);
    if (!w)
        return *rc != 0;
    if (unlikely(w->may_multicast && !w->opened_multicast && w->calls > 0)) {
        *rc = written_open_multicast(w);
        if (*rc)
            return true;
    }
    struct written_run r;
    r.w = w;
    r.comm = state->comm;
    r.lane = r.pending = r.error = 0;
    r.tree = by_multicast(w);
    r.over = r.crossed = false;
    r.way = WAY_INVITE; /* until its turn comes */
    r.tag = tag_of(coll_number(state, args, FORM_BLOCKING), FORM_BLOCKING);
    list_append(&w->lane[0].runs, &r.link);
    advance(&r);
    if (!r.over)
        written_wait(&r);
    *rc = r.error;
    return true;
}

/* ---- requests ---- */

static int progress_hook(struct net_hook *hook)
{
    struct written_run *r = container_of(hook, struct written_run, hook);
    if (!can_go_on(r))
        return 0;
    advance(r);
    if (!r->over)
        return 1;
    list_remove(&r->hook.link);
    r->w->net->unrung--;
    request_complete(&r->base, r->error);
    return 1;
}

/* Whoever waits for this request does not look at flags before it sleeps, so it must not sleep for long. */
static void begin(struct written_run *r)
{
    struct net *net = r->w->net;
    r->pending = r->error = 0;
    r->over = false;
    atomic_store_explicit(&r->base.complete, 0, memory_order_relaxed);
    list_append(&lane_of(r)->runs, &r->link);
    advance(r);
    if (r->over) {
        request_complete(&r->base, r->error);
        return;
    }
    net->unrung++;
    list_append(&net->hooks, &r->hook.link);
}

static int start(struct request *base)
{
    base->active = true;
    begin(container_of(base, struct written_run, base));
    return 0;
}

static void free_run(struct request *base)
{
    struct written_run *r = container_of(base, struct written_run, base);
    written_drop(r->w);
    objmem_free(r);
}

const struct request_ops written_ops = {.name = "barrier", .release = free_run};
const struct request_ops written_persistent_ops = {
    .name = "persistent barrier", .start = start, .release = free_run};

/* For a persistent one. They are started in any order, so none can be the first barrier. */
static bool has_lane(const struct written *w)
{
    return w->calls > 0 && w->lanes < WRITTEN_LANES;
}

bool written_make(const struct coll_args *args, struct coll_state *state, const struct coll_choice *choice,
                  enum coll_form form, struct written_run **out, int *rc)
{
    struct written *w = written_of(state, choice, rc);
    if (!w || (form == FORM_PERSISTENT && !has_lane(w)))
        return *rc != 0;
    struct written_run *r = objmem_new(sizeof(*r));
    if (!r) {
        *rc = err_set(MPI_ERR_NO_MEM, "out of memory for the request of a barrier");
        return true;
    }
    *r = (struct written_run){.w = w, .comm = state->comm, .hook.progress = progress_hook};
    request_setup(&r->base, state->comm->proc->p2p,
                  form == FORM_PERSISTENT ? &written_persistent_ops : &written_ops);
    r->base.comm = comm_retain(args->comm);
    w->refs++;
    list_init(&r->hook.link);
    r->tag = tag_of(coll_number(state, args, form), form);
    if (form == FORM_PERSISTENT) {
        r->lane = w->lanes++;
        r->base.persistent = true;
        r->base.active = false;
        atomic_store_explicit(&r->base.complete, 1, memory_order_relaxed);
    } else {
        r->tree = by_multicast(w);
        page_comm_count(state->page);
        page_comm_kind(state->page, args->kind);
        r->number = state->page->calls;
        begin(r);
    }
    *out = r;
    return true;
}

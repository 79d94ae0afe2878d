/* job.c: simulates ranks that execute the steps of a schedule, and matches messages with receives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net/rails/stripe.h"
#include "pairs.h"

enum { CONTROL_BYTES = 64, SMALLEST_STRIPE = 8192, CORES_MAX = 64 };

/* Stage of a transfer to which a message belongs: eager data, request to send, clear to send, rendezvous
 * data. */
enum stage { STAGE_EAGER, STAGE_REQUEST, STAGE_CLEAR, STAGE_DATA };

struct rank {
    struct sched sched;
    uint32_t at;      /* index of the next step in the schedule */
    uint32_t open;    /* sends and receives that were started and are not complete */
    sim_time busy_to; /* time at which the processor's present work ends */
    uint8_t rail;     /* rail of the last message that was not striped */
    uint32_t stage;   /* number of fences passed */
    bool waits;       /* waits at a fence or at the end of the schedule */
    bool done;
};

/* A message from its start to its completion. */
struct transfer {
    uint32_t from, to; /* ranks */
    uint64_t bytes;
    uint32_t stage;
    uint32_t key_order; /* sequence number of the message between these two ranks */
    uint32_t next;
    uint32_t missing; /* stripes of the present stage that have not arrived */
    uint8_t rail;     /* rail of all its messages, unless rails are used by JOB_RAILS_STRIPE */
};

enum { EVENT_RANK = EVENT_OTHER, EVENT_POST };

struct job {
    const struct job_order *order;
    struct network net;
    struct rank *ranks;
    struct transfer *transfers;
    uint32_t transfers_count, transfers_free;
    struct pairs sent, received; /* number of messages started so far, by pair of ranks */
    struct pairs matching;       /* by message: the send or the receive, whichever was first */
    double item_bytes;
    uint64_t messages;
    uint32_t unfinished, cores;
    sim_time core_free[CORES_MAX]; /* time at which each core is free, if all ranks share cores */
    uint32_t core_ran[CORES_MAX];  /* the rank that used the core last, plus one; 0: none yet */
    bool failed;
};

static uint32_t job_node_of_rank(const struct job *j, uint32_t rank)
{
    return j->order->place ? j->order->place[rank] : rank / (uint32_t)j->order->per_node;
}

static uint32_t transfer_new(struct job *j)
{
    uint32_t t = j->transfers_free;
    if (t != NONE) {
        j->transfers_free = j->transfers[t].next;
        return t;
    }
    t = j->transfers_count;
    if ((t & (t - 1)) == 0) {
        struct transfer *larger = realloc(j->transfers, (t ? 2 * (size_t)t : 1) * sizeof(*larger));
        if (!larger) {
            j->failed = j->net.failed = true;
            return NONE;
        }
        j->transfers = larger;
    }
    j->transfers_count++;
    return t;
}

static void transfer_free(struct job *j, uint32_t t)
{
    j->transfers[t].next = j->transfers_free;
    j->transfers_free = t;
}

static void job_schedule_event(struct job *j, sim_time at, uint32_t kind, uint32_t what)
{
    if (!event_insert(&j->net.events, at, kind, what))
        j->failed = j->net.failed = true;
}

/* Occupies the rank's processor for this time, beginning when the processor is free; returns the time of
 * completion. */
static sim_time job_charge_time(struct job *j, uint32_t rank, double nanoseconds)
{
    struct rank *r = &j->ranks[rank];
    uint32_t best = 0;
    sim_time begin = NEVER;
    if (r->busy_to < j->net.now)
        r->busy_to = j->net.now;
    if (j->cores == 0 || nanoseconds <= 0)
        return r->busy_to += sim_time_from_ns(nanoseconds);
    for (uint32_t c = 0; c < j->cores; c++) {
        sim_time from = r->busy_to < j->core_free[c] ? j->core_free[c] : r->busy_to;
        if (j->core_ran[c] && j->core_ran[c] != rank + 1)
            from += sim_time_from_ns(j->order->machine->turn_ns);
        if (from < begin) {
            begin = from;
            best = c;
        }
    }
    j->core_ran[best] = rank + 1;
    return j->core_free[best] = r->busy_to = begin + sim_time_from_ns(nanoseconds);
}

/* A send or receive of the rank is complete; continues the rank if no other operation of its fence is
 * open. */
static void rank_complete_operation(struct job *j, uint32_t rank)
{
    struct rank *r = &j->ranks[rank];
    if (--r->open == 0 && r->waits) {
        r->waits = false;
        job_schedule_event(j, r->busy_to > j->net.now ? r->busy_to : j->net.now, EVENT_RANK, rank);
    }
}

/* Sends a transfer's next message once the sender's processor is free. */
static void job_schedule_post(struct job *j, uint32_t rank, uint32_t t)
{
    job_schedule_event(j, job_charge_time(j, rank, j->net.machine.send_ns), EVENT_POST, t);
}

/* Cuts a rendezvous message into stripes of equal size, at most one for each rail. */
static unsigned job_cut_stripes(const struct job *j, uint64_t bytes, struct stripe stripes[RAILS_MAX])
{
    static const double even[RAILS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const struct stripe_rules rules = {.smallest = SMALLEST_STRIPE, .align = 64};
    return stripe_cut(&rules, even, rails_all(j->net.rails), 0, bytes, stripes);
}

static uint8_t rank_next_rail(struct job *j, uint32_t rank)
{
    struct rank *r = &j->ranks[rank];
    return r->rail = (uint8_t)rail_after(rails_all(j->net.rails), r->rail);
}

/* The rail that the rank's present stage (JOB_RAILS_STAGES) or the rank (JOB_RAILS_RANKS) uses. */
static uint8_t rank_fixed_rail(const struct job *j, uint32_t rank)
{
    const uint32_t place =
        j->order->rails == JOB_RAILS_STAGES ? j->ranks[rank].stage : rank % (uint32_t)j->order->per_node;
    return (uint8_t)(place % j->net.rails);
}

static void on_post(struct job *j, uint32_t t)
{
    struct transfer *x = &j->transfers[t];
    bool back = x->stage == STAGE_CLEAR, small = x->stage == STAGE_CLEAR || x->stage == STAGE_REQUEST;
    uint32_t from = back ? x->to : x->from, to = back ? x->from : x->to;
    struct stripe stripes[RAILS_MAX];
    unsigned count = 1;
    const bool striped = j->order->rails == JOB_RAILS_STRIPE;
    if (striped && x->stage == STAGE_DATA && job_node_of_rank(j, from) != job_node_of_rank(j, to))
        count = job_cut_stripes(j, x->bytes, stripes);
    else
        stripes[0] = (struct stripe){.bytes = small ? CONTROL_BYTES : x->bytes,
                                     .rail = striped ? rank_next_rail(j, from) : x->rail};
    x->missing = count;
    for (unsigned i = 0; i < count; i++)
        network_send_on(&j->net, stripes[i].rail, job_node_of_rank(j, from), job_node_of_rank(j, to),
                        stripes[i].bytes, t, false);
    if (x->stage == STAGE_EAGER)
        rank_complete_operation(j, x->from); /* an eager send is complete when its data is copied */
}

static void rank_start_send(struct job *j, uint32_t rank, const struct step *s)
{
    uint32_t t = transfer_new(j);
    if (t == NONE)
        return;
    uint64_t bytes = s->buf[0] == BUF_NONE ? 0 : (uint64_t)((double)s->count * j->item_bytes);
    uint32_t order = pairs_count(&j->sent, rank, (uint32_t)s->peer);
    j->transfers[t] = (struct transfer){
        .from = rank, .to = (uint32_t)s->peer, .bytes = bytes, .key_order = order, .next = NONE};
    j->transfers[t].rail = rank_fixed_rail(j, rank);
    if ((double)bytes > j->net.machine.eager_bytes)
        j->transfers[t].stage = STAGE_REQUEST;
    else
        job_charge_time(j, rank, (double)bytes / j->net.machine.copy_rate);
    j->ranks[rank].open++;
    j->messages++;
    job_schedule_post(j, rank, t);
}

/* Continues a message that has matched its receive. */
static void job_continue_matched(struct job *j, uint32_t t)
{
    struct transfer *x = &j->transfers[t];
    if (x->stage == STAGE_REQUEST) {
        x->stage = STAGE_CLEAR;
        job_schedule_post(j, x->to, t);
        return;
    }
    job_charge_time(j, x->to, j->net.machine.receive_ns + (double)x->bytes / j->net.machine.copy_rate);
    rank_complete_operation(j, x->to);
    transfer_free(j, t);
}

static void rank_start_receive(struct job *j, uint32_t rank, const struct step *s)
{
    uint32_t order = pairs_count(&j->received, (uint32_t)s->peer, rank), t;
    j->ranks[rank].open++;
    if (pairs_match(&j->matching, (uint32_t)s->peer, rank, order, NONE, &t))
        job_continue_matched(j, t);
}

static void on_arrived(void *ctx, uint32_t message)
{
    struct job *j = ctx;
    uint32_t t = j->net.messages[message].tag, other;
    struct transfer *x = &j->transfers[t];
    if (--x->missing)
        return;
    if (x->stage == STAGE_CLEAR) {
        x->stage = STAGE_DATA;
        job_charge_time(j, x->from, j->net.machine.receive_ns);
        job_schedule_post(j, x->from, t);
        return;
    }
    if (x->stage == STAGE_DATA) {
        uint32_t from = x->from, to = x->to;
        job_charge_time(j, to, j->net.machine.receive_ns);
        rank_complete_operation(j, to);
        rank_complete_operation(j, from);
        transfer_free(j, t);
        return;
    }
    if (pairs_match(&j->matching, x->from, x->to, x->key_order, t, &other))
        job_continue_matched(j, t);
}

/* Executes steps of the schedule until a step has to wait. */
static void job_continue_rank(struct job *j, uint32_t rank)
{
    struct rank *r = &j->ranks[rank];
    while (r->at < r->sched.count) {
        const struct step *s = &r->sched.steps[r->at++];
        double bytes = (double)s->count * j->item_bytes;
        switch (s->kind) {
        case STEP_SEND:
            rank_start_send(j, rank, s);
            break;
        case STEP_RECV:
            rank_start_receive(j, rank, s);
            break;
        case STEP_COPY:
            job_charge_time(j, rank, bytes / j->net.machine.copy_rate);
            break;
        case STEP_REDUCE:
            job_charge_time(j, rank, bytes / j->net.machine.reduce_rate);
            break;
        case JOB_COMPUTE:
            job_charge_time(j, rank, (double)s->count);
            break;
        default:
            r->stage++;
            if (r->open) {
                r->waits = true;
                return;
            }
        }
    }
    if (r->open) {
        r->waits = true; /* the end of the schedule waits for open operations too */
        return;
    }
    if (!r->done) {
        job_charge_time(j, rank, 0);
        r->done = true;
        j->unfinished--;
    }
}

static void on_event(void *ctx, const struct event *e)
{
    struct job *j = ctx;
    if (e->kind == EVENT_RANK)
        job_continue_rank(j, e->index);
    else
        on_post(j, e->index);
}

/* Prefetches a rank's state (SOON_NEAR), then its next steps (SOON_NEXT). */
static void job_prefetch_event(void *ctx, const struct event *e, enum event_soon how)
{
    const struct job *j = ctx;
    if (e->kind == EVENT_POST && how == SOON_NEAR)
        __builtin_prefetch(&j->transfers[e->index], 1);
    if (e->kind != EVENT_RANK)
        return;
    const struct rank *r = &j->ranks[e->index];
    if (how == SOON_NEAR)
        __builtin_prefetch(r, 1);
    else if (how == SOON_NEXT && r->at < r->sched.count)
        __builtin_prefetch(&r->sched.steps[r->at]);
}

/* Describes the operation for the schedule generators (struct coll_shape); *item_bytes is the size of one
 * schedule item. */
static void job_fill_shape(struct coll_shape *shape, const struct job_order *o, int64_t *starts,
                           double *item_bytes)
{
    enum coll_kind kind = o->algorithm->kind;
    uint64_t element = o->bytes % 8 == 0 ? 8 : 1;
    *shape = (struct coll_shape){
        .kind = kind, .size = o->ranks, .root = o->root, .count = 1, .commutative = true, .adjacent = true};
    *item_bytes = (double)o->bytes;
    if (kind == COLL_BCAST)
        element = 1;
    if (kind == COLL_BCAST || kind == COLL_REDUCE || kind == COLL_ALLREDUCE || kind == COLL_SCAN ||
        kind == COLL_EXSCAN) {
        shape->count = (int64_t)(o->bytes / element);
        *item_bytes = (double)element;
    } else if (kind == COLL_REDUCE_SCATTER) {
        *item_bytes = (double)element;
        for (int r = 0; r <= o->ranks; r++)
            starts[r] = (int64_t)(o->bytes / element) * r;
        shape->count = starts[o->ranks];
        shape->starts = starts;
    }
    if (o->algorithm->segment && o->segment)
        shape->segment = (int64_t)(o->segment / (uint64_t)*item_bytes) > 0
                             ? (int64_t)(o->segment / (uint64_t)*item_bytes)
                             : 1;
    for (int i = 0; i < COLL_PARAMETERS; i++)
        shape->parameter[i] = o->parameter[i] ? o->parameter[i] : o->algorithm->parameter[i].preset;
}

/* Makes the schedules of all ranks; NULL, or the reason of a failure. */
static const char *job_make_schedules(struct job *j, struct coll_shape *shape, uint64_t *steps)
{
    if (!algorithm_fits(j->order->algorithm, shape) || !j->order->algorithm->generate)
        return "this algorithm does not support this number of ranks";
    for (int r = 0; r < j->order->ranks; r++) {
        struct sched *s = &j->ranks[r].sched;
        shape->rank = r;
        sched_init(s);
        j->order->algorithm->generate(shape, s);
        *steps += s->count;
        if (s->failed)
            return "out of memory for the list of its steps";
        /* Sixteen ranks are sampled to estimate the number of steps of all ranks; a single sampled rank
         * could be a root with many more steps than the others. */
        double all = (double)*steps / (r + 1) * j->order->ranks;
        if (*steps > j->order->most_steps || (r >= 15 && all > 4.0 * (double)j->order->most_steps))
            return "it has more steps than --most-steps allows";
    }
    return NULL;
}

static void job_free(struct job *j)
{
    for (int r = 0; j->ranks && !j->order->given && r < j->order->ranks; r++)
        sched_free(&j->ranks[r].sched);
    free(j->ranks);
    free(j->transfers);
    pairs_free(&j->sent);
    pairs_free(&j->received);
    pairs_free(&j->matching);
    network_free(&j->net);
}

static void job_run(struct job *j, struct job_report *out)
{
    j->net.arrived = on_arrived;
    j->net.other = on_event;
    j->net.prefetch = job_prefetch_event;
    j->net.ctx = j;
    j->unfinished = (uint32_t)j->order->ranks;
    for (int r = 0; r < j->order->ranks; r++) {
        j->ranks[r].rail = RAIL_NONE;
        job_schedule_event(j, 0, EVENT_RANK, (uint32_t)r);
    }
    network_run(&j->net);
    out->events = j->net.events.taken;
    out->messages = j->messages;
    if (j->failed || j->net.failed || j->sent.failed || j->received.failed || j->matching.failed) {
        out->failed = "out of memory";
        return;
    }
    if (j->unfinished) {
        out->failed =
            "ranks wait for each other forever: this is a defect of the algorithm or of the simulator";
        return;
    }
    sim_time last = 0, first = NEVER;
    for (int r = 0; r < j->order->ranks; r++) {
        last = j->ranks[r].busy_to > last ? j->ranks[r].busy_to : last;
        first = j->ranks[r].busy_to < first ? j->ranks[r].busy_to : first;
    }
    out->us = (double)last / (double)SIM_US;
    out->first_us = (double)first / (double)SIM_US;
}

void job_simulate(const struct job_order *order, struct job_report *out)
{
    struct job j = {.order = order, .transfers_free = NONE, .cores = (uint32_t)order->machine->cores};
    struct coll_shape shape;
    uint32_t nodes = (uint32_t)((order->ranks + order->per_node - 1) / order->per_node);
    *out = (struct job_report){0};
    int64_t *starts = malloc(((size_t)order->ranks + 1) * sizeof(*starts));
    j.ranks = calloc((size_t)order->ranks, sizeof(*j.ranks));
    if (!starts || !j.ranks)
        out->failed = "out of memory";
    else if (!network_make(&j.net, order->machine, nodes))
        out->failed =
            "a fat tree of these switches cannot have this number of nodes, or the number of ports is "
            "odd, or memory ran out";
    if (!out->failed && order->given) {
        j.item_bytes = 1;
        for (int r = 0; r < order->ranks; r++)
            j.ranks[r].sched = order->given[r];
    } else if (!out->failed) {
        job_fill_shape(&shape, order, starts, &j.item_bytes);
        out->failed = job_make_schedules(&j, &shape, &out->steps);
    }
    if (!out->failed)
        job_run(&j, out);
    free(starts);
    job_free(&j);
}

/* traffic.c: simulates processes that send messages at random times over several rails. There are three kinds
 * of events: a process has a message to send, an adapter's processor has completed a command or a frame, and
 * the network has delivered data or a frame. The policies of lab/mechanisms/rails select the rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "traffic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net/rails/filter.h"
#include "lab/mechanisms/rails/request.h"
#include "lab/mechanisms/rails/reserve.h"

const struct machine traffic_machine = {
    .copy_rate = 2,
    .reduce_rate = 2,
    .message_ns = 50,
    .link_rate = 2,
    .link_ns = 4,
    .switch_ns = 6,
    .bus_rate = 2,
    .bus_ns = 4,
    .bus_shared = 1,
    .bus_turn_ns = 64,
    .mtu = 512,
    .header_bytes = 8,
    .buffers = 2,
    .lanes = 2,
    .adaptive = 1,
    .radix = 8,
    .rails = 4,
};

enum { EVENT_PROCESS = EVENT_OTHER, EVENT_NIC, EVENT_END };
enum { JOB_RTS, JOB_ABORT, JOB_ACK, JOB_FRAME };

#define TAG_CONTROL UINT32_C(0x80000000)

struct process {
    struct alloc alloc;
    struct request request;
    struct filter filter;
    uint64_t random;
    double made; /* creation time of the present message in ns */
    uint64_t bytes;
    uint32_t to;
    bool waiting; /* waits for a free rail of its node */
    bool busy;    /* a message is being sent */
    bool reserved;
};

struct nic {
    struct reserve reserve;
    uint32_t sending, receiving; /* data messages in progress */
    sim_time free_at;            /* time at which its processor is free */
};

/* Work for an adapter's processor. */
struct job {
    uint32_t nic, kind, number, to, next;
    uint8_t bytes[FRAME_BYTES];
};

struct traffic {
    const struct traffic_order *order;
    struct traffic_report *report;
    struct network net;
    struct process *processes;
    struct nic *nics; /* node n, rail r: n * rails + r */
    struct job *jobs;
    uint32_t jobs_count, jobs_free, rails;
    uint32_t numbers; /* reservations requested so far; without reservations, messages sent so far */
    sim_time begin, end;
    double bytes_made, bytes_arrived, latency, waited;
    uint64_t stripes, sent;
    struct stripe_rules rules;
};

static double traffic_exponential(uint64_t *x, double mean)
{
    return -mean * log(sim_random_uniform(x));
}

static uint32_t nic_index(const struct traffic *t, uint32_t node, uint32_t rail)
{
    return node * t->rails + rail;
}

static uint32_t process_node(const struct traffic *t, uint32_t process)
{
    return process / (uint32_t)t->order->per_node;
}

static void traffic_schedule_event(struct traffic *t, sim_time at, uint32_t kind, uint32_t what)
{
    if (!event_insert(&t->net.events, at, kind, what))
        t->net.failed = true;
}

/* ---- the adapter's processor ---- */

static uint32_t job_new(struct traffic *t)
{
    uint32_t j = t->jobs_free;
    if (j != NONE) {
        t->jobs_free = t->jobs[j].next;
        return j;
    }
    if (!t->jobs_count || !(t->jobs_count & (t->jobs_count - 1))) {
        struct job *larger =
            realloc(t->jobs, (t->jobs_count ? 2 * (size_t)t->jobs_count : 1) * sizeof(*larger));
        if (!larger) {
            t->net.failed = true;
            return NONE;
        }
        t->jobs = larger;
    }
    return t->jobs_count++;
}

static void job_free(struct traffic *t, uint32_t j)
{
    t->jobs[j].next = t->jobs_free;
    t->jobs_free = j;
}

/* Queues a job for the adapter's processor behind its earlier jobs. */
static void job_queue(struct traffic *t, uint32_t j)
{
    struct nic *n = &t->nics[t->jobs[j].nic];
    sim_time from = n->free_at > t->net.now ? n->free_at : t->net.now;
    n->free_at = from + sim_time_from_ns(t->order->control_ns);
    traffic_schedule_event(t, n->free_at, EVENT_NIC, j);
}

static void traffic_queue_command(struct traffic *t, uint32_t nic, uint32_t kind, uint32_t number,
                                  uint32_t to)
{
    uint32_t j = job_new(t);
    if (j == NONE)
        return;
    t->jobs[j] = (struct job){.nic = nic, .kind = kind, .number = number, .to = to};
    job_queue(t, j);
}

static void traffic_send_frame(struct traffic *t, const struct frame *f)
{
    uint32_t j = job_new(t);
    if (j == NONE)
        return;
    t->jobs[j] = (struct job){.nic = nic_index(t, f->to - 1, f->rail), .kind = JOB_FRAME};
    frame_encode(f, t->jobs[j].bytes);
    t->report->frames++;
    network_send_on(&t->net, f->rail, f->from - 1, f->to - 1, FRAME_BYTES, TAG_CONTROL | j, true);
}

/* ---- processes ---- */

static void process_start_message(struct traffic *t, uint32_t p);

/* A rail of the node is free: the processes that wait for a rail try again. `numbers` selects the process
 * that tries first. */
static void node_wake_process(struct traffic *t, uint32_t node)
{
    uint32_t first = node * (uint32_t)t->order->per_node, turn = t->numbers;
    for (int i = 0; i < t->order->per_node; i++) {
        uint32_t p = first + (turn + (uint32_t)i) % (uint32_t)t->order->per_node;
        if (t->processes[p].waiting) {
            t->processes[p].waiting = false;
            process_start_message(t, p);
        }
    }
}

static bool traffic_uses_reservation(const struct traffic *t)
{
    return t->order->policy == ALLOC_DYNAMIC || t->order->policy == ALLOC_HYBRID;
}

/* Rails that are free for a process of the node: not reserved, or, without reservations, neither sending
 * nor receiving. */
static uint32_t node_free_rails(const struct traffic *t, uint32_t node)
{
    uint32_t set = 0;
    for (uint32_t r = 0; r < t->rails; r++) {
        const struct nic *n = &t->nics[nic_index(t, node, r)];
        if (traffic_uses_reservation(t) ? reserve_is_free(&n->reserve) : !n->sending && !n->receiving)
            set |= rail_bit(r);
    }
    return set;
}

static void process_send_stripes(struct traffic *t, uint32_t p, uint32_t set)
{
    static const double even[RAILS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct process *q = &t->processes[p];
    struct stripe stripes[RAILS_MAX];
    uint32_t ticket;
    unsigned count = stripe_cut(&t->rules, even, set, 0, q->bytes, stripes);
    filter_open(&q->filter, stripes, count, set);
    for (int i; (i = filter_next(&q->filter, (uint64_t)t->net.now, &ticket)) >= 0;) {
        const struct stripe *s = &q->filter.stripes[i].stripe;
        t->nics[nic_index(t, process_node(t, p), s->rail)].sending++;
        network_send_on(&t->net, s->rail, process_node(t, p), q->to, s->bytes, p, false);
    }
    if (t->net.now >= t->begin) {
        t->stripes += count;
        t->sent++;
        t->waited += (double)t->net.now / SIM_NS - q->made;
    }
}

static void process_abort_rails(struct traffic *t, uint32_t p, uint32_t set, uint32_t number)
{
    for (uint32_t r = 0; r < t->rails; r++)
        if (rail_set_contains(set, r))
            traffic_queue_command(t, nic_index(t, process_node(t, p), r), JOB_ABORT, number, 0);
}

static void process_apply_decision(struct traffic *t, uint32_t p, const struct request_out *out,
                                   uint32_t number)
{
    if (out->verdict == REQUEST_IGNORED)
        t->report->strays++;
    if (out->verdict == REQUEST_SEND) {
        /* A message too short for this number of stripes uses fewer rails than were granted. */
        struct stripe stripes[RAILS_MAX];
        static const double even[RAILS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        unsigned count = stripe_cut(&t->rules, even, out->send, 0, t->processes[p].bytes, stripes);
        uint32_t used = 0;
        for (unsigned i = 0; i < count; i++)
            used |= rail_bit(stripes[i].rail);
        t->processes[p].reserved = true;
        process_send_stripes(t, p, used);
        process_abort_rails(t, p, out->abort | (out->send & ~used), number);
    } else {
        process_abort_rails(t, p, out->abort, number);
    }
    if (out->verdict == REQUEST_RETRY) {
        t->report->refused++;
        process_start_message(t, p);
    }
}

static void process_handle_answer(struct traffic *t, uint32_t number, uint32_t node, uint32_t rail,
                                  bool granted)
{
    uint32_t first = node * (uint32_t)t->order->per_node;
    for (uint32_t p = first; p < first + (uint32_t)t->order->per_node; p++) {
        struct process *q = &t->processes[p];
        if (q->request.number != number)
            continue;
        struct request_out out = request_answer(&q->request, &q->alloc, number, rail, granted);
        process_apply_decision(t, p, &out, number);
        return;
    }
    t->report->strays++;
}

static void process_start_message(struct traffic *t, uint32_t p)
{
    struct process *q = &t->processes[p];
    uint32_t set = 0;
    switch (alloc_message(&q->alloc, q->bytes, node_free_rails(t, process_node(t, p)), &set)) {
    case ALLOC_SEND:
        if (!traffic_uses_reservation(t))
            t->numbers++;
        q->reserved = false;
        process_send_stripes(t, p, set);
        break;
    case ALLOC_WAIT:
        q->waiting = true;
        break;
    case ALLOC_RESERVE:
        t->numbers++;
        request_begin(&q->request, t->numbers, set);
        for (uint32_t r = 0; r < t->rails; r++)
            if (rail_set_contains(set, r))
                traffic_queue_command(t, nic_index(t, process_node(t, p), r), JOB_RTS, t->numbers, q->to + 1);
        break;
    }
}

/* Creates the process's next message, which starts at its time. */
static void process_make_message(struct traffic *t, uint32_t p)
{
    struct process *q = &t->processes[p];
    const struct traffic_order *o = t->order;
    double rate = o->load * t->rails * o->machine->link_rate / o->per_node;
    q->busy = false;
    q->made += traffic_exponential(&q->random, o->mean_bytes / rate);
    q->bytes = 1 + (uint64_t)traffic_exponential(&q->random, o->mean_bytes);
    uint32_t here = process_node(t, p), other = (uint32_t)(sim_random_uniform(&q->random) * (o->nodes - 1));
    q->to = other + (other >= here);
    sim_time at = sim_time_from_ns(q->made);
    traffic_schedule_event(t, at > t->net.now ? at : t->net.now, EVENT_PROCESS, p);
}

/* Counts a message at its creation time, even if its process is busy. traffic_count_unstarted adds the
 * messages that busy processes would have created. */
static void process_count_message(struct traffic *t, const struct process *q)
{
    sim_time at = sim_time_from_ns(q->made);
    if (at >= t->begin && at < t->end)
        t->bytes_made += (double)q->bytes;
}

/* ---- handlers of events ---- */

static void nic_execute_job(struct traffic *t, uint32_t j)
{
    struct job job = t->jobs[j];
    struct nic *n = &t->nics[job.nic];
    struct frame f;
    struct reserve_out out = {0};
    bool was_free = reserve_is_free(&n->reserve);
    uint32_t node = job.nic / t->rails, rail = job.nic % t->rails;
    job_free(t, j);
    switch (job.kind) {
    case JOB_RTS:
        out = reserve_local_rts(&n->reserve, job.number, job.to);
        break;
    case JOB_ABORT:
        out = reserve_local_abort(&n->reserve, job.number);
        break;
    case JOB_ACK:
        out = reserve_local_ack(&n->reserve);
        break;
    default:
        if (frame_decode(job.bytes, sizeof(job.bytes), t->rails, node + 1, &f))
            t->report->strays++;
        else
            out = reserve_frame(&n->reserve, &f);
    }
    t->report->strays += out.stray;
    for (unsigned i = 0; i < out.frames; i++)
        traffic_send_frame(t, &out.frame[i]);
    if (out.answer != RESERVE_NO_ANSWER)
        process_handle_answer(t, out.request, node, rail, out.answer == RESERVE_ANSWER_CTS);
    if (!was_free && reserve_is_free(&n->reserve))
        node_wake_process(t, node);
}

static void process_complete_message(struct traffic *t, uint32_t p)
{
    struct process *q = &t->processes[p];
    if (t->net.now >= t->begin && t->net.now < t->end) {
        t->bytes_arrived += (double)q->bytes;
        t->latency += (double)t->net.now / SIM_NS - q->made;
        t->report->messages++;
    }
    process_make_message(t, p);
}

/* Ticket of the stripe that is in flight on this rail. */
static uint32_t filter_ticket_on_rail(const struct filter *f, uint32_t rail)
{
    for (unsigned i = 0; i < f->count; i++)
        if (f->stripes[i].stripe.rail == rail && f->stripes[i].state == FILTER_UNDER_WAY)
            return filter_make_ticket(i, f->stripes[i].attempt);
    return UINT32_MAX;
}

static void on_arrived(void *ctx, uint32_t message)
{
    struct traffic *t = ctx;
    const struct message *m = &t->net.messages[message];
    uint32_t tag = m->tag, rail = m->rail, to = m->to, from = m->from;
    if (tag & TAG_CONTROL) {
        job_queue(t, tag & ~TAG_CONTROL);
        return;
    }
    struct process *q = &t->processes[tag];
    struct nic *sender = &t->nics[nic_index(t, from, rail)], *receiver = &t->nics[nic_index(t, to, rail)];
    sender->sending--;
    receiver->receiving--;
    if (q->reserved)
        traffic_queue_command(t, nic_index(t, to, rail), JOB_ACK, 0, 0);
    bool done = filter_completed(&q->filter, filter_ticket_on_rail(&q->filter, rail), (uint64_t)t->net.now,
                                 NULL) == FILTER_DONE;
    if (done)
        process_complete_message(t, tag);
    if (traffic_uses_reservation(t))
        return;
    if (!sender->sending && !sender->receiving)
        node_wake_process(t, from);
    if (!receiver->sending && !receiver->receiving)
        node_wake_process(t, to);
}

static void on_began(void *ctx, uint32_t message)
{
    struct traffic *t = ctx;
    const struct message *m = &t->net.messages[message];
    if (!(m->tag & TAG_CONTROL))
        t->nics[nic_index(t, m->to, m->rail)].receiving++;
}

static void on_event(void *ctx, const struct event *e)
{
    struct traffic *t = ctx;
    struct process *q = &t->processes[e->index];
    switch (e->kind) {
    case EVENT_PROCESS:
        process_count_message(t, q);
        q->busy = true;
        process_start_message(t, e->index);
        break;
    case EVENT_NIC:
        nic_execute_job(t, e->index);
        break;
    default:
        t->net.failed = true; /* ends the run */
    }
}

/* ---- the run ---- */

/* Adds the messages that busy processes created in the measured time but have not started. */
static void traffic_count_unstarted(struct traffic *t)
{
    uint32_t count = (uint32_t)(t->order->nodes * t->order->per_node);
    for (uint32_t p = 0; p < count; p++) {
        struct process *q = &t->processes[p];
        if (!q->busy)
            continue; /* the next message is created after the measured time */
        double rate = t->order->load * t->rails * t->order->machine->link_rate / t->order->per_node;
        while (sim_time_from_ns(q->made) < t->end) {
            q->made += traffic_exponential(&q->random, t->order->mean_bytes / rate);
            q->bytes = 1 + (uint64_t)traffic_exponential(&q->random, t->order->mean_bytes);
            sim_random_uniform(&q->random);
            process_count_message(t, q);
        }
    }
}

static bool traffic_prepare(struct traffic *t)
{
    const struct traffic_order *o = t->order;
    uint32_t count = (uint32_t)(o->nodes * o->per_node);
    if (!network_make(&t->net, o->machine, (uint32_t)o->nodes))
        return false;
    t->net.arrived = on_arrived;
    t->net.began = on_began;
    t->net.other = on_event;
    t->net.ctx = t;
    t->rails = t->net.rails;
    t->jobs_free = NONE;
    t->rules = (struct stripe_rules){.smallest = 256, .align = 1};
    t->begin = sim_time_from_ns(o->warm_us * 1000);
    t->end = t->begin + sim_time_from_ns(o->us * 1000);
    t->processes = calloc(count, sizeof(*t->processes));
    t->nics = calloc((size_t)o->nodes * t->rails, sizeof(*t->nics));
    if (!t->processes || !t->nics)
        return false;
    for (uint32_t i = 0; i < (uint32_t)o->nodes * t->rails; i++)
        reserve_open(&t->nics[i].reserve, i / t->rails + 1, i % t->rails, FRAME_PRIORITY_MAX);
    for (uint32_t p = 0; p < count; p++) {
        alloc_open(&t->processes[p].alloc, o->policy, t->rails, o->ratio, o->shortest);
        t->processes[p].random = o->seed * UINT64_C(0x9e3779b97f4a7c15) + p * UINT64_C(0xbf58476d1ce4e5b9);
        for (int i = 0; i < 8; i++)
            sim_random_uniform(&t->processes[p].random);
        process_make_message(t, p);
    }
    traffic_schedule_event(t, t->end, EVENT_END, 0);
    return true;
}

void traffic_simulate(const struct traffic_order *order, struct traffic_report *out)
{
    struct traffic t = {.order = order, .report = out};
    *out = (struct traffic_report){0};
    bool made = traffic_prepare(&t);
    if (made) {
        network_run(&t.net);
        traffic_count_unstarted(&t);
    }
    if (!made || t.net.now < t.end) {
        out->failed =
            !made ? "out of memory, or the switches cannot connect this number of nodes" : "out of memory";
    } else {
        double most = order->us * 1000 * order->machine->link_rate * order->nodes * t.rails;
        out->offered = t.bytes_made / most;
        out->accepted = t.bytes_arrived / most;
        out->latency_us = out->messages ? t.latency / 1000 / (double)out->messages : 0;
        out->waited_us = t.sent ? t.waited / 1000 / (double)t.sent : 0;
        out->stripes = t.sent ? (double)t.stripes / (double)t.sent : 0;
        out->events = t.net.events.taken;
    }
    network_free(&t.net);
    free(t.processes);
    free(t.nics);
    free(t.jobs);
}

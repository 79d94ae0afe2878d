/* rails_world.h: a few nodes with a few rails that send messages to each other with reservations, for tests
 * that explore every interleaving or follow a trace. Each node has one process, which sends one message after
 * another; frames between the adapters of a rail travel as bytes, in order for each pair. The code under test
 * is lab/mechanisms/rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TESTS_RAILS_WORLD_H
#define FP_TESTS_RAILS_WORLD_H

#include "lab/mechanisms/rails/request.h"
#include "lab/mechanisms/rails/reserve.h"
#include "test.h"

enum { NODES = 3, RAILS = 2, QUEUE = 4 };

/* The number of an event is its class in the argument about fairness. */
enum {
    REQUEST = 0,
    TIMEOUT = NODES,
    FRAME = 2 * NODES,
    DATA = FRAME + RAILS * NODES * NODES,
    EVENTS = DATA + RAILS * NODES
};

struct limits {
    uint8_t nodes, rails, messages, timeouts, bound;
    double ratio;
    /* destination of the messages of each node; its own number: all other nodes in turn */
    uint8_t to[NODES];
};

struct world_nic {
    uint8_t state, given_up, request, requested_from, grant, granted_to;
    int8_t priority, request_priority;
};

struct world_frame {
    uint8_t kind, request;
    int8_t priority;
};

struct world_process {
    uint8_t left, to;                 /* remaining messages; destination of the present message */
    uint8_t number, waiting, granted; /* members of struct request */
    uint8_t next, last;               /* number of the next request; round robin of struct alloc */
    uint8_t timeouts, data;           /* remaining timeouts; rails with a stripe in flight */
};

struct world {
    struct world_nic nic[NODES][RAILS];
    struct world_frame queue[RAILS][NODES][NODES][QUEUE]; /* [rail][from][to][place]; kind 0: empty */
    struct world_process process[NODES];
};

static struct limits the_limits;
static bool send_was_granted; /* the last event granted a process its rails */

static inline struct reserve world_get_nic(const struct world *w, unsigned node, unsigned rail)
{
    const struct world_nic *n = &w->nic[node][rail];
    return (struct reserve){.state = (enum reserve_state)n->state,
                            .rail = (uint8_t)rail,
                            .given_up = n->given_up,
                            .priority = n->priority,
                            .bound = the_limits.bound,
                            .request_priority = n->request_priority,
                            .node = node + 1,
                            .requester = node + 1,
                            .request = n->request,
                            .requested_from = n->requested_from,
                            .grant = n->grant,
                            .granted_to = n->granted_to};
}

static inline void world_set_nic(struct world *w, unsigned node, unsigned rail, const struct reserve *n)
{
    bool out = n->state == RESERVE_RESERVED || n->state == RESERVE_RECEIVING_OUT;
    w->nic[node][rail] = (struct world_nic){.state = (uint8_t)n->state,
                                            .given_up = n->given_up,
                                            .request = (uint8_t)n->request,
                                            .requested_from = (uint8_t)n->requested_from,
                                            .grant = (uint8_t)n->grant,
                                            .granted_to = (uint8_t)n->granted_to,
                                            .priority = (int8_t)n->priority,
                                            .request_priority = (int8_t)(out ? n->request_priority : 0)};
}

static inline struct alloc process_get_alloc(const struct world_process *p)
{
    struct alloc a;
    alloc_open(&a, ALLOC_DYNAMIC, the_limits.rails, the_limits.ratio, 0);
    a.last = p->last;
    return a;
}

/* Encodes a frame as bytes and decodes the bytes as the receiver will. */
static inline void world_send(struct world *w, const struct frame *f)
{
    uint8_t bytes[FRAME_BYTES];
    struct frame back;
    frame_encode(f, bytes);
    const char *wrong = frame_decode(bytes, sizeof(bytes), the_limits.rails, f->to, &back);
    EXPECT(!wrong);
    if (wrong)
        return;
    struct world_frame *q = w->queue[back.rail][back.from - 1][back.to - 1];
    unsigned i = 0;
    while (i < QUEUE && q[i].kind)
        i++;
    EXPECT(i < QUEUE);
    if (i < QUEUE)
        q[i] = (struct world_frame){back.kind, (uint8_t)back.request, (int8_t)back.priority};
}

static inline void world_apply_answer(struct world *w, unsigned node, unsigned rail, uint32_t number,
                                      bool granted);

/* Carries out the actions of the adapter's state machine. */
static inline void world_apply_nic_output(struct world *w, unsigned node, unsigned rail,
                                          const struct reserve_out *out)
{
    for (unsigned i = 0; i < out->frames; i++)
        world_send(w, &out->frame[i]);
    if (out->answer != RESERVE_NO_ANSWER)
        world_apply_answer(w, node, rail, out->request, out->answer == RESERVE_ANSWER_CTS);
}

static inline void world_apply_request_output(struct world *w, unsigned node, const struct request_out *out,
                                              uint32_t number)
{
    struct world_process *p = &w->process[node];
    if (out->verdict == REQUEST_SEND) {
        send_was_granted = true;
        p->left--;
        p->data = (uint8_t)out->send;
    }
    for (unsigned r = 0; r < the_limits.rails; r++)
        if (rail_set_contains(out->abort, r)) {
            struct reserve n = world_get_nic(w, node, r);
            struct reserve_out local = reserve_local_abort(&n, number);
            EXPECT(!local.stray);
            world_set_nic(w, node, r, &n);
            world_apply_nic_output(w, node, r, &local);
        }
}

static inline void process_set_request(struct world_process *p, const struct request *r,
                                       const struct alloc *a)
{
    p->number = (uint8_t)r->number;
    p->waiting = (uint8_t)r->waiting;
    p->granted = (uint8_t)r->granted;
    p->last = a->last;
}

static inline void world_apply_answer(struct world *w, unsigned node, unsigned rail, uint32_t number,
                                      bool granted)
{
    struct world_process *p = &w->process[node];
    struct request r = {p->number, p->waiting, p->granted};
    struct alloc a = process_get_alloc(p);
    struct request_out out = request_answer(&r, &a, number, rail, granted);
    EXPECT(out.verdict != REQUEST_IGNORED);
    process_set_request(p, &r, &a);
    world_apply_request_output(w, node, &out, number);
}

/* A process that has a message and no transfer in progress requests all rails that are free here. */
static inline bool world_request_rails(struct world *w, unsigned node)
{
    struct world_process *p = &w->process[node];
    uint32_t free = 0, set;
    if (p->left == 0 || p->number || p->data)
        return false;
    for (unsigned r = 0; r < the_limits.rails; r++)
        if (w->nic[node][r].state == RESERVE_FREE)
            free |= rail_bit(r);
    struct alloc a = process_get_alloc(p);
    if (alloc_message(&a, 1 << 20, free, &set) != ALLOC_RESERVE)
        return false;
    p->to = the_limits.to[node] != node
                ? the_limits.to[node]
                : (uint8_t)((node + 1 + p->left % (the_limits.nodes - 1)) % the_limits.nodes);
    struct request r;
    request_begin(&r, p->next, set);
    process_set_request(p, &r, &a);
    if (the_limits.timeouts) /* without timeouts no answer can be outdated, so one request number suffices */
        p->next = (uint8_t)(3 - p->next);
    for (unsigned i = 0; i < the_limits.rails; i++)
        if (rail_set_contains(set, i)) {
            struct reserve n = world_get_nic(w, node, i);
            struct reserve_out out = reserve_local_rts(&n, p->number, p->to + 1u);
            world_set_nic(w, node, i, &n);
            world_apply_nic_output(w, node, i, &out);
        }
    return true;
}

static inline bool world_apply_timeout(struct world *w, unsigned node)
{
    struct world_process *p = &w->process[node];
    if (p->timeouts == 0 || p->number == 0)
        return false;
    p->timeouts--;
    struct request r = {p->number, p->waiting, p->granted};
    struct alloc a = process_get_alloc(p);
    struct request_out out = request_timeout(&r, &a);
    uint32_t number = p->number;
    process_set_request(p, &r, &a);
    world_apply_request_output(w, node, &out, number);
    return true;
}

static inline bool world_deliver_frame(struct world *w, unsigned rail, unsigned from, unsigned to)
{
    struct world_frame *q = w->queue[rail][from][to], head = q[0];
    if (head.kind == 0)
        return false;
    memmove(q, q + 1, (QUEUE - 1) * sizeof(*q));
    memset(&q[QUEUE - 1], 0, sizeof(*q));
    struct frame f = {.kind = head.kind,
                      .rail = (uint8_t)rail,
                      .priority = head.priority,
                      .from = from + 1,
                      .to = to + 1,
                      .request = head.request};
    struct reserve n = world_get_nic(w, to, rail);
    struct reserve_out out = reserve_frame(&n, &f);
    EXPECT(!out.stray);
    world_set_nic(w, to, rail, &n);
    world_apply_nic_output(w, to, rail, &out);
    return true;
}

/* Delivers a stripe to the receiver's memory; checks that no other message used either end. */
static inline bool world_deliver_data(struct world *w, unsigned node, unsigned rail)
{
    struct world_process *p = &w->process[node];
    if (!rail_set_contains(p->data, rail))
        return false;
    p->data &= (uint8_t)~rail_bit(rail);
    struct reserve n = world_get_nic(w, p->to, rail);
    struct reserve_out out = reserve_local_ack(&n);
    EXPECT(!out.stray);
    world_set_nic(w, p->to, rail, &n);
    world_apply_nic_output(w, p->to, rail, &out);
    return true;
}

/* False if the event is certainly impossible now, which saves the caller a copy. */
static inline bool world_event_is_possible(const struct world *w, unsigned event)
{
    unsigned f = event - FRAME, d = event - DATA;
    if (event < TIMEOUT)
        return w->process[event].left && !w->process[event].number && !w->process[event].data;
    if (event < FRAME)
        return w->process[event - TIMEOUT].timeouts;
    if (event < DATA)
        return w->queue[f / (NODES * NODES)][f / NODES % NODES][f % NODES][0].kind;
    return rail_set_contains(w->process[d % NODES].data, d / NODES);
}

/* Applies the event; false: the event is impossible now. */
static inline bool world_apply_event(struct world *w, unsigned event)
{
    send_was_granted = false;
    if (event < TIMEOUT)
        return world_request_rails(w, event);
    if (event < FRAME)
        return world_apply_timeout(w, event - TIMEOUT);
    if (event < DATA) {
        event -= FRAME;
        return world_deliver_frame(w, event / (NODES * NODES), event / NODES % NODES, event % NODES);
    }
    return world_deliver_data(w, (event - DATA) % NODES, (event - DATA) / NODES);
}

/* Checks that both ends of data in flight are reserved for this data. */
static inline void world_check_reservations(const struct world *w)
{
    for (unsigned n = 0; n < the_limits.nodes; n++)
        for (unsigned r = 0; r < the_limits.rails; r++) {
            const struct world_process *p = &w->process[n];
            const struct world_nic *mine = &w->nic[n][r], *theirs = &w->nic[p->to][r];
            EXPECT((mine->state == RESERVE_RECEIVING || mine->state == RESERVE_RECEIVING_OUT) ==
                   (mine->granted_to != 0));
            if (!rail_set_contains(p->data, r))
                continue;
            EXPECT_EQ(mine->state, RESERVE_SENDING);
            EXPECT(theirs->state == RESERVE_RECEIVING || theirs->state == RESERVE_RECEIVING_OUT);
            EXPECT_EQ(theirs->granted_to, n + 1);
        }
}

static inline struct world world_init(const struct limits *limits)
{
    struct world w;
    memset(&w, 0, sizeof(w));
    the_limits = *limits;
    for (unsigned n = 0; n < limits->nodes; n++) {
        w.process[n].left = limits->messages;
        w.process[n].next = 1;
        w.process[n].to = limits->to[n];
        w.process[n].last = RAIL_NONE;
        w.process[n].timeouts = limits->timeouts;
    }
    return w;
}

/* All messages have arrived and no adapter is reserved. */
static inline bool world_is_finished(const struct world *w)
{
    for (unsigned n = 0; n < the_limits.nodes; n++) {
        if (w->process[n].left || w->process[n].data || w->process[n].number)
            return false;
        for (unsigned r = 0; r < the_limits.rails; r++)
            if (w->nic[n][r].state != RESERVE_FREE)
                return false;
    }
    for (unsigned r = 0; r < RAILS; r++)
        for (unsigned i = 0; i < NODES * NODES; i++)
            if (w->queue[r][i / NODES][i % NODES][0].kind)
                return false;
    return true;
}

#endif

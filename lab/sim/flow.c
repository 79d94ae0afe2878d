/* flow.c: simulates a stream of small messages between two nodes under flow control.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

#include "network.h"

enum kind { FRAME_DATA, FRAME_ANSWER, FRAME_CREDIT };
enum { EVENT_SENT = EVENT_OTHER, EVENT_TAKEN, EVENT_REPEAT };
enum { SENDER, RECEIVER, SIDES };

struct frame {
    enum kind kind;
    uint8_t from;
    bool waited;
    uint32_t grant;
    uint32_t next; /* next frame in the list of free or of refused frames */
};

struct side {
    struct credit credit;
    uint32_t free;    /* posted receive buffers that hold no frame */
    uint32_t to_send; /* frames that the program has not sent yet */
    sim_time busy_to; /* time at which the processor's present work ends */
    /* frames that the processor is preparing; the next frame is prepared when this number is 0 */
    uint32_t sending;
    bool refusing;        /* a frame found no buffer: later frames are refused until this frame is repeated */
    uint32_t first, last; /* list of refused frames */
};

struct flow {
    const struct flow_order *order;
    struct network net;
    struct side side[SIDES];
    struct frame *frames;
    uint32_t frames_count, frames_free;
    uint32_t taken, answers;
    struct flow_report report;
};

static void flow_schedule_event(struct flow *f, sim_time at, uint32_t kind, uint32_t what)
{
    if (!event_insert(&f->net.events, at, kind, what))
        f->net.failed = true;
}

static uint32_t flow_new_frame(struct flow *f)
{
    uint32_t i = f->frames_free;
    if (i != NONE) {
        f->frames_free = f->frames[i].next;
        return i;
    }
    i = f->frames_count;
    if ((i & (i - 1)) == 0) {
        struct frame *larger = realloc(f->frames, (i ? 2 * (size_t)i : 1) * sizeof(*larger));
        if (!larger) {
            f->net.failed = true;
            return NONE;
        }
        f->frames = larger;
    }
    f->frames_count++;
    return i;
}

static sim_time flow_charge_time(struct flow *f, struct side *s, double nanoseconds)
{
    if (s->busy_to < f->net.now)
        s->busy_to = f->net.now;
    return s->busy_to += sim_time_from_ns(nanoseconds);
}

/* The processor prepares a frame, which is sent when the preparation is complete. */
static void flow_prepare_frame(struct flow *f, uint8_t from, enum kind kind, bool waited)
{
    struct side *s = &f->side[from];
    const uint32_t i = flow_new_frame(f);
    if (i == NONE)
        return;
    f->frames[i] = (struct frame){
        .kind = kind, .from = from, .waited = waited, .grant = credit_take_owed(&s->credit, UINT32_MAX)};
    s->sending++;
    flow_schedule_event(f, flow_charge_time(f, s, f->order->machine->send_ns), EVENT_SENT, i);
}

/* Prepares the program's next frame if a frame is left and a credit is available. */
static void flow_prepare_next_frame(struct flow *f, uint8_t from)
{
    struct side *s = &f->side[from];
    bool waited, already = s->credit.starved;
    if (s->sending || s->to_send == 0)
        return;
    if (!credit_take(&s->credit, &waited)) {
        f->report.waits += !already;
        return; /* the next grant calls this function again */
    }
    s->to_send--;
    flow_prepare_frame(f, from, from == SENDER ? FRAME_DATA : FRAME_ANSWER, waited);
}

static void flow_send_frame(struct flow *f, uint32_t i)
{
    const struct frame *x = &f->frames[i];
    network_send(&f->net, x->from, 1u - x->from, x->kind == FRAME_CREDIT ? 0 : f->order->bytes, i);
}

/* ---- The receiving end ---- */

static void flow_refuse(struct flow *f, struct side *s, uint32_t i)
{
    f->report.refused++;
    f->frames[i].next = NONE;
    if (!s->refusing)
        s->first = i;
    else
        f->frames[s->last].next = i;
    s->last = i;
    if (!s->refusing)
        flow_schedule_event(f, f->net.now + sim_time_from_ns(f->order->rnr_ns), EVENT_REPEAT,
                            f->frames[i].from);
    s->refusing = true;
}

static void flow_repeat_refused(struct flow *f, uint8_t from)
{
    struct side *s = &f->side[1 - from];
    s->refusing = false;
    for (uint32_t i = s->first, next; i != NONE; i = next) {
        next = f->frames[i].next;
        flow_send_frame(f, i);
    }
}

/* Credit messages need no posted buffer: they have buffers of their own. */
static void on_arrived(void *ctx, uint32_t message)
{
    struct flow *f = ctx;
    const uint32_t i = f->net.messages[message].tag;
    struct side *s = &f->side[1 - f->frames[i].from];
    const bool counts = f->frames[i].kind != FRAME_CREDIT;
    if (counts && (s->refusing || s->free == 0)) {
        flow_refuse(f, s, i);
        return;
    }
    s->free -= counts;
    flow_schedule_event(f, flow_charge_time(f, s, f->order->machine->receive_ns), EVENT_TAKEN, i);
}

/* Delivers a message to the program. */
static void flow_deliver(struct flow *f, uint8_t side)
{
    if (side == RECEIVER && ++f->taken % f->order->window == 0)
        f->side[RECEIVER].to_send++;
    if (side == SENDER && ++f->answers < f->order->windows)
        f->side[SENDER].to_send += f->order->window;
}

static void flow_receive_frame(struct flow *f, uint32_t i)
{
    const struct frame x = f->frames[i];
    const uint8_t side = (uint8_t)(1 - x.from);
    struct side *s = &f->side[side];
    f->frames[i].next = f->frames_free;
    f->frames_free = i;
    credit_add_granted(&s->credit, x.grant);
    if (x.kind != FRAME_CREDIT) {
        s->free += credit_frame_consumed(&s->credit, x.waited);
        flow_deliver(f, side);
    }
    flow_prepare_next_frame(f, side);
    if (credit_message_is_due(&s->credit)) {
        f->report.credit_messages++;
        flow_prepare_frame(f, side, FRAME_CREDIT, false);
    }
}

static void on_event(void *ctx, const struct event *e)
{
    struct flow *f = ctx;
    if (e->kind == EVENT_TAKEN)
        flow_receive_frame(f, e->index);
    else if (e->kind == EVENT_REPEAT)
        flow_repeat_refused(f, (uint8_t)e->index);
    else {
        const uint8_t from = f->frames[e->index].from;
        flow_send_frame(f, e->index);
        f->side[from].sending--;
        flow_prepare_next_frame(f, from);
    }
}

void flow_simulate(const struct flow_order *order, struct flow_report *out)
{
    struct flow *f = calloc(1, sizeof(*f));
    *out = (struct flow_report){.failed = "memory ran out"};
    if (!f || !network_make(&f->net, order->machine, 2)) {
        free(f);
        return;
    }
    f->order = order;
    f->frames_free = NONE;
    f->net.ctx = f;
    f->net.arrived = on_arrived;
    f->net.other = on_event;
    for (int s = 0; s < SIDES; s++) {
        credit_start(&f->side[s].credit, &order->rules, order->rules.first);
        f->side[s].free = order->rules.first;
    }
    f->side[SENDER].to_send = order->window;
    flow_prepare_next_frame(f, SENDER);
    network_run(&f->net);
    f->report.us = (double)f->side[SENDER].busy_to / SIM_US;
    f->report.messages = f->taken;
    f->report.most_posted = f->side[RECEIVER].credit.most_posted;
    f->report.failed = f->net.failed                  ? "memory ran out"
                       : f->answers != order->windows ? "frames wait for each other"
                                                      : NULL;
    *out = f->report;
    network_free(&f->net);
    free(f->frames);
    free(f);
}

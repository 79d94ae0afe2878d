/* stream.c: simulates a stream of large messages between two nodes, striped over rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <math.h>
#include <string.h>

#include "net/rails/filter.h"

const struct machine stream_machine = {
    .copy_rate = 1,
    .reduce_rate = 1,
    .message_ns = 300,
    .link_rate = 1,
    .link_ns = 100,
    .switch_ns = 200,
    .bus_rate = 1,
    .bus_ns = 400,
    .bus_shared = 1,
    .mtu = 2048,
    .header_bytes = 30,
    .buffers = 8,
    .radix = 24,
    .rails = 2,
};

enum { EVENT_SLICE = EVENT_OTHER, EVENT_DISTURB, EVENT_CALM };

struct slot {
    struct filter filter;
    sim_time started;
};

struct stream {
    const struct stream_order *order;
    struct stream_report *report;
    struct network net;
    struct adapt adapt[2]; /* one state of the adaptive policy for each direction */
    struct slot slots[2][STREAM_WINDOW_MAX];
    struct stripe_rules rules;
    sim_time begin, slice;
    double bytes, sliced, latency;
};

static void stream_send_message(struct stream *s, uint32_t from, uint32_t slot)
{
    struct slot *m = &s->slots[from][slot];
    struct stripe stripes[RAILS_MAX];
    const struct stream_order *o = s->order;
    uint32_t ticket, up = rails_all(s->net.rails);
    const double *weight = o->adaptive ? s->adapt[from].weight : o->weight;
    unsigned count = stripe_cut(&s->rules, weight, up,
                                o->adaptive ? adapt_rails_to_probe(&s->adapt[from]) : 0, o->bytes, stripes);
    m->started = s->net.now;
    filter_open(&m->filter, stripes, count, up);
    for (int i; (i = filter_next(&m->filter, (uint64_t)s->net.now, &ticket)) >= 0;) {
        const struct stripe *t = &m->filter.stripes[i].stripe;
        network_send_on(&s->net, t->rail, from, 1 - from, t->bytes, slot << 16 | ticket, false);
    }
}

static void on_arrived(void *ctx, uint32_t message)
{
    struct stream *s = ctx;
    const struct message *m = &s->net.messages[message];
    uint32_t from = m->from, slot = m->tag >> 16;
    struct slot *done = &s->slots[from][slot];
    struct adapt *adapt = s->order->adaptive ? &s->adapt[from] : NULL;
    if (filter_completed(&done->filter, m->tag & 0xffff, (uint64_t)s->net.now, adapt) != FILTER_DONE)
        return;
    if (s->net.now >= s->begin) {
        s->bytes += (double)s->order->bytes;
        s->sliced += (double)s->order->bytes;
        s->latency += (double)(s->net.now - done->started) / SIM_US;
        s->report->messages++;
    }
    stream_send_message(s, from, slot);
}

static void stream_end_slice(struct stream *s)
{
    struct stream_report *r = s->report;
    const double *weight = s->order->adaptive ? s->adapt[0].weight : s->order->weight;
    double sum = weight[0] + weight[1];
    r->curve[r->slices] = s->sliced * SIM_NS / (double)s->slice;
    for (int i = 0; i < 2; i++)
        r->share[r->slices][i] = weight[i] / sum;
    s->sliced = 0;
    if (++r->slices == STREAM_SLICES)
        s->net.failed = true; /* ends the run */
}

static void on_event(void *ctx, const struct event *e)
{
    struct stream *s = ctx;
    const struct stream_order *o = s->order;
    uint32_t rail = (uint32_t)o->disturbed_rail;
    if (e->kind == EVENT_SLICE)
        stream_end_slice(s);
    else
        network_rail_rate(&s->net, rail, o->scale[rail] * (e->kind == EVENT_DISTURB ? o->disturbed : 1));
}

void stream_simulate(const struct stream_order *order, struct stream_report *out)
{
    struct stream s = {.order = order,
                       .report = out,
                       .rules = {.smallest = order->smallest, .align = 64},
                       .begin = (sim_time)(order->warm_us * SIM_US),
                       .slice = (sim_time)(order->us * SIM_US / STREAM_SLICES)};
    *out = (struct stream_report){0};
    if (order->window > STREAM_WINDOW_MAX || !network_make(&s.net, order->machine, 2)) {
        out->failed = "out of memory, or the window is too large";
        return;
    }
    s.net.arrived = on_arrived;
    s.net.other = on_event;
    s.net.ctx = &s;
    for (uint32_t r = 0; r < s.net.rails; r++)
        network_rail_rate(&s.net, r, order->scale[r]);
    for (int i = 1; i <= STREAM_SLICES; i++)
        s.net.failed |= !event_insert(&s.net.events, s.begin + i * s.slice, EVENT_SLICE, 0);
    if (order->disturbed_rail >= 0) {
        sim_time from = (sim_time)(order->disturbed_from_us * SIM_US),
                 to = (sim_time)(order->disturbed_to_us * SIM_US);
        s.net.failed |= !event_insert(&s.net.events, s.begin + from, EVENT_DISTURB, 0);
        s.net.failed |= !event_insert(&s.net.events, s.begin + to, EVENT_CALM, 0);
    }
    for (uint32_t from = 0; from < 1u + order->bidirectional; from++) {
        adapt_open(&s.adapt[from], s.net.rails, order->alpha);
        for (int i = 0; i < order->window; i++)
            stream_send_message(&s, from, (uint32_t)i);
    }
    network_run(&s.net);
    if (out->slices < STREAM_SLICES)
        out->failed = "out of memory";
    out->rate = s.bytes / (order->us * 1000);
    out->latency_us = out->messages ? s.latency / (double)out->messages : 0;
    out->events = s.net.events.taken;
    memcpy(out->weight, order->adaptive ? s.adapt[0].weight : order->weight, sizeof(out->weight));
    network_free(&s.net);
}

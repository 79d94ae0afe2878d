/* multicast.c: nodes that send and receive by the library's multicast state machines. A node's processor
 * passes one packet or acknowledgement after the other to the state machines. The root sends no separate
 * packets to co-roots: co-roots take part in the multicast and acknowledge to the root, as in the library.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "multicast.h"

#include <stdlib.h>
#include <string.h>

#include "net/mcast/sender.h"
#include "net/mcast/stream.h"
#include "net/mcast/ack_tree.h"

enum { ACK_BYTES = 24, AGAIN = 64 };
enum { EVENT_HANDLED = EVENT_OTHER, EVENT_ROOT, EVENT_TIMER, EVENT_DELIVERED };

/* Message tags: the number of a packet and whether the packet requests an acknowledgement, or the index of
 * an acknowledgement. */
#define TAG_ASK   UINT32_C(0x80000000)
#define TAG_ACK   UINT32_C(0x40000000)
#define TAG_EMPTY UINT32_C(0x20000000) /* the packet carries no data and only requests an acknowledgement */
#define TAG_VALUE UINT32_C(0x1fffffff)

struct member {
    struct mcast_stream stream;
    struct mcast_sender sender; /* at the root and the co-roots */
    struct mcast_child *child;
    uint64_t *sent;
    uint32_t parent, index, taken;
    sim_time busy_to, timer_at;
};

/* Work for a node's processor. */
struct item {
    uint32_t node, tag, from, next;
    struct mcast_ack ack;
};

struct group {
    const struct multicast_order *order;
    struct multicast_report *report;
    struct network net;
    struct mcast_tree tree;
    struct mcast_rules relay_rules; /* co-roots repeat packets to each leaf alone, never by multicast */
    struct member *members;
    struct item *items;
    uint32_t items_count, items_free, posted, unfinished;
    sim_time last;
    bool root_waits; /* an event that sends the next packet is scheduled */
};

struct mcast_rules multicast_rules(uint32_t window, uint32_t aggregate, double timeout_us)
{
    return mcast_rules_derive(window, aggregate, aggregate > 1, (uint64_t)(timeout_us * 1000));
}

static uint64_t group_get_time_ns(const struct group *g)
{
    return (uint64_t)(g->net.now / SIM_NS);
}

static void multicast_schedule_event(struct group *g, sim_time at, uint32_t kind, uint32_t what)
{
    if (!event_insert(&g->net.events, at, kind, what))
        g->net.failed = true;
}

static sim_time multicast_charge_time(struct group *g, uint32_t node, double nanoseconds)
{
    struct member *m = &g->members[node];
    if (m->busy_to < g->net.now)
        m->busy_to = g->net.now;
    return m->busy_to += sim_time_from_ns(nanoseconds);
}

static uint32_t group_new_item(struct group *g)
{
    uint32_t i = g->items_free;
    if (i != NONE) {
        g->items_free = g->items[i].next;
        return i;
    }
    i = g->items_count;
    if ((i & (i - 1)) == 0) {
        struct item *larger = realloc(g->items, (i ? 2 * (size_t)i : 1) * sizeof(*larger));
        if (!larger) {
            g->net.failed = true;
            return NONE;
        }
        g->items = larger;
    }
    g->items_count++;
    return i;
}

/* ---- sending ---- */

/* Sets the timer of a node for acknowledgements that the node has to send or expects. */
static void node_set_timer(struct group *g, uint32_t node)
{
    struct member *m = &g->members[node];
    uint64_t due = m->stream.due < m->sender.deadline ? m->stream.due : m->sender.deadline;
    if (due == MCAST_NEVER)
        return;
    sim_time at = (sim_time)due * SIM_NS;
    at = at < g->net.now ? g->net.now : at;
    if (m->timer_at > g->net.now && m->timer_at <= at)
        return;
    m->timer_at = at;
    multicast_schedule_event(g, at, EVENT_TIMER, node);
}

/* Repeats packets of the root or a co-root: to one child, or by multicast. */
static void node_repeat_packets(struct group *g, uint32_t node, const struct mcast_resend *r, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tag = r[i].seq | TAG_ASK | (r[i].ask ? TAG_EMPTY : 0),
                 bytes = r[i].ask ? ACK_BYTES : g->order->bytes;
        multicast_charge_time(g, node, g->net.machine.send_ns);
        g->report->again += !r[i].ask;
        if (r[i].to == MCAST_ALL)
            network_multicast(&g->net, node, bytes, tag);
        else
            network_send(&g->net, node, mcast_tree_child(&g->tree, node, r[i].to), bytes, tag);
    }
}

/* Schedules the next packet of the root if the window permits; the root sends a packet when its processor
 * is free. */
static void multicast_continue_root(struct group *g)
{
    struct member *root = &g->members[0];
    if (g->root_waits || g->posted == g->order->packets)
        return;
    if (mcast_sender_free_slots(&root->sender) == 0) {
        mcast_sender_window_full(&root->sender, group_get_time_ns(g));
        node_set_timer(g, 0);
        return;
    }
    g->root_waits = true;
    multicast_schedule_event(
        g, multicast_charge_time(g, 0, g->net.machine.send_ns + g->order->bytes / g->net.machine.copy_rate),
        EVENT_ROOT, 0);
}

static void root_send_packet(struct group *g)
{
    bool ask;
    g->root_waits = false;
    uint32_t seq = mcast_sender_add_packet(&g->members[0].sender, group_get_time_ns(g), &ask);
    network_multicast(&g->net, 0, g->order->bytes, seq | (ask ? TAG_ASK : 0));
    g->posted++;
    node_set_timer(g, 0);
    multicast_continue_root(g);
}

/* ---- receiving ---- */

static uint32_t relay_count_free_slots(const struct group *g, uint32_t node)
{
    const struct mcast_sender *s = &g->members[node].sender;
    return s->children ? g->order->rules.window - (s->next - s->base) : UINT32_MAX;
}

static void multicast_acknowledge(struct group *g, uint32_t node)
{
    struct member *m = &g->members[node];
    if (!mcast_stream_ack_is_due(&m->stream, group_get_time_ns(g))) {
        node_set_timer(g, node);
        return;
    }
    uint32_t i = group_new_item(g);
    if (i == NONE)
        return;
    g->items[i] = (struct item){.node = m->parent, .tag = TAG_ACK, .from = node, .next = NONE};
    g->items[i].ack =
        mcast_stream_ack(&m->stream, &g->order->rules, g->order->rules.ring, relay_count_free_slots(g, node));
    g->report->acks++;
    multicast_charge_time(g, node, g->net.machine.send_ns);
    network_send(&g->net, node, m->parent, ACK_BYTES, TAG_ACK | i);
}

static void node_handle_packet(struct group *g, uint32_t node, uint32_t tag)
{
    struct member *m = &g->members[node];
    bool ask;
    if (tag & TAG_EMPTY) {
        mcast_stream_request_ack(&m->stream);
        multicast_acknowledge(g, node);
        return;
    }
    struct mcast_arrival a = {.seq = tag & TAG_VALUE,
                              .wanted = true,
                              .ask = tag & TAG_ASK,
                              .room = g->order->rules.ring,
                              .relay = relay_count_free_slots(g, node),
                              .now = group_get_time_ns(g)};
    mcast_stream_classify_packet(&m->stream, &g->order->rules, m->index, &a);
    while (mcast_stream_has_packet(&m->stream))
        mcast_stream_packet_taken(&m->stream);
    while (m->sender.children && m->sender.next != m->stream.next)
        mcast_sender_add_packet(&m->sender, group_get_time_ns(g), &ask);
    if (m->taken != m->stream.taken && m->stream.taken == g->order->packets) {
        g->unfinished--;
        g->last = g->net.now;
    }
    m->taken = m->stream.taken;
    multicast_acknowledge(g, node);
    node_set_timer(g, node);
}

static void node_handle_ack(struct group *g, const struct item *ack)
{
    struct mcast_resend out[AGAIN] = {{0}};
    struct member *m = &g->members[ack->node];
    uint32_t child = g->members[ack->from].index;
    bool full = m->sender.children && ack->node && relay_count_free_slots(g, ack->node) == 0;
    mcast_sender_apply_ack(&m->sender, child, &ack->ack, group_get_time_ns(g));
    if (ack->ack.early)
        node_repeat_packets(g, ack->node, out,
                            mcast_sender_list_resends(&m->sender, child, group_get_time_ns(g), out, AGAIN));
    if (full &&
        relay_count_free_slots(g, ack->node)) { /* the last acknowledgement to the root reported no room */
        mcast_stream_buffers_freed(&m->stream);
        multicast_acknowledge(g, ack->node);
    }
    node_set_timer(g, ack->node);
    if (ack->node == 0)
        multicast_continue_root(g);
    if (ack->node == 0 && mcast_sender_is_idle(&m->sender) && g->posted == g->order->packets)
        g->report->root_us = (double)g->net.now / SIM_US;
}

static void on_handled(struct group *g, uint32_t i)
{
    struct item item = g->items[i];
    g->items[i].next = g->items_free;
    g->items_free = i;
    if (item.tag & TAG_ACK)
        node_handle_ack(g, &item);
    else
        node_handle_packet(g, item.node, item.tag);
}

static void on_timer(struct group *g, uint32_t node)
{
    struct mcast_resend out[AGAIN] = {{0}};
    struct member *m = &g->members[node];
    if (m->timer_at > g->net.now)
        return; /* an outdated event: the timer was set to a later time */
    m->timer_at = 0;
    if (m->sender.children)
        node_repeat_packets(g, node, out, mcast_sender_timeout(&m->sender, group_get_time_ns(g), out, AGAIN));
    if (node && mcast_stream_ack_is_due(&m->stream, group_get_time_ns(g)))
        multicast_acknowledge(g, node);
    node_set_timer(g, node);
}

/* ---- called by the network ---- */

/* The node's processor handles an item when it is free. An acknowledgement was written to memory by RDMA
 * and costs ack_ns instead of a receive. */
static void multicast_schedule_item(struct group *g, uint32_t i)
{
    const struct item *item = &g->items[i];
    const struct machine *m = &g->net.machine;
    const double bytes = item->tag & TAG_EMPTY ? 0 : g->order->bytes;
    const double takes = item->tag & TAG_ACK ? m->ack_ns : m->receive_ns + bytes / m->copy_rate;
    multicast_schedule_event(g, multicast_charge_time(g, item->node, takes), EVENT_HANDLED, i);
}

static uint32_t node_new_packet_item(struct group *g, uint32_t node, uint32_t tag)
{
    uint32_t i = group_new_item(g);
    if (i != NONE)
        g->items[i] = (struct item){.node = node, .tag = tag, .next = NONE};
    return i;
}

static void on_delivered(void *ctx, uint32_t message, uint32_t node)
{
    struct group *g = ctx;
    uint32_t i = node ? node_new_packet_item(g, node, g->net.messages[message].tag) : NONE;
    if (i != NONE)
        multicast_schedule_event(
            g, g->net.now + sim_time_from_ns(machine_multicast_ns(&g->net.machine, g->order->bytes)),
            EVENT_DELIVERED, i);
}

static void on_arrived(void *ctx, uint32_t message)
{
    struct group *g = ctx;
    const struct message *m = &g->net.messages[message];
    uint32_t i = m->tag & TAG_ACK ? m->tag & TAG_VALUE : node_new_packet_item(g, m->to, m->tag);
    if (i != NONE)
        multicast_schedule_item(g, i);
}

static void on_event(void *ctx, const struct event *e)
{
    struct group *g = ctx;
    if (e->kind == EVENT_HANDLED)
        on_handled(g, e->index);
    else if (e->kind == EVENT_ROOT)
        root_send_packet(g);
    else if (e->kind == EVENT_DELIVERED)
        multicast_schedule_item(g, e->index);
    else
        on_timer(g, e->index);
}

static bool group_open_member(struct group *g, uint32_t node)
{
    struct member *m = &g->members[node];
    uint32_t children = mcast_tree_children(&g->tree, node);
    const struct mcast_rules *rules = node ? &g->relay_rules : &g->order->rules;
    m->parent = mcast_tree_parent(&g->tree, node);
    m->index = node ? mcast_tree_index(&g->tree, node) : 0;
    mcast_stream_open(&m->stream, &g->order->rules);
    m->sender.deadline = MCAST_NEVER;
    if (children == 0)
        return true;
    m->child = calloc(children, sizeof(*m->child));
    m->sent = calloc(rules->window, sizeof(*m->sent));
    if (!m->child || !m->sent)
        return false;
    mcast_sender_open(&m->sender, rules, m->child, children, m->sent);
    g->report->most_children = children > g->report->most_children ? children : g->report->most_children;
    return true;
}

static bool multicast_prepare(struct group *g)
{
    const struct multicast_order *o = g->order;
    if (o->nodes < 2 || o->collectors < 1 || o->collectors > o->nodes ||
        !network_make(&g->net, o->machine, o->nodes))
        return false;
    g->net.arrived = on_arrived;
    g->net.delivered = on_delivered;
    g->net.other = on_event;
    g->net.ctx = g;
    g->tree = (struct mcast_tree){.members = o->nodes, .root = 0, .collectors = o->collectors};
    g->relay_rules = o->rules;
    g->relay_rules.few = UINT32_MAX;
    g->unfinished = o->nodes - 1;
    g->members = calloc(o->nodes, sizeof(*g->members));
    for (uint32_t n = 0; g->members && n < o->nodes; n++)
        if (!group_open_member(g, n))
            return false;
    return g->members != NULL;
}

void multicast_simulate(const struct multicast_order *order, struct multicast_report *out)
{
    struct group g = {.order = order, .report = out, .items_free = NONE};
    *out = (struct multicast_report){0};
    bool made = multicast_prepare(&g);
    if (made) {
        multicast_continue_root(&g);
        network_run(&g.net);
    }
    if (!made || g.net.failed)
        out->failed = "out of memory, or the switches cannot connect this number of nodes";
    else if (g.unfinished)
        out->failed =
            "some nodes never got all packets: this is a defect of the protocol or of the simulator";
    out->us = (double)g.last / SIM_US;
    out->events = g.net.events.taken;
    out->lost = g.net.lost;
    for (uint32_t n = 0; g.members && n < order->nodes; n++) {
        free(g.members[n].child);
        free(g.members[n].sent);
    }
    free(g.members);
    free(g.items);
    network_free(&g.net);
}

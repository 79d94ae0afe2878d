/* network.c: links, packets and messages. See network.h for the rules.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static sim_time ns(double nanoseconds)
{
    return (sim_time)(nanoseconds * SIM_NS + 0.5);
}

static bool is_bus(const struct network *n, uint32_t link)
{
    return link >= n->bus_first;
}

/* An adapter: a node on a rail. */
static uint32_t port_of(const struct network *n, uint32_t node, uint32_t rail)
{
    return node * n->rails + rail;
}

/* Bus links: even ones lead from memory to the adapter, odd ones back. */
static uint32_t bus_of(const struct network *n, uint32_t port, bool to_memory)
{
    return n->bus_first + 2 * port + to_memory;
}

/* Links of a rail's tree are those of the tree, counted on from where the rail's begin. */
static uint32_t rail_first(const struct network *n, uint32_t rail)
{
    return rail * 2 * n->tree.cables;
}

static bool has_bus(const struct network *n)
{
    return n->machine.bus_rate > 0;
}

/* What a bus link shares its rate with. Directions share, adapters of a node share, both do, or neither. */
static uint32_t bus_medium(const struct network *n, uint32_t link)
{
    uint32_t port = (link - n->bus_first) / 2, direction = (link - n->bus_first) % 2;
    if (n->machine.bus_node != 0)
        port = port / n->rails * n->rails;
    return bus_of(n, port, n->machine.bus_shared == 0 && direction);
}

static void link_make(struct network *n, uint32_t index)
{
    struct link *l = &n->links[index];
    l->first = l->last = l->end_node = NONE;
    l->free_count = (uint8_t)n->buffers;
    l->wake_at = NEVER;
    l->medium = index;
    if (is_bus(n, index)) {
        l->medium = bus_medium(n, index);
        l->end_node = (index - n->bus_first) / 2 / n->rails;
        l->rail = (index - n->bus_first) / 2 % n->rails;
        return;
    }
    l->rail = index / (2 * n->tree.cables);
    l->end = tree_end(&n->tree, index - rail_first(n, l->rail));
    if (l->end.level < 0)
        l->end_node = l->end.group;
}

bool network_make(struct network *n, const struct machine *m, uint32_t nodes)
{
    *n = (struct network){.machine = *m, .packets_free = NONE, .messages_free = NONE};
    if (!tree_make(&n->tree, nodes, (uint32_t)m->radix))
        return false;
    n->rails = m->rails > 1 ? (uint32_t)m->rails : 1;
    size_t queues = 2 * (size_t)nodes * n->rails;
    n->bus_first = rail_first(n, n->rails);
    n->links_count = n->bus_first + (has_bus(n) ? 2 * nodes * n->rails : 0);
    n->buffers = (uint32_t)m->buffers;
    n->links = calloc(n->links_count, sizeof(*n->links));
    n->soon_at = malloc((size_t)n->links_count * n->buffers * sizeof(*n->soon_at));
    n->free_at = calloc(n->links_count, sizeof(*n->free_at));
    n->used_by = calloc(n->links_count, sizeof(*n->used_by));
    n->rail_scale = calloc(n->rails, sizeof(*n->rail_scale));
    n->node_first = malloc(queues * sizeof(*n->node_first));
    n->node_last = malloc(queues * sizeof(*n->node_last));
    if (!n->links || !n->soon_at || !n->free_at || !n->used_by || !n->rail_scale || !n->node_first ||
        !n->node_last) {
        network_free(n);
        return false;
    }
    for (size_t i = 0; i < queues; i++)
        n->node_first[i] = n->node_last[i] = NONE;
    for (uint32_t r = 0; r < n->rails; r++)
        n->rail_scale[r] = 1;
    for (uint32_t i = 0; i < n->links_count; i++) {
        link_make(n, i);
        n->used_by[i] = NONE;
    }
    return true;
}

void network_rail_rate(struct network *n, uint32_t rail, double scale)
{
    n->rail_scale[rail] = scale;
}

void network_free(struct network *n)
{
    free(n->links);
    free(n->soon_at);
    free(n->free_at);
    free(n->used_by);
    free(n->rail_scale);
    free(n->packets);
    free(n->messages);
    free(n->node_first);
    free(n->node_last);
    event_queue_free(&n->events);
    memset(n, 0, sizeof(*n));
}

static void put(struct network *n, sim_time at, uint32_t kind, uint32_t what)
{
    if (!event_put(&n->events, at, kind, what))
        n->failed = true;
}

/* One more element of an array that grows; false when memory ran out. */
static bool grow(struct network *n, void **array, uint32_t count, size_t size)
{
    if (count && (count & (count - 1)))
        return true;
    void *larger = realloc(*array, (count ? 2 * (size_t)count : 1) * size);
    if (!larger) {
        n->failed = true;
        return false;
    }
    *array = larger;
    return true;
}

static uint32_t packet_new(struct network *n)
{
    uint32_t p = n->packets_free;
    if (p != NONE) {
        n->packets_free = n->packets[p].next;
        return p;
    }
    if (!grow(n, (void **)&n->packets, n->packets_count, sizeof(*n->packets)))
        return NONE;
    return n->packets_count++;
}

static uint32_t message_new(struct network *n)
{
    uint32_t m = n->messages_free;
    if (m != NONE) {
        n->messages_free = n->messages[m].next;
        return m;
    }
    if (!grow(n, (void **)&n->messages, n->messages_count, sizeof(*n->messages)))
        return NONE;
    return n->messages_count++;
}

/* How long a packet keeps a link busy. */
static sim_time crossing(const struct network *n, uint32_t link, const struct packet *p)
{
    const struct machine *m = &n->machine;
    if (is_bus(n, link))
        return ns(p->bytes / m->bus_rate);
    uint32_t rail = n->links[link].rail, in_tree = link - rail_first(n, rail);
    sim_time time = ns((p->bytes + m->header_bytes) / (m->link_rate * n->rail_scale[rail]));
    /* The sending adapter takes a while for each message, whatever its size. */
    bool leaves_node = in_tree % 2 == 0 && in_tree / 2 < n->tree.nodes;
    sim_time least = ns(m->message_ns);
    return leaves_node && p->begins && time < least ? least : time;
}

static sim_time delay(const struct network *n, uint32_t link)
{
    if (is_bus(n, link))
        return ns(n->machine.bus_ns);
    return ns(n->machine.link_ns + (n->links[link].end_node == NONE ? n->machine.switch_ns : 0));
}

static void link_wake(struct network *n, uint32_t link, sim_time at)
{
    if (n->links[link].wake_at <= at)
        return;
    n->links[link].wake_at = at;
    put(n, at, EVENT_LINK, link);
}

/* The i-th of the times at which buffers will be free, earliest first. */
static sim_time *soon_at(struct network *n, uint32_t link, uint32_t i)
{
    uint32_t at = n->links[link].soon_first + i;
    return &n->soon_at[(size_t)link * n->buffers + (at < n->buffers ? at : at - n->buffers)];
}

/* A buffer at the link's far end will be free at a time from now on. */
static void buffer_release(struct network *n, uint32_t link, sim_time at)
{
    struct link *l = &n->links[link];
    uint32_t i = l->soon++;
    for (; i > 0 && *soon_at(n, link, i - 1) > at; i--)
        *soon_at(n, link, i) = *soon_at(n, link, i - 1);
    *soon_at(n, link, i) = at;
    if (l->first != NONE)
        link_wake(n, link, at > n->now ? at : n->now);
}

/* Counts buffers that are free by now. */
static void buffers_settle(struct network *n, uint32_t link)
{
    struct link *l = &n->links[link];
    while (l->soon && *soon_at(n, link, 0) <= n->now) {
        l->soon--;
        l->free_count++;
        l->soon_first = (uint8_t)(l->soon_first + 1u < n->buffers ? l->soon_first + 1 : 0);
    }
}

static void feed(struct network *n, uint32_t node, uint32_t rail);

/* The packet leaves for the link's far end. */
static void start(struct network *n, uint32_t link)
{
    struct link *l = &n->links[link];
    uint32_t index = l->first;
    struct packet *p = &n->packets[index];
    sim_time end = n->now + crossing(n, link, p);
    if (end < p->tail) /* what feeds it is slower than the link */
        end = p->tail;
    p->tail = end + delay(n, link);
    l->first = p->next;
    if (l->first == NONE)
        l->last = NONE;
    l->free_count--;
    n->free_at[l->medium] = end;
    n->used_by[l->medium] = link;
    l->yielded = false;
    uint32_t held = p->held, from = n->messages[p->message].from;
    p->held = link;
    bool last_hop = l->end_node != NONE && (is_bus(n, link) ? (link - n->bus_first) % 2 == 1 : !has_bus(n));
    put(n, last_hop ? p->tail : n->now + delay(n, link), EVENT_PACKET, index);
    if (held == NONE)
        feed(n, from, l->rail);
    else
        buffer_release(n, held, end + delay(n, held)); /* the news of it travels back */
}

static bool shares(const struct network *n, uint32_t link)
{
    return is_bus(n, link) && (n->machine.bus_shared != 0 || (n->machine.bus_node != 0 && n->rails > 1));
}

/* Lets packets go on while the link can take them. */
static void link_look(struct network *n, uint32_t link)
{
    struct link *l = &n->links[link];
    buffers_settle(n, link);
    while (l->first != NONE) {
        if (n->free_at[l->medium] > n->now) {
            link_wake(n, link, n->free_at[l->medium]);
            return;
        }
        if (l->free_count == 0) {
            if (l->soon)
                link_wake(n, link, *soon_at(n, link, 0));
            return; /* else the next release wakes it */
        }
        if (n->used_by[l->medium] == link && shares(n, link) && !l->yielded) {
            l->yielded = true; /* whoever else waits for the bus at this moment goes first */
            link_wake(n, link, n->now);
            return;
        }
        start(n, link);
    }
}

static void link_offer(struct network *n, uint32_t link, uint32_t packet)
{
    struct link *l = &n->links[link];
    n->packets[packet].next = NONE;
    if (l->last == NONE)
        l->first = packet;
    else
        n->packets[l->last].next = packet;
    l->last = packet;
    link_look(n, link);
}

/* The first link of all messages of an adapter. */
static uint32_t way_out(const struct network *n, uint32_t node, uint32_t rail)
{
    return has_bus(n) ? bus_of(n, port_of(n, node, rail), false) : rail_first(n, rail) + 2 * node;
}

/* Cuts the adapter's next packet off its first message when the last one has left: it never has more than one waiting. */
static void feed(struct network *n, uint32_t node, uint32_t rail)
{
    uint32_t queue = 2 * port_of(n, node, rail) + 1;
    if (n->node_first[queue] == NONE)
        queue--;
    uint32_t index = n->node_first[queue];
    if (index == NONE)
        return;
    struct message *m = &n->messages[index];
    uint32_t p = packet_new(n);
    if (p == NONE)
        return;
    uint32_t bytes = m->unsent < n->machine.mtu ? (uint32_t)m->unsent : (uint32_t)n->machine.mtu;
    n->packets[p] =
        (struct packet){.message = index, .bytes = bytes, .held = NONE, .next = NONE, .begins = !m->begun};
    m->begun = true;
    m->unsent -= bytes;
    if (m->unsent == 0) {
        n->node_first[queue] = m->next;
        if (m->next == NONE)
            n->node_last[queue] = NONE;
    }
    link_offer(n, way_out(n, node, rail), p);
}

uint32_t network_send(struct network *n, uint32_t from, uint32_t to, uint64_t bytes, uint32_t tag)
{
    return network_send_on(n, 0, from, to, bytes, tag, false);
}

uint32_t network_send_on(struct network *n, uint32_t rail, uint32_t from, uint32_t to, uint64_t bytes,
                         uint32_t tag, bool urgent)
{
    uint32_t index = message_new(n);
    if (index == NONE)
        return NONE;
    n->messages[index] = (struct message){
        .from = from, .to = to, .rail = rail, .unsent = bytes, .missing = bytes, .tag = tag, .next = NONE};
    if (from == to) {
        put(n, n->now + ns(n->machine.local_ns + (double)bytes / n->machine.copy_rate), EVENT_LOCAL, index);
        return index;
    }
    uint32_t queue = 2 * port_of(n, from, rail) + urgent;
    if (n->node_first[queue] == NONE)
        n->node_first[queue] = index;
    else
        n->messages[n->node_last[queue]].next = index;
    n->node_last[queue] = index;
    /* With nothing of this adapter waiting in front of its first link, nobody else will feed it. */
    if (n->links[way_out(n, from, rail)].first == NONE)
        feed(n, from, rail);
    return index;
}

static void message_arrived(struct network *n, uint32_t index)
{
    n->arrived(n->ctx, index);
    n->messages[index].next = n->messages_free;
    n->messages_free = index;
}

/* A packet is at the end of the link that it holds a buffer of. */
static void packet_at(struct network *n, uint32_t index)
{
    struct packet *p = &n->packets[index];
    const struct link *l = &n->links[p->held];
    uint32_t message = p->message, to = n->messages[message].to;
    if (l->end_node == NONE) {
        link_offer(n, rail_first(n, l->rail) + tree_next(&n->tree, l->end, to), index);
        return;
    }
    bool from_memory = is_bus(n, p->held) && (p->held - n->bus_first) % 2 == 0;
    if (from_memory) {
        link_offer(n, rail_first(n, l->rail) + 2 * l->end_node, index);
        return;
    }
    if (!is_bus(n, p->held) && has_bus(n)) {
        if (p->begins && n->began)
            n->began(n->ctx, message);
        link_offer(n, bus_of(n, port_of(n, l->end_node, l->rail), true), index);
        return;
    }
    buffer_release(n, p->held, n->now + delay(n, p->held));
    uint32_t bytes = p->bytes;
    p->next = n->packets_free;
    n->packets_free = index;
    n->messages[message].missing -= bytes;
    if (n->messages[message].missing == 0)
        message_arrived(n, message);
}

void network_run(struct network *n)
{
    struct event e;
    for (; !n->failed && event_take(&n->events, &e); n->failed |= n->events.failed) {
        n->now = e.at;
        switch (e.kind) {
        case EVENT_PACKET:
            packet_at(n, e.what);
            break;
        case EVENT_LINK:
            if (n->links[e.what].wake_at <= n->now)
                n->links[e.what].wake_at = NEVER;
            link_look(n, e.what);
            break;
        case EVENT_LOCAL:
            message_arrived(n, e.what);
            break;
        default:
            n->other(n->ctx, &e);
        }
    }
}

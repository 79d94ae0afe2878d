/* network.c: packets over links, and messages cut into packets. See network.h for the rules.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "network_part.h"

void network_schedule(struct network *n, sim_time at, uint32_t kind, uint32_t what)
{
    if (!event_insert(&n->events, at, kind, what))
        n->failed = true;
}

void *network_alloc_array(size_t count, size_t size)
{
    return aligned_alloc(LINE_BYTES, (count * size + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
}

/* Makes room for one more element of an array. Returns false if memory runs out. */
bool network_grow(struct network *n, void **array, uint32_t count, size_t size)
{
    if (count && (count & (count - 1)))
        return true;
    void *larger = network_alloc_array(count ? 2 * (size_t)count : 1, size);
    if (!larger) {
        n->failed = true;
        return false;
    }
    if (count)
        memcpy(larger, *array, count * size);
    free(*array);
    *array = larger;
    return true;
}

uint32_t network_packet_new(struct network *n)
{
    uint32_t p = n->packets_free;
    if (p != NONE) {
        n->packets_free = n->packets[p].next;
        return p;
    }
    if (!network_grow(n, (void **)&n->packets, n->packets_count, sizeof(*n->packets)))
        return NONE;
    return n->packets_count++;
}

uint32_t network_message_new(struct network *n)
{
    uint32_t m = n->messages_free;
    if (m != NONE) {
        n->messages_free = n->messages[m].next;
        return m;
    }
    if (!network_grow(n, (void **)&n->messages, n->messages_count, sizeof(*n->messages)))
        return NONE;
    return n->messages_count++;
}

void network_packet_free(struct network *n, uint32_t packet)
{
    n->packets[packet].next = n->packets_free;
    n->packets_free = packet;
}

void network_message_free(struct network *n, uint32_t message)
{
    n->messages[message].next = n->messages_free;
    n->messages_free = message;
}

/* Time for which a packet keeps a link busy. */
static sim_time network_crossing_time(const struct network *n, uint32_t link, const struct packet *p)
{
    const struct machine *m = &n->machine;
    if (link_is_bus(n, link))
        return sim_time_from_ns(p->bytes / m->bus_rate);
    uint32_t rail = n->links[link].rail, cable = n->links[link].medium,
             in_tree = cable - rail_first_link(n, rail);
    double rate = n->rates ? n->rates[cable] : m->link_rate;
    sim_time time = sim_time_from_ns((p->bytes + m->header_bytes) / (rate * n->rail_scale[rail]));
    /* The sending adapter needs a fixed time for each message. */
    bool leaves_node = in_tree % 2 == 0 && in_tree / 2 < n->topo.nodes;
    sim_time least = sim_time_from_ns(m->message_ns);
    return leaves_node && p->begins && time < least ? least : time;
}

sim_time network_link_delay(const struct network *n, uint32_t link)
{
    if (link_is_bus(n, link))
        return sim_time_from_ns(n->machine.bus_ns);
    return sim_time_from_ns(n->machine.link_ns +
                            (n->links[link].end_node == NONE ? n->machine.switch_ns : 0));
}

static void network_wake_link(struct network *n, uint32_t link, sim_time at)
{
    if (n->links[link].wake_at <= at)
        return;
    n->links[link].wake_at = at;
    network_schedule(n, at, EVENT_LINK, link);
}

/* Place of the i-th buffer-release time, earliest first. The first time is link.soonest, so that a link
 * with one packet in flight, the usual case, uses one cache line. */
static sim_time *link_buffer_release_time(struct network *n, uint32_t link, uint32_t i)
{
    uint32_t at = n->links[link].free_later_first + i;
    return &n->free_later_at[(size_t)link * n->buffers + (at < n->buffers ? at : at - n->buffers)];
}

/* Records that a buffer at the link's far end will be free at time `at`. */
void network_buffer_release(struct network *n, uint32_t link, sim_time at)
{
    struct link *l = &n->links[link];
    sim_time later = at;
    uint32_t i = l->free_later_count++;
    if (i == 0 || at < l->soonest) {
        later = l->soonest;
        l->soonest = at;
    }
    for (; i > 1 && *link_buffer_release_time(n, link, i - 1) > later; i--)
        *link_buffer_release_time(n, link, i) = *link_buffer_release_time(n, link, i - 1);
    if (i > 0)
        *link_buffer_release_time(n, link, i) = later;
    if (l->first != NONE)
        network_wake_link(n, link, at > n->now ? at : n->now);
}

/* Adds the buffers whose release time has passed to free_count. */
static void link_count_free_buffers(struct network *n, uint32_t link)
{
    struct link *l = &n->links[link];
    while (l->free_later_count && l->soonest <= n->now) {
        l->free_later_count--;
        l->free_count++;
        l->free_later_first = (uint8_t)(l->free_later_first + 1u < n->buffers ? l->free_later_first + 1 : 0);
        if (l->free_later_count)
            l->soonest = *link_buffer_release_time(n, link, 0);
    }
}

static void network_cut_next_packet(struct network *n, uint32_t node, uint32_t rail);

/* Whether the message holds lanes: control packets of adapters use a lane of their own. */
static bool message_holds_lanes(const struct message *m)
{
    return m->kind == MESSAGE_PLAIN && !m->urgent;
}

/* Whether the packet is in a lane that its message holds. */
static bool packet_holds_lane(const struct network *n, const struct packet *p, uint32_t held)
{
    return n->lanes && held != NONE && held != SWITCH && !link_is_bus(n, held) &&
           message_holds_lanes(&n->messages[p->message]);
}

/* Whether the message crosses the memory bus: control packets of adapters do not. */
static bool message_uses_bus(const struct network *n, const struct message *m)
{
    return has_bus(n) && !(m->urgent && m->kind == MESSAGE_PLAIN);
}

/* Transmits the first waiting packet over the link. */
static void network_start_packet(struct network *n, uint32_t link)
{
    struct link *l = &n->links[link];
    uint32_t index = l->first;
    struct packet *p = &n->packets[index];
    sim_time end = n->now + network_crossing_time(n, link, p);
    if (link_is_bus(n, link) && n->links[l->medium].used_by != link && n->links[l->medium].used_by != NONE)
        end += sim_time_from_ns(n->machine.bus_turn_ns);
    if (end < p->tail) /* the packet arrives on a slower link than this one */
        end = p->tail;
    p->tail = end + network_link_delay(n, link);
    l->first = p->next;
    if (l->first == NONE)
        l->last = NONE;
    l->free_count--;
    n->links[l->medium].free_at = end;
    n->links[l->medium].used_by = link;
    l->yielded = false;
    uint32_t held = p->held, from = n->messages[p->message].from;
    p->held = link;
    bool leaves_lane = p->ends && packet_holds_lane(n, p, held);
    bool last_hop =
        l->end_node != NONE && (link_is_bus(n, link) ? (link - n->bus_first) % 2 == 1
                                                     : !message_uses_bus(n, &n->messages[p->message]));
    network_schedule(n, last_hop ? p->tail : n->now + network_link_delay(n, link), EVENT_PACKET, index);
    if (held == NONE)
        network_cut_next_packet(n, from, l->rail);
    else if (p->copied)
        switch_release_copy(n, p, held, end);
    else if (held != SWITCH)
        /* the credit travels back over the link */
        network_buffer_release(n, held, end + network_link_delay(n, held));
    if (leaves_lane)
        lanes_release(n, held);
}

static bool link_shares_medium(const struct network *n, uint32_t link)
{
    if (!link_is_bus(n, link))
        return n->lanes > 1;
    return n->machine.bus_shared != 0 || (n->machine.bus_node != 0 && n->rails > 1);
}

/* Starts waiting packets until the link is busy or its far end has no free buffer. */
void network_link_update(struct network *n, uint32_t link)
{
    struct link *l = &n->links[link];
    link_count_free_buffers(n, link);
    while (l->first != NONE) {
        if (n->links[l->medium].free_at > n->now) {
            network_wake_link(n, link, n->links[l->medium].free_at);
            return;
        }
        if (l->free_count == 0) {
            if (l->free_later_count)
                network_wake_link(n, link, l->soonest);
            return; /* otherwise the next release wakes the link */
        }
        if (n->links[l->medium].used_by == link && link_shares_medium(n, link) && !l->yielded) {
            l->yielded = true; /* another message that waits for the bus goes first */
            network_wake_link(n, link, n->now);
            return;
        }
        network_start_packet(n, link);
    }
}

void network_link_queue(struct network *n, uint32_t link, uint32_t packet)
{
    struct link *l = &n->links[link];
    n->packets[packet].next = NONE;
    if (l->last == NONE)
        l->first = packet;
    else
        n->packets[l->last].next = packet;
    l->last = packet;
}

void network_link_offer(struct network *n, uint32_t link, uint32_t packet)
{
    if (n->lanes && !link_is_bus(n, link) && message_holds_lanes(&n->messages[n->packets[packet].message]))
        link = lanes_acquire(n, link, packet);
    if (link == NONE)
        return;
    network_link_queue(n, link, packet);
    network_link_update(n, link);
}

/* Link on which the messages of an adapter leave the node: the bus, or the cable without a bus. */
static uint32_t adapter_first_link(const struct network *n, uint32_t node, uint32_t rail)
{
    return has_bus(n) ? bus_link_index(n, port_index(n, node, rail), false)
                      : rail_first_link(n, rail) + 2 * node;
}

/* Cuts the next packet of the adapter's first message once the preceding packet has left: at most one packet
 * waits. */
static void network_cut_next_packet(struct network *n, uint32_t node, uint32_t rail)
{
    uint32_t queue = 2 * port_index(n, node, rail) + 1;
    if (n->node_first[queue] == NONE)
        queue--;
    uint32_t index = n->node_first[queue];
    if (index == NONE)
        return;
    struct message *m = &n->messages[index];
    uint32_t p = network_packet_new(n);
    if (p == NONE)
        return;
    uint32_t bytes = m->unsent < n->machine.mtu ? (uint32_t)m->unsent : (uint32_t)n->machine.mtu;
    n->packets[p] = (struct packet){.message = index,
                                    .bytes = bytes,
                                    .held = NONE,
                                    .next = NONE,
                                    .begins = !m->begun,
                                    .epoch = m->epoch,
                                    .number = (uint32_t)((double)(m->bytes - m->unsent) / n->machine.mtu)};
    m->begun = true;
    m->unsent -= bytes;
    n->packets[p].ends = m->unsent == 0;
    if (m->unsent == 0) {
        n->node_first[queue] = m->next;
        if (m->next == NONE)
            n->node_last[queue] = NONE;
    }
    network_link_offer(n, adapter_first_link(n, node, rail), p);
}

/* Sends a control packet of an adapter at once. */
static void network_send_control(struct network *n, uint32_t index)
{
    struct message *m = &n->messages[index];
    uint32_t p = network_packet_new(n);
    if (p == NONE)
        return;
    n->packets[p] = (struct packet){.message = index,
                                    .bytes = (uint32_t)m->unsent,
                                    .held = SWITCH,
                                    .next = NONE,
                                    .begins = true,
                                    .ends = true,
                                    .tail = n->now};
    m->unsent = 0;
    network_link_offer(n, rail_first_link(n, m->rail) + 2 * m->from, p);
}

/* Queues a message behind the adapter's earlier messages. */
void network_message_queue(struct network *n, uint32_t index)
{
    struct message *m = &n->messages[index];
    if (has_bus(n) && !message_uses_bus(n, m)) {
        network_send_control(n, index);
        return;
    }
    uint32_t queue = 2 * port_index(n, m->from, m->rail) + m->urgent;
    m->next = NONE;
    if (n->node_first[queue] == NONE)
        n->node_first[queue] = index;
    else
        n->messages[n->node_last[queue]].next = index;
    n->node_last[queue] = index;
    /* No packet of this adapter waits for its first link, so no event would cut the first packet of this
     * message. */
    if (n->links[adapter_first_link(n, m->from, m->rail)].first == NONE)
        network_cut_next_packet(n, m->from, m->rail);
}

uint32_t network_send(struct network *n, uint32_t from, uint32_t to, uint64_t bytes, uint32_t tag)
{
    return network_send_on(n, 0, from, to, bytes, tag, false);
}

uint32_t network_send_on(struct network *n, uint32_t rail, uint32_t from, uint32_t to, uint64_t bytes,
                         uint32_t tag, bool urgent)
{
    uint32_t index = network_message_new(n);
    if (index == NONE)
        return NONE;
    n->messages[index] = (struct message){.from = from,
                                          .to = to,
                                          .rail = rail,
                                          .unsent = bytes,
                                          .missing = bytes,
                                          .bytes = bytes,
                                          .tag = tag,
                                          .urgent = urgent,
                                          .next = NONE,
                                          .path = (uint8_t)(n->turn[from]++ % n->topo.paths)};
    if (from == to) {
        network_schedule(
            n, n->now + sim_time_from_ns(n->machine.local_ns + (double)bytes / n->machine.copy_rate),
            EVENT_LOCAL, index);
        return index;
    }
    if (n->machine.doorbell_ns > 0)
        network_schedule(n, n->now + sim_time_from_ns(n->machine.doorbell_ns), EVENT_DOORBELL, index);
    else
        network_message_queue(n, index);
    return index;
}

static void network_finish_message(struct network *n, uint32_t index)
{
    n->arrived(n->ctx, index);
    loss_message_done(n, index);
}

/* Estimated time that a packet waits for a link: until the present packet and the waiting packets have
 * left. */
static sim_time link_estimate_wait(const struct network *n, uint32_t link)
{
    const struct link *l = &n->links[link];
    sim_time wait = n->links[l->medium].free_at > n->now ? n->links[l->medium].free_at - n->now : 0;
    if (l->first != NONE)
        wait += sim_time_from_ns(2 * n->machine.mtu / n->machine.link_rate);
    return l->free_count + l->free_later_count == 0
               ? wait + sim_time_from_ns(4 * n->machine.mtu / n->machine.link_rate)
               : wait;
}

/* Selects the link up with the shortest wait; all links up of a switch lead to every node. If waits are
 * equal: the routing table's link. */
static uint32_t switch_choose_up_link(struct network *n, uint32_t first, uint32_t usual, uint32_t message)
{
    const uint32_t links = n->topo.tree.half, port = (usual - first) / 2;
    uint32_t best = usual;
    sim_time least = NEVER;
    for (uint32_t i = 0; i < links; i++) {
        uint32_t link = first + 2 * ((port + i) % links);
        sim_time wait = link_estimate_wait(n, link);
        if (n->lanes && message_holds_lanes(&n->messages[message]) &&
            lanes_estimate_wait(n, link, message, &wait))
            return link;
        if (wait < least) {
            least = wait;
            best = link;
        }
    }
    return best;
}

static uint32_t network_next_link(struct network *n, const struct link *l, const struct packet *p,
                                  const struct message *m)
{
    const uint32_t base = rail_first_link(n, l->rail),
                   usual = topo_next_link(&n->topo, l->end, m->to, m->path);
    bool up = usual % 2 == 0;
    if (n->machine.adaptive == 0 || !up || n->topo.graph)
        return base + usual;
    return switch_choose_up_link(n, base + tree_up_link(&n->topo.tree, l->end), base + usual, p->message);
}

/* Handles a packet that has arrived at the end of a link: loses, forwards or delivers the packet. */
static void network_handle_arrival(struct network *n, uint32_t index)
{
    struct packet *p = &n->packets[index];
    const struct link *l = &n->links[p->held];
    uint32_t message = p->message;
    const struct message *m = &n->messages[message];
    if (n->machine.loss > 0 && !link_is_bus(n, p->held) && loss_drops_packet(n, index))
        return;
    const bool special = m->kind == MESSAGE_MULTICAST || m->kind == MESSAGE_BARRIER;
    if (l->end_node == NONE && special) {
        switch_handle_collective_packet(n, index);
        return;
    }
    if (l->end_node == NONE) {
        network_link_offer(n, network_next_link(n, l, p, m), index);
        return;
    }
    bool from_memory = link_is_bus(n, p->held) && (p->held - n->bus_first) % 2 == 0;
    if (from_memory) {
        network_link_offer(n, rail_first_link(n, l->rail) + 2 * l->end_node, index);
        return;
    }
    if (!link_is_bus(n, p->held) && message_uses_bus(n, m)) {
        if (p->begins && n->began)
            n->began(n->ctx, message);
        network_link_offer(n, bus_link_index(n, port_index(n, l->end_node, l->rail), true), index);
        return;
    }
    network_buffer_release(n, p->held, n->now + network_link_delay(n, p->held));
    if (special) {
        switch_deliver_collective_packet(n, index);
        return;
    }
    if (m->kind == MESSAGE_NAK) {
        network_packet_free(n, index);
        loss_on_nak(n, message);
        return;
    }
    if (n->machine.loss > 0 && loss_refuses_packet(n, index))
        return;
    uint32_t bytes = p->bytes, lane = p->ends && packet_holds_lane(n, p, p->held) ? p->held : NONE;
    network_packet_free(n, index);
    if (lane != NONE)
        lanes_release(n, lane);
    n->messages[message].missing -= bytes;
    if (n->messages[message].missing == 0)
        network_finish_message(n, message);
}

static void network_prefetch_link(const struct network *n, uint32_t link)
{
    __builtin_prefetch(&n->links[link], 1);
}

/* Prefetches the next time at which buffers will be free. */
static void network_prefetch_buffers(const struct network *n, uint32_t link)
{
    __builtin_prefetch(&n->free_later_at[(size_t)link * n->buffers + n->links[link].free_later_first], 1);
}

/* Prefetches the packet's next link, which is known unless switches choose. */
static void network_prefetch_next(const struct network *n, const struct packet *p)
{
    const struct link *l = &n->links[p->held];
    const struct message *m = &n->messages[p->message];
    network_prefetch_buffers(n, p->held);
    if (l->end_node == NONE && m->kind == MESSAGE_PLAIN && n->machine.adaptive == 0 && n->lanes == 0) {
        uint32_t next = rail_first_link(n, l->rail) + topo_next_link(&n->topo, l->end, m->to, m->path);
        network_prefetch_link(n, next);
        for (uint32_t i = 0; i < n->buffers; i += LINE_BYTES / sizeof(sim_time))
            __builtin_prefetch(&n->free_later_at[(size_t)next * n->buffers + i], 1);
    }
}

/* Prefetches the data of an event: with thousands of nodes the processor caches do not hold it. */
static void network_prefetch_event(void *ctx, const struct event *e, enum event_soon how)
{
    const struct network *n = ctx;
    if (e->kind == EVENT_LINK && how == SOON_NEAR)
        network_prefetch_link(n, e->index);
    else if (e->kind == EVENT_LINK && how == SOON_NEXT)
        network_prefetch_buffers(n, e->index);
    else if (e->kind >= EVENT_OTHER && n->prefetch)
        n->prefetch(n->ctx, e, how);
    if (e->kind != EVENT_PACKET)
        return;
    const struct packet *p = &n->packets[e->index];
    if (how == SOON_FAR) {
        __builtin_prefetch(p, 1);
    } else if (how == SOON_NEAR) {
        network_prefetch_link(n, p->held);
        __builtin_prefetch(&n->messages[p->message], 1);
    } else {
        network_prefetch_next(n, p);
    }
}

void network_run(struct network *n)
{
    struct event e;
    n->events.prefetch = network_prefetch_event;
    n->events.ctx = n;
    for (; !n->failed && event_pop(&n->events, &e); n->failed |= n->events.failed) {
        n->now = e.at;
        switch (e.kind) {
        case EVENT_PACKET:
            network_handle_arrival(n, e.index);
            break;
        case EVENT_LINK:
            if (n->links[e.index].wake_at <= n->now)
                n->links[e.index].wake_at = NEVER;
            network_link_update(n, e.index);
            break;
        case EVENT_LOCAL:
            network_finish_message(n, e.index);
            break;
        case EVENT_DOORBELL:
            network_message_queue(n, e.index);
            break;
        case EVENT_RETRY:
            loss_timeout(n, e.index);
            break;
        case EVENT_COMBINED:
            switch_forward_combined(n, e.index);
            break;
        default:
            n->other(n->ctx, &e);
        }
    }
}

/* switch.c: switches copy multicast packets and count arrivals at a barrier.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "network_part.h"

/* ---- multicast ---- */

void switch_multicast_packet_done(struct network *n, uint32_t message)
{
    if (--n->messages[message].missing == 0)
        network_message_free(n, message);
}

/* Number of the link in the topology of its rail. */
static uint32_t link_in_topology(const struct network *n, uint32_t link)
{
    return link - rail_first_link(n, n->links[link].rail);
}

static uint32_t network_new_copies(struct network *n)
{
    uint32_t c = n->copies_free;
    if (c != NONE) {
        n->copies_free = n->copies[c].next;
        return c;
    }
    if (!network_grow(n, (void **)&n->copies, n->copies_count, sizeof(*n->copies)))
        return NONE;
    return n->copies_count++;
}

void switch_release_copy(struct network *n, struct packet *p, uint32_t held, sim_time end)
{
    uint32_t set = p->copies;
    struct copies *c = &n->copies[set];
    p->copied = false;
    c->end = end > c->end ? end : c->end;
    if (--c->left)
        return;
    if (held != SWITCH)
        network_buffer_release(n, held, c->end + network_link_delay(n, held));
    c->next = n->copies_free;
    n->copies_free = set;
}

/* Makes one copy of the packet for each of the links in n->scratch; the copies share its buffer. */
static void switch_copy(struct network *n, uint32_t index, uint32_t count)
{
    struct packet original = n->packets[index];
    uint32_t set = network_new_copies(n), rail = n->messages[original.message].rail;
    if (set == NONE)
        return;
    n->copies[set] = (struct copies){.left = count};
    n->messages[original.message].missing += count - 1;
    original.copies = set;
    original.copied = true;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t p = i ? network_packet_new(n) : index;
        if (p == NONE)
            return;
        n->packets[p] = original;
        network_link_offer(n, rail_first_link(n, rail) + n->scratch[i], p);
    }
}

/* Lists the links of the multicast tree at a switch except the link on which the packet arrived. */
static uint32_t switch_list_onward_links(struct network *n, struct tree_place at, uint32_t came_by)
{
    uint32_t count = topo_down_links(&n->topo, at, n->scratch), kept = 0, up = topo_up_link(&n->topo, at);
    if (up != NONE)
        n->scratch[count++] = up;
    for (uint32_t i = 0; i < count; i++)
        if (n->scratch[i] != (came_by ^ 1))
            n->scratch[kept++] = n->scratch[i];
    return kept;
}

/* ---- the barrier in the switches ---- */

/* Makes a packet whose origin is a switch. */
static uint32_t switch_make_packet(struct network *n, uint32_t from, uint32_t rail, enum message_kind kind,
                                   uint32_t tag)
{
    uint32_t m = network_message_new(n), p = m == NONE ? NONE : network_packet_new(n);
    if (p == NONE)
        return NONE;
    n->messages[m] = (struct message){.from = from,
                                      .to = NONE,
                                      .rail = rail,
                                      .kind = (uint8_t)kind,
                                      .missing = 1,
                                      .tag = tag,
                                      .next = NONE};
    n->packets[p] = (struct packet){.message = m, .held = SWITCH, .next = NONE, .tail = n->now};
    return p;
}

/* Whether the packet comes from the switch above and releases the barrier; packets of arrivals come from
 * below. */
static bool barrier_packet_descends(const struct network *n, struct tree_place at, uint32_t link)
{
    uint32_t up = topo_up_link(&n->topo, at);
    return up != NONE && link_in_topology(n, link) == (up ^ 1);
}

static void switch_count_barrier_packet(struct network *n, uint32_t index)
{
    struct packet *p = &n->packets[index];
    struct tree_place at = n->links[p->held].end;
    uint32_t held = p->held, below = topo_down_links(&n->topo, at, n->scratch);
    if (barrier_packet_descends(n, at, held)) {
        switch_copy(n, index, below);
        return;
    }
    network_buffer_release(n, held, (p->tail > n->now ? p->tail : n->now) + network_link_delay(n, held));
    if (++n->gathered[topo_switch_number(&n->topo, at)] < below) {
        network_message_free(n, p->message);
        network_packet_free(n, index);
        return;
    }
    n->gathered[topo_switch_number(&n->topo, at)] = 0;
    network_schedule(n, n->now + sim_time_from_ns(n->machine.barrier_ns), EVENT_COMBINED, index);
}

/* Forwards the barrier packet of a switch at which all packets from below have arrived: to the switch
 * above, or down from the top. */
void switch_forward_combined(struct network *n, uint32_t index)
{
    struct packet *p = &n->packets[index];
    struct message m = n->messages[p->message];
    struct tree_place at = n->links[p->held].end;
    uint32_t up = topo_up_link(&n->topo, at), made;
    network_message_free(n, p->message);
    network_packet_free(n, index);
    if ((made = switch_make_packet(n, m.from, m.rail, MESSAGE_BARRIER, m.tag)) == NONE)
        return;
    if (up != NONE)
        network_link_offer(n, rail_first_link(n, m.rail) + up, made);
    else
        switch_copy(n, made, topo_down_links(&n->topo, at, n->scratch));
}

/* ---- for network.c ---- */

void switch_handle_collective_packet(struct network *n, uint32_t index)
{
    struct packet *p = &n->packets[index];
    if (n->messages[p->message].kind == MESSAGE_BARRIER) {
        switch_count_barrier_packet(n, index);
        return;
    }
    uint32_t count = switch_list_onward_links(n, n->links[p->held].end, link_in_topology(n, p->held));
    if (count) {
        switch_copy(n, index, count);
        return;
    }
    network_buffer_release(n, p->held,
                           (p->tail > n->now ? p->tail : n->now) + network_link_delay(n, p->held));
    switch_multicast_packet_done(n, p->message);
    network_packet_free(n, index);
}

void switch_deliver_collective_packet(struct network *n, uint32_t index)
{
    struct packet p = n->packets[index];
    uint32_t node = n->links[p.held].end_node;
    network_packet_free(n, index);
    n->delivered(n->ctx, p.message, node);
    switch_multicast_packet_done(n, p.message);
}

static uint32_t network_send_collective_packet(struct network *n, uint32_t from, uint32_t bytes, uint32_t tag,
                                               enum message_kind kind)
{
    uint32_t index = network_message_new(n);
    if (index == NONE)
        return NONE;
    n->messages[index] = (struct message){.from = from,
                                          .to = NONE,
                                          .kind = (uint8_t)kind,
                                          .unsent = bytes,
                                          .bytes = bytes,
                                          .missing = 1,
                                          .tag = tag,
                                          .next = NONE};
    if (n->machine.doorbell_ns > 0)
        network_schedule(n, n->now + sim_time_from_ns(n->machine.doorbell_ns), EVENT_DOORBELL, index);
    else
        network_message_queue(n, index);
    return index;
}

uint32_t network_multicast(struct network *n, uint32_t from, uint32_t bytes, uint32_t tag)
{
    return network_send_collective_packet(n, from, bytes <= n->machine.mtu ? bytes : (uint32_t)n->machine.mtu,
                                          tag, MESSAGE_MULTICAST);
}

uint32_t network_barrier(struct network *n, uint32_t from, uint32_t tag)
{
    return network_send_collective_packet(n, from, 0, tag, MESSAGE_BARRIER);
}

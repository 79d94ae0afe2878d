/* lanes.c: wormhole routing with virtual channels (lanes) [Coll01 4.1]. A message holds one of machine.lanes
 * lanes of every cable on its route, from its first packet until its last packet has left the cable's far end.
 * A message waits while all lanes of a cable are held. Each lane has its own buffers, and the lanes share the
 * cable's rate. In InfiniBand, unlike here, packets of any message may pass a packet that waits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "network_part.h"

/* Lane 0 of a cable is the cable's own link; the links of the other lanes follow after all cables' links. */
static uint32_t lane_link_index(const struct network *n, uint32_t cable, uint32_t lane)
{
    return lane == 0 ? cable : n->links_count + (lane - 1) * n->bus_first + cable;
}

static uint32_t *lane_holder_place(struct network *n, uint32_t cable, uint32_t lane)
{
    return &n->lane_holders[(size_t)cable * n->lanes + lane];
}

bool lanes_make(struct network *n)
{
    size_t holders = (size_t)n->bus_first * n->lanes;
    n->lane_holders = malloc(holders * sizeof(*n->lane_holders));
    n->lane_waiting = malloc(n->bus_first * sizeof(*n->lane_waiting));
    if (!n->lane_holders || !n->lane_waiting)
        return false;
    for (size_t i = 0; i < holders; i++)
        n->lane_holders[i] = NONE;
    for (uint32_t cable = 0; cable < n->bus_first; cable++) {
        n->lane_waiting[cable] = (struct lane_queue){NONE, NONE};
        for (uint32_t lane = 1; lane < n->lanes; lane++)
            /* The copy has the same medium as lane 0, so all lanes of a cable share its rate. */
            n->links[lane_link_index(n, cable, lane)] = n->links[cable];
    }
    return true;
}

uint32_t lanes_acquire(struct network *n, uint32_t cable, uint32_t packet)
{
    const struct packet *p = &n->packets[packet];
    uint32_t unheld = NONE;
    for (uint32_t lane = 0; lane < n->lanes; lane++) {
        uint32_t holder = *lane_holder_place(n, cable, lane);
        if (holder == p->message)
            return lane_link_index(n, cable, lane);
        if (holder == NONE && unheld == NONE)
            unheld = lane;
    }
    if (p->begins && unheld != NONE) {
        *lane_holder_place(n, cable, unheld) = p->message;
        return lane_link_index(n, cable, unheld);
    }
    struct lane_queue *q = &n->lane_waiting[cable];
    n->packets[packet].next = NONE;
    if (q->last == NONE)
        q->first = packet;
    else
        n->packets[q->last].next = packet;
    q->last = packet;
    return NONE;
}

bool lanes_estimate_wait(struct network *n, uint32_t cable, uint32_t message, sim_time *wait)
{
    uint32_t unheld = 0;
    for (uint32_t lane = 0; lane < n->lanes; lane++) {
        uint32_t holder = *lane_holder_place(n, cable, lane);
        if (holder == message)
            return true;
        unheld += holder == NONE;
    }
    for (uint32_t p = n->lane_waiting[cable].first; p != NONE; p = n->packets[p].next)
        if (n->packets[p].message == message)
            return true;
    *wait += (sim_time)(n->lanes - unheld) * 1000000 * SIM_NS;
    if (n->lane_waiting[cable].first != NONE)
        *wait += 100000000 * SIM_NS;
    return false;
}

/* Removes the waiting packets of a message from the queue, in order. */
static uint32_t lane_remove_waiting(struct network *n, struct lane_queue *q, uint32_t message)
{
    uint32_t taken = NONE, *tail = &taken, *at = &q->first;
    q->last = NONE;
    while (*at != NONE) {
        struct packet *p = &n->packets[*at];
        if (p->message == message) {
            *tail = *at;
            *at = p->next;
            tail = &p->next;
        } else {
            q->last = *at;
            at = &p->next;
        }
    }
    *tail = NONE;
    return taken;
}

void lanes_release(struct network *n, uint32_t link)
{
    const uint32_t cable = n->links[link].medium;
    struct lane_queue *q = &n->lane_waiting[cable];
    uint32_t lane = link < n->links_count ? 0 : 1 + (link - n->links_count) / n->bus_first;
    uint32_t *holder = lane_holder_place(n, cable, lane);
    *holder = NONE;
    if (q->first == NONE)
        return;
    *holder = n->packets[q->first].message; /* the first packet of its message */
    for (uint32_t p = lane_remove_waiting(n, q, *holder), next; p != NONE; p = next) {
        next = n->packets[p].next;
        network_link_queue(n, link, p);
    }
    network_link_update(n, link);
}

/* network_part.h: declarations that the files of the network share: network.c moves packets, network_make.c
 * makes links, switch.c implements multicast and barriers in switches, loss.c the loss of packets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_NETWORK_PART_H
#define FP_SIM_NETWORK_PART_H

#include "network.h"

/* In struct packet.held: a switch created the packet, which occupies no buffer. */
#define SWITCH (UINT32_MAX - 1)

static inline bool link_is_bus(const struct network *n, uint32_t link)
{
    return link >= n->bus_first && link < n->links_count;
}

/* Index of an adapter, the port of a node on a rail. */
static inline uint32_t port_index(const struct network *n, uint32_t node, uint32_t rail)
{
    return node * n->rails + rail;
}

/* Index of a link of a bus: even links lead from memory to the adapter, odd links back. */
static inline uint32_t bus_link_index(const struct network *n, uint32_t port, bool to_memory)
{
    return n->bus_first + 2 * port + to_memory;
}

/* Index of a rail's first link; link numbers of the topology are relative to this index. */
static inline uint32_t rail_first_link(const struct network *n, uint32_t rail)
{
    return rail * 2 * n->topo.cables;
}

static inline bool has_bus(const struct network *n)
{
    return n->machine.bus_rate > 0;
}

/* Functions of network.c. */
void network_schedule(struct network *n, sim_time at, uint32_t kind, uint32_t what);
void *network_alloc_array(size_t count, size_t size); /* aligned to cache lines, not cleared */
bool network_grow(struct network *n, void **array, uint32_t count, size_t size);
uint32_t network_packet_new(struct network *n);
void network_packet_free(struct network *n, uint32_t packet);
uint32_t network_message_new(struct network *n);
void network_message_free(struct network *n, uint32_t message);
void network_message_queue(struct network *n, uint32_t message);
void network_buffer_release(struct network *n, uint32_t link, sim_time at);
void network_link_queue(struct network *n, uint32_t link, uint32_t packet);
void network_link_update(struct network *n, uint32_t link);
void network_link_offer(struct network *n, uint32_t link, uint32_t packet);
sim_time network_link_delay(const struct network *n, uint32_t link);

/* Functions of lanes.c. */
bool lanes_make(struct network *n); /* called after network_make has made the links */
/* Returns the link of the lane that the packet's message holds or acquires now. NONE: all lanes are held, and
 * the packet waits. */
uint32_t lanes_acquire(struct network *n, uint32_t cable, uint32_t packet);
/* True: the message holds a lane of the cable or waits for a lane. Otherwise adds the estimated wait to
 * *wait. */
bool lanes_estimate_wait(struct network *n, uint32_t cable, uint32_t message, sim_time *wait);
/* Frees the lane after the last packet of its message has left. */
void lanes_release(struct network *n, uint32_t link);

/* Functions of switch.c. */
/* Called when a packet of the multicast message has left its last link. */
void switch_multicast_packet_done(struct network *n, uint32_t message);
/* Handles a multicast or barrier packet that has arrived at a switch. */
void switch_handle_collective_packet(struct network *n, uint32_t packet);
void switch_forward_combined(struct network *n, uint32_t which);
/* Handles a multicast or barrier packet that has arrived in a node's memory. */
void switch_deliver_collective_packet(struct network *n, uint32_t packet);
void switch_release_copy(struct network *n, struct packet *p, uint32_t held, sim_time end);

/* Functions of loss.c. */
/* Returns true if the link loses the packet, which is then dropped or repeated later. */
bool loss_drops_packet(struct network *n, uint32_t packet);
void loss_timeout(struct network *n, uint32_t packet);
/* Returns true if the receiver refuses the packet because an earlier packet is missing. */
bool loss_refuses_packet(struct network *n, uint32_t packet);
void loss_on_nak(struct network *n, uint32_t nak); /* the NAK has arrived at the sender */
/* Frees the message when no packet, NAK or timeout refers to it. */
void loss_message_done(struct network *n, uint32_t message);

#endif

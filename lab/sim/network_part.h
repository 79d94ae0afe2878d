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

/* An adapter: a node on a rail. */
static inline uint32_t port_index(const struct network *n, uint32_t node, uint32_t rail)
{
    return node * n->rails + rail;
}

/* Bus links: even ones lead from memory to the adapter, odd ones back. */
static inline uint32_t bus_link_index(const struct network *n, uint32_t port, bool to_memory)
{
    return n->bus_first + 2 * port + to_memory;
}

/* Index of a rail's first link; the tree's link numbers are relative to it. */
static inline uint32_t rail_first_link(const struct network *n, uint32_t rail)
{
    return rail * 2 * n->topo.cables;
}

static inline bool has_bus(const struct network *n)
{
    return n->machine.bus_rate > 0;
}

/* network.c */
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

/* lanes.c */
bool lanes_make(struct network *n); /* after the links are made */
/* Returns the link of the lane that the packet's message holds or acquires now. NONE: all lanes are held, and
 * the packet waits. */
uint32_t lanes_acquire(struct network *n, uint32_t cable, uint32_t packet);
/* True: the message holds a lane of the cable or waits for one. Otherwise `wait` grows by the estimated
 * wait. */
bool lanes_estimate_wait(struct network *n, uint32_t cable, uint32_t message, sim_time *wait);
/* the last packet of the message that holds the lane has left */
void lanes_release(struct network *n, uint32_t link);

/* switch.c */
void switch_multicast_packet_done(struct network *n,
                                  uint32_t message); /* a packet of the message is on no link any more */
void switch_handle_special(struct network *n,
                           uint32_t packet); /* a multicast or barrier packet is in a switch */
void switch_forward_combined(struct network *n, uint32_t which);
/* a multicast or barrier packet is in a node's memory */
void switch_deliver_special(struct network *n, uint32_t packet);
void switch_release_copy(struct network *n, struct packet *p, uint32_t held, sim_time end);

/* loss.c */
/* true: the link loses the packet, which is dropped or will be repeated */
bool loss_drops_packet(struct network *n, uint32_t packet);
void loss_timeout(struct network *n, uint32_t packet);
bool loss_refuses_packet(struct network *n,
                         /* true: the receiver refuses the packet because an earlier one is missing */
                         uint32_t packet);
void loss_on_nak(struct network *n, uint32_t nak); /* the sender has received the NAK */
void loss_message_done(struct network *n,
                       uint32_t message); /* frees the message when no packet, NAK or timeout refers to it */

#endif

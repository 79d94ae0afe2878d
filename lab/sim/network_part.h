/* network_part.h: what the files of the network share: network.c moves packets, network_make.c makes links, switch.c has what
 * switches do beside passing packets on, loss.c what is lost.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_NETWORK_PART_H
#define FP_SIM_NETWORK_PART_H

#include "network.h"

/* In struct packet.held: a switch created the packet, which holds no buffer. */
#define SWITCH (UINT32_MAX - 1)

static inline sim_time ns(double nanoseconds)
{
    return (sim_time)(nanoseconds * SIM_NS + 0.5);
}

static inline bool is_bus(const struct network *n, uint32_t link)
{
    return link >= n->bus_first && link < n->links_count;
}

/* An adapter: a node on a rail. */
static inline uint32_t port_of(const struct network *n, uint32_t node, uint32_t rail)
{
    return node * n->rails + rail;
}

/* Bus links: even ones lead from memory to the adapter, odd ones back. */
static inline uint32_t bus_of(const struct network *n, uint32_t port, bool to_memory)
{
    return n->bus_first + 2 * port + to_memory;
}

/* Links of a rail's tree are those of the tree, counted on from where the rail's begin. */
static inline uint32_t rail_first(const struct network *n, uint32_t rail)
{
    return rail * 2 * n->topo.cables;
}

static inline bool has_bus(const struct network *n)
{
    return n->machine.bus_rate > 0;
}

/* network.c */
void network_put(struct network *n, sim_time at, uint32_t kind, uint32_t what);
void *network_array(size_t count, size_t size); /* aligned to cache lines, not cleared */
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
sim_time network_delay(const struct network *n, uint32_t link);

/* lanes.c */
bool lanes_make(struct network *n); /* once the links are */
/* The link of the lane that the packet's message holds or now takes. NONE: it waits. */
uint32_t lanes_find(struct network *n, uint32_t cable, uint32_t packet);
/* True: the message holds a lane of the cable, or waits for one. Otherwise `wait` grows by what it would have to wait. */
bool lanes_wait(struct network *n, uint32_t cable, uint32_t message, sim_time *wait);
void lanes_left(struct network *n, uint32_t link); /* the last packet of the message that holds it has left */

/* switch.c */
void switch_multicast_less(struct network *n,
                           uint32_t message);            /* one of its packets is on no link any more */
void switch_special(struct network *n, uint32_t packet); /* a multicast or barrier packet is in a switch */
void switch_combined(struct network *n, uint32_t which);
void switch_arrived(struct network *n, uint32_t packet); /* such a packet is in a node's memory */
void switch_copy_left(struct network *n, struct packet *p, uint32_t held, sim_time end);

/* loss.c */
bool loss_takes(struct network *n, uint32_t packet); /* and forgets it, or will have it sent again */
void loss_timeout(struct network *n, uint32_t packet);
bool loss_refuses(struct network *n,
                  uint32_t packet); /* the receiver does not take it: something before it is missing */
void loss_on_nak(struct network *n, uint32_t nak); /* the sender has got the message */
void loss_message_done(struct network *n,
                       uint32_t message); /* freed when no packet, NAK or timeout knows it */

#endif

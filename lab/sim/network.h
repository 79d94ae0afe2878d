/* network.h: messages through adapters, cables and switches, packet by packet. A packet crosses a link when
 * the link is idle and the far end has a free buffer; until then it stays in the buffer that it occupies.
 * This is InfiniBand's credit flow control: a busy receiver fills the buffers in front of it, then the
 * buffers in front of those, and congestion spreads. Switches cut through: a packet is forwarded as soon as
 * its first byte has arrived. Packets that wait for a link cross it in the order of arrival. Links that share
 * a bus take turns packet by packet. With machine.lanes messages move as worms instead: see lanes.c. Each
 * rail is a network of its own, with adapters and switches of its own; rails share only the nodes, and the
 * bus if machine.bus_node is set.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_SIM_NETWORK_H
#define FP_SIM_NETWORK_H

#include "event.h"
#include "machine.h"
#include "topo.h"

#define NONE  UINT32_MAX
#define NEVER INT64_MAX

enum { BUFFERS_MAX = 64, LINE_BYTES = 64 };

/* One direction of a cable or of a node's bus. One cache line: with 10,000 nodes there are 60,000 links, and
 * fetching them from memory is most of the work of a simulation. */
struct link {
    struct tree_place end; /* the switch at the end of the link */
    uint32_t end_node;     /* the node whose memory or adapter is at the end of the link; otherwise NONE */
    /* index of the link whose free_at and used_by this link shares: its own index except for a bus */
    uint32_t medium;
    uint32_t first, last; /* packets that wait for the link */
    uint32_t used_by;     /* if this link is a medium: the link that used it last */
    sim_time free_at;     /* if this link is a medium: the time at which it is free */
    sim_time wake_at;     /* time of the event that will update the link; NEVER: none */
    sim_time soonest; /* if `free_later_count` is not 0: the earliest time at which a buffer will be free */
    uint8_t rail;
    uint8_t free_count; /* buffers at the far end that are free now */
    /* buffers that will be free: at soonest, and at the times in network.free_later_at */
    uint8_t free_later_count;
    /* first entry of this ring in network.free_later_at, earliest time first; soonest replaces this entry */
    uint8_t free_later_first;
    bool yielded; /* this link has let another link of its medium go first */
} __attribute__((aligned(LINE_BYTES)));
_Static_assert(sizeof(struct link) == LINE_BYTES, "a link is one cache line");

struct packet {
    uint32_t message, bytes; /* bytes of data, without header */
    uint32_t held; /* link whose far-end buffer it occupies; NONE: packet in its sender's memory; or SWITCH */
    uint32_t next; /* next packet in a queue or in the list of free packets */
    union {
        uint32_t number; /* number of the packet in its message; not used for copies */
        uint32_t copies; /* copies: index of the record of the shared buffer */
    };
    uint16_t epoch;            /* epoch of its message when the packet was cut */
    bool begins : 1, ends : 1; /* first and last packet of its message */
    bool copied : 1;           /* other copies share the buffer */
    sim_time tail;             /* time at which the last byte reaches the place where the first byte is now */
};

/* Copies of a multicast packet in one buffer of a switch, which is free when the last copy has left. */
struct copies {
    uint32_t left, next;
    sim_time end; /* the latest end of a copy */
};

enum message_kind { MESSAGE_PLAIN, MESSAGE_MULTICAST, MESSAGE_BARRIER, MESSAGE_NAK };

/* A message. The network calls `arrived` with its index when its last byte is in the receiver's memory. */
struct message {
    uint32_t from, to; /* nodes; to: the receiving node while `delivered` is called for a multicast */
    uint32_t rail;
    uint8_t kind, path;
    uint8_t urgent;
    uint64_t unsent, missing; /* bytes; multicast: missing counts packets in flight */
    bool begun;               /* the first packet was cut */
    /* State after a loss (loss.c): */
    /* broken: packet `gap` was lost; requested: the receiver has requested it; done: all data has arrived */
    bool broken, requested, done;
    uint16_t epoch;      /* number of restarts */
    uint32_t gap, known; /* known: references by timeouts of lost packets and by NAKs */
    uint64_t bytes;      /* bytes of the whole message */
    uint32_t tag;        /* value that the caller assigns */
    uint32_t next;
};

struct lane_queue {
    uint32_t first, last; /* packets */
};

struct network {
    struct machine machine;
    struct topo topo;
    struct event_queue events;
    sim_time now;
    struct link *links;     /* links of the tree, then two for each node's bus if the bus has a rate */
    double *rates;          /* GB/s of each cable; NULL: all have the machine's link_rate */
    uint32_t lanes;         /* 0: messages do not hold lanes (lanes.c) */
    uint32_t *lane_holders; /* message in each lane of each cable */
    struct lane_queue *lane_waiting; /* packets that wait, for each cable */
    sim_time *free_later_at;         /* for each buffer of each link */
    uint32_t buffers;                /* buffers of a link */
    uint32_t links_count, bus_first, rails;
    double *rail_scale; /* factor of the link rate: 1 unless network_rail_rate changed it */
    struct packet *packets;
    uint32_t packets_count, packets_free;
    struct message *messages;
    uint32_t messages_count, messages_free;
    /* queues of the messages that an adapter still has to cut into packets: two for each adapter, the second
     * for urgent messages */
    uint32_t *node_first, *node_last;
    struct copies *copies;
    uint32_t copies_count, copies_free;
    uint32_t *scratch;  /* temporary list of links of one switch */
    uint32_t *gathered; /* for each switch of the multicast tree: arrivals at the barrier */
    uint32_t *turn;     /* for each node: index of the destination's LID for the next message */
    /* random: state of the generator; lost: lost packets; refused: packets that go-back-N repeats */
    uint64_t random, lost, refused;
    bool failed; /* memory ran out */
    void (*arrived)(void *ctx, uint32_t message);
    /* NULL, or called when the first byte is in the receiver's adapter */
    void (*began)(void *ctx, uint32_t message);
    /* called for a multicast packet, or for the end of a barrier */
    void (*delivered)(void *ctx, uint32_t message, uint32_t node);
    void (*prefetch)(void *ctx, const struct event *e,
                     enum event_soon how); /* NULL, or as event_queue.prefetch */
    /* called for events of the caller's own kinds, EVENT_OTHER and above */
    void (*other)(void *ctx, const struct event *e);
    void *ctx;
};

enum { EVENT_PACKET, EVENT_LINK, EVENT_LOCAL, EVENT_DOORBELL, EVENT_RETRY, EVENT_COMBINED, EVENT_OTHER };

bool network_make(struct network *n, const struct machine *m, uint32_t nodes);
void network_free(struct network *n);

/* Sends a message; a message between ranks of one node does not use the network. Returns the index of the
 * message; NONE: memory ran out. */
uint32_t network_send(struct network *n, uint32_t from, uint32_t to, uint64_t bytes, uint32_t tag);

/* Sends over one of several rails. An urgent message, which is one packet, precedes all packets that have not
 * been cut yet and does not cross a bus: it is sent from adapter to adapter. */
uint32_t network_send_on(struct network *n, uint32_t rail, uint32_t from, uint32_t to, uint64_t bytes,
                         uint32_t tag, bool urgent);

/* Sends one packet to all nodes except the sender; switches copy it. A packet may be lost on any link and
 * is not repeated. */
uint32_t network_multicast(struct network *n, uint32_t from, uint32_t bytes, uint32_t tag);

/* Enters a node into the barrier that the switches count; when all nodes have entered, `delivered` is
 * called for each node. Every node of the network takes part, and no packet of a barrier is lost. */
uint32_t network_barrier(struct network *n, uint32_t from, uint32_t tag);

/* Sets the rate of all cables of a rail to this multiple of machine.link_rate. */
void network_rail_rate(struct network *n, uint32_t rail, double scale);

/* Runs until there are no more events, or memory ran out. */
void network_run(struct network *n);

#endif

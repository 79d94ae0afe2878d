/* network.h: messages through adapters, cables and switches, packet by packet.
 *
 * A packet crosses a link when the link is idle and the far end has a buffer for it; until then it waits in the buffer where
 * it is, which nobody else can have meanwhile. That is InfiniBand's credit flow control: a busy receiver fills the buffers in
 * front of it, then those in front of them, and congestion spreads. Switches cut through: a packet goes on as soon as its
 * first byte is there. Packets that wait for one link take turns in the order in which they came. Links that share a bus take
 * turns packet by packet.
 *
 * With machine.lanes messages move as worms instead: see lanes.c.
 *
 * Each rail is a network of its own, with adapters and switches of its own; they share nothing but the nodes, and their bus
 * if machine.bus_node is set.
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

/* One direction of a cable, or of a node's bus. One cache line: with 10,000 nodes there are 60,000 links, and fetching them
 * from memory is most of what a simulation does. */
struct link {
    struct tree_place end; /* the switch it leads to */
    uint32_t end_node;     /* where it leads, when it leads to a node's memory or adapter; otherwise NONE */
    uint32_t medium;       /* index of the link whose free_at and used_by it shares: its own, but of a bus */
    uint32_t first, last;  /* packets that wait for it */
    uint32_t used_by;      /* as a medium: the link that used it last */
    sim_time free_at;      /* as a medium: when it is */
    sim_time wake_at;      /* an event will look at it then; NEVER: none will */
    sim_time soonest;      /* when `soon` is not 0: the earliest time at which a buffer will be free */
    uint8_t rail;
    uint8_t free_count; /* buffers at its far end that are free now */
    uint8_t soon;       /* buffers that will be free: at soonest, and at network.soon_at, ... */
    uint8_t soon_first; /* ... a ring that begins here, earliest first; its first place is soonest's */
    bool yielded;       /* it let others of its medium go first */
} __attribute__((aligned(LINE_BYTES)));
_Static_assert(sizeof(struct link) == LINE_BYTES, "a link is one cache line");

struct packet {
    uint32_t message, bytes; /* data, without header */
    uint32_t held; /* the link whose far-end buffer it is in; NONE in its sender's memory; or SWITCH */
    uint32_t next; /* in a queue or in the list of free ones */
    union {
        uint32_t number; /* in its message; not of copies */
        uint32_t copies; /* of copies: index of who shares the buffer with it */
    };
    uint16_t epoch;            /* of its message, when it was cut */
    bool begins : 1, ends : 1; /* the first and the last of its message */
    bool copied : 1;           /* others share the buffer with it */
    sim_time tail;             /* when its last byte is where its first byte is now */
};

/* Copies of a multicast packet in one buffer of a switch: it is free when the last of them has left. */
struct copies {
    uint32_t left, next;
    sim_time end; /* the latest */
};

enum message_kind { MESSAGE_PLAIN, MESSAGE_MULTICAST, MESSAGE_BARRIER, MESSAGE_NAK };

/* Somebody's message. `arrived` is called with its number when its last byte is in the receiver's memory. */
struct message {
    uint32_t from, to; /* nodes; to: the node that has it, while `delivered` is called for a multicast */
    uint32_t rail;
    uint8_t kind, path;
    uint8_t urgent;
    uint64_t unsent, missing; /* bytes; multicast: missing counts packets on their way */
    bool begun;               /* its first packet was cut */
    /* After a loss (loss.c): */
    bool broken, requested,
        done;            /* packet `gap` was lost; the receiver has requested it; everything has arrived */
    uint16_t epoch;      /* how often it was begun again */
    uint32_t gap, known; /* known: lost packets with a timeout and NAKs that have its number */
    uint64_t bytes;      /* all of it */
    uint32_t tag;        /* the caller's */
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
    struct link *links;              /* of the tree, then two for each node's bus when it has a rate */
    double *rates;                   /* of each cable, GB/s; NULL: all have the machine's */
    uint32_t lanes;                  /* 0: messages do not hold links (lanes.c) */
    uint32_t *lane_holders;          /* of each cable, for each of its lanes: a message */
    struct lane_queue *lane_waiting; /* of each cable */
    sim_time *soon_at;               /* of each link, for each of its buffers */
    uint32_t buffers;                /* of a link */
    uint32_t links_count, bus_first, rails;
    double *rail_scale; /* of the link rate: 1 unless network_rail_rate said otherwise */
    struct packet *packets;
    uint32_t packets_count, packets_free;
    struct message *messages;
    uint32_t messages_count, messages_free;
    uint32_t *node_first,
        *node_last; /* messages that an adapter still has to cut into packets: two queues each, the
                                         second for urgent ones */
    struct copies *copies;
    uint32_t copies_count, copies_free;
    uint32_t *scratch;              /* links of one switch */
    uint32_t *gathered;             /* of each switch on the multicast tree: who has come to the barrier */
    uint32_t *turn;                 /* of each node: which of a destination's LIDs the next message takes */
    uint64_t random, lost, refused; /* packets; refused: those that go-back-N repeats */
    bool failed;                    /* memory ran out */
    void (*arrived)(void *ctx, uint32_t message);
    void (*began)(void *ctx, uint32_t message); /* NULL, or: its first byte is in the receiver's adapter */
    void (*delivered)(void *ctx, uint32_t message, uint32_t node); /* a multicast packet or a barrier's end */
    void (*soon)(void *ctx, const struct event *e, enum event_soon how); /* NULL, or as event_queue.soon */
    void (*other)(void *ctx,
                  const struct event *e); /* events of the caller's own kinds, EVENT_OTHER and above */
    void *ctx;
};

enum { EVENT_PACKET, EVENT_LINK, EVENT_LOCAL, EVENT_DOORBELL, EVENT_RETRY, EVENT_COMBINED, EVENT_OTHER };

bool network_make(struct network *n, const struct machine *m, uint32_t nodes);
void network_free(struct network *n);

/* From now on; between ranks of one node it does not touch the network. Returns its number, NONE when memory ran out. */
uint32_t network_send(struct network *n, uint32_t from, uint32_t to, uint64_t bytes, uint32_t tag);

/* Over one of several rails. An urgent message goes before all packets that have not been cut yet; where there is a bus, it is
 * from adapter to adapter and does not cross it. It is one packet. */
uint32_t network_send_on(struct network *n, uint32_t rail, uint32_t from, uint32_t to, uint64_t bytes,
                         uint32_t tag, bool urgent);

/* One packet to all nodes but the sender, copied by the switches. It may be lost on any link; nobody sends it again. */
uint32_t network_multicast(struct network *n, uint32_t from, uint32_t bytes, uint32_t tag);

/* The node has come to the barrier that the switches count; `delivered` is called for each node when all have. Every node of the
 * network takes part, and nothing of it is lost. */
uint32_t network_barrier(struct network *n, uint32_t from, uint32_t tag);

/* All cables of a rail run at this multiple of machine.link_rate from now on. */
void network_rail_rate(struct network *n, uint32_t rail, double scale);

/* Until nothing is left to happen, or memory ran out. */
void network_run(struct network *n);

#endif

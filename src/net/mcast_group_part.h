/* mcast_group_part.h: what the files of a multicast group share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_GROUP_PART_H
#define FP_NET_GROUP_PART_H

#include "base/mapping.h"
#include "net/mcast_group.h"
#include "net/mcast/sender.h"
#include "net/mcast/stream.h"

/* Header of every multicast packet. */
struct group_head {
    uint64_t group;
    uint32_t seq;
    uint16_t from;  /* member that originated the packet */
    uint16_t flags; /* enum group_flags */
    uint32_t total; /* bytes of the message */
    uint32_t channel;
};
_Static_assert(sizeof(struct group_head) == 24, "travels between processes");
enum group_flags {
    GROUP_ASK = 1,
    GROUP_ACK = 2,
    GROUP_EMPTY = 4,  /* only a request for an acknowledgement, without data */
    GROUP_CARRIES = 8 /* struct group_carried follows the data */
};

/* An acknowledgement that travels with a packet of the same member [Liu04 7.2.4]. */
struct group_carried {
    struct mcast_ack ack;
    uint64_t root;
};

/* An acknowledgement that a member writes into the memory of a root or co-root. Its words may arrive at
 * different times. */
struct group_note {
    struct mcast_ack ack;
    uint64_t check;
    uint64_t pad;
};

/* Memory into which members write acknowledgements. A member may write after the root has closed the
 * group, so the memory stays registered and is reused for the next group: the check rejects those of other
 * groups. */
struct group_notes {
    struct list link; /* in net->group_notes while no group uses the memory */
    struct transport *transport;
    struct mapping memory;
    struct group_note *note; /* the acknowledgements in `memory`, by member */
    struct net_mem mem;
    struct net_key key;
};

/* A packet stored because it arrived out of order or before its receive was posted. */
struct group_kept {
    char *data; /* payload, after the struct group_head */
    uint32_t length;
    uint32_t total, channel;
    uint32_t handle; /* buffer of the transport, if `block` is NULL */
    void *block;     /* memory from malloc */
};

/* A co-root's window: the packets that its leaves have not acknowledged yet. */
struct group_relay {
    struct mcast_sender sender;
    struct mcast_rules rules; /* packets are sent again to each leaf alone, never to all members */
    char *packets;            /* the packets of the window, with heads */
    uint32_t *length;
};

/* The packets of one sender. */
struct group_stream {
    struct mcast_stream in;
    struct list dirty; /* in net_group.dirty while an acknowledgement is owed */
    uint32_t from;
    uint32_t parent;                /* member that collects the acknowledgements of this one */
    uint32_t index;                 /* index of this member among the children of the parent */
    struct group_kept *kept;        /* stored packets, by sequence number modulo rules.ring */
    struct group_relay *relay;      /* NULL: not a co-root of this sender */
    struct net_group_want *current; /* receive whose message is arriving; NULL: between two messages */
};

/* A message without a receive, set aside because a receive waits for a later message of the same sender. */
struct group_aside {
    struct net_group_want want;
    char data[];
};

/* A frame that arrived before the members' cards (net_group_connect_members). */
struct group_early {
    struct frame_header header;
    size_t length;
    void *payload;
};

struct net_group {
    struct net *net;
    struct transport *transport;
    const struct transport_multicast *ops;
    void *member;
    struct list link; /* net->groups */
    struct net_hook hook;
    struct net_group_setup setup;
    struct net_group_card *cards; /* by member */
    struct peer **peers;
    size_t payload; /* bytes of a packet */
    /* Sending. Each packet of the window has a slot; one more slot is for requests for acknowledgements. */
    struct mcast_sender sender;
    uint32_t *length;          /* bytes of the packet in each slot of the window */
    struct group_notes *notes; /* acknowledgements that children write; NULL: children send them */
    bool wants_slot;           /* a send waits until the packet in the next slot was sent */
    bool awake;                /* the group is counted in net->unrung */
    uint32_t empty;            /* consecutive polls that found nothing */
    struct group_early *early;
    uint32_t nearly;
    /* Receiving. */
    struct group_stream **streams; /* by sender; NULL until its first packet */
    struct list dirty;
    uint32_t room;     /* receive buffers that may still store packets */
    struct list wants; /* struct net_group_want, not complete */
    struct list aside; /* struct group_aside */
    size_t aside_bytes;
};

static inline struct mcast_tree group_tree(const struct net_group *g, uint32_t root)
{
    return (struct mcast_tree){g->setup.members, root, g->setup.collectors, g->setup.deliver};
}

/* mcast_group.c */
int group_peer(struct net_group *g, uint32_t member, struct peer **out);

/* mcast_group_send.c */
int group_send_open(struct net_group *g);
void group_send_close(struct net_group *g);
int group_send_poll(struct net_group *g); /* reads acknowledgements, checks timers */
/* True if a packet waits for room on a connection. */
bool group_has_undelivered(struct net_group *g);
void group_handle_ack(struct net_group *g, uint32_t from, uint32_t root, const struct mcast_ack *ack);
uint64_t group_note_checksum(uint64_t group, const struct mcast_ack *ack);
/* Stores a packet in a co-root's window, which must have room, until its leaves have acknowledged it. */
void group_relay_push(struct net_group *g, struct group_stream *s, const struct group_head *h,
                      const void *data, size_t len);
int group_relay_open(struct net_group *g, struct group_stream *s);
void group_relay_close(struct group_stream *s);
int group_relay_poll(struct net_group *g, struct group_stream *s);

/* mcast_group_receive.c */
int group_receive_poll(struct net_group *g);
/* Handles a packet of `length` bytes with its header, in a buffer of the transport or in a frame (handle
 * UINT32_MAX). Returns true if the buffer must not be reposted yet. */
bool group_handle_packet(struct net_group *g, const void *packet, size_t length, uint32_t handle);
bool group_has_pending_acks(const struct net_group *g); /* acknowledgements that have not been sent */
/* The time when the next acknowledgement is due; `soon`: the time to retry an acknowledgement that could not
 * be sent. MCAST_NEVER: no acknowledgement is pending. */
uint64_t group_ack_deadline(const struct net_group *g, uint64_t soon);
/* Removes and returns one pending acknowledgement, which the caller sends now. False: none is pending. */
bool group_pop_pending_ack(struct net_group *g, struct group_carried *out);
/* Must be called when packets have left a co-root's window: may offer the sender more room. */
void group_relay_slots_freed(struct net_group *g, struct group_stream *s);
void group_receive_close(struct net_group *g);
int group_get_stream(struct net_group *g, uint32_t from, struct group_stream **out);

#endif

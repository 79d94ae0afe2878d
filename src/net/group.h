/* group.h: reliable multicast: messages that every member of a group gets, once and in the order of their sender
 * [Liu04 7]. It drives the machines of mcast/ with a transport's multicast packets; acknowledgements, and what a few
 * members have missed, travel over the connections between two processes.
 *
 * Every member may send. Messages of a sender have channels: within a channel all receive them in the order in which they were
 * sent, and of several channels each member in an order of its own. A group is not for
 * several threads at once: the caller holds the lock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_GROUP_H
#define FP_NET_GROUP_H

#include "net/mcast/tree.h"
#include "net/mcast/rules.h"
#include "net/net.h"

/* The kind of frames of multicast groups. The layer that receives all frames passes those of this kind to net_group_frame, which never
 * waits. */
#define NET_FRAME_GROUP 18
void net_group_frame(struct net *net, struct peer *from, const struct frame_header *h, const void *payload,
                     size_t len);

/* Called before the transports close, when no group is open any more. */
void net_groups_close(struct net *net);

struct net_group;

struct net_group_setup {
    uint64_t id; /* no two groups of a world have the same */
    uint32_t members, me;
    uint32_t collectors; /* the root and its co-roots */
    bool deliver;        /* co-roots receive every packet over connections besides, along a tree */
    struct mcast_rules rules;
    bool by_write; /* acknowledgements are written into the memory of roots and co-roots if possible */
    int (*peer)(void *arg, uint32_t member, struct peer **out);
    void *arg;
};

/* What a member sends to all others before the first message. */
struct net_group_card {
    uint64_t address; /* memory for acknowledgements that are written; 0: acknowledgements are sent */
    struct net_key key;
    uint32_t packet;   /* bytes of the largest packet */
    uint32_t receives; /* buffers for packets; 0: the member has not joined */
};

/* Default settings; window and aggregate may be changed before they are used. */
struct mcast_rules net_group_make_rules(uint32_t window, uint32_t aggregate, bool skew, uint64_t timeout_us);

/* Joins the group. No member may send before all have joined and received each other's cards. */
int net_group_open(struct net *net, struct transport *t, const struct net_group_setup *setup,
                   struct net_group **out);
void net_group_fill_card(const struct net_group *g, struct net_group_card *card);
/* Sets the cards of all members; the group keeps the array (from malloc). */
void net_group_connect_members(struct net_group *g, struct net_group_card *cards);
/* After that: the bytes of a packet, and the number of packets that all members together may send without any running
 * out of buffers. */
size_t net_group_max_payload(const struct net_group *g);
size_t net_group_max_burst(const struct net_group *g);
/* Returns when all members have what this one has sent, making progress meanwhile. Everything sent to this one must
 * have been received. */
void net_group_close(struct net_group *g);

/* Sends as much of a message as possible and returns the number of bytes. Call again with the rest when progress was
 * made, before another message is sent. `total` is the length of the message, at least 1 and less than 4 GiB; `at` is
 * what was sent of it before. */
size_t net_group_send(struct net_group *g, uint32_t channel, const char *message, size_t at, size_t total);
bool net_group_can_send(const struct net_group *g);
/* True if all members have acknowledged everything. */
bool net_group_is_idle(const struct net_group *g);

/* A message that is waited for: the next one of this sender with this channel. Messages of one channel come in the order in which
 * they were sent; those of other channels may be waited for in another order. */
struct net_group_want {
    uint32_t from, channel;
    char *message;
    size_t length;
    /* Set by the group. */
    struct list link;
    size_t got, total; /* bytes received so far; length of the message as its sender announced it */
    bool begun, aside, complete;
};
/* Posts a receive whose from, channel, message and length are set; the group owns it until it is complete. */
void net_group_post_receive(struct net_group *g, struct net_group_want *w);

#endif

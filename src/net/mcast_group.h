/* mcast_group.h: reliable multicast: every member of a group receives each message once, and the messages of a
 * sender in order [Liu04 7]. The state machines of mcast/ run over a transport's multicast packets;
 * acknowledgements, and packets that only a few members missed, travel over point-to-point connections.
 *
 * Every member may send. Messages of a sender have channels: within a channel all members receive them in the
 * order of sending; between channels there is no order. A group is not thread-safe: the caller holds the
 * lock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_MCAST_GROUP_H
#define FP_NET_MCAST_GROUP_H

#include "net/mcast/ack_tree.h"
#include "net/mcast/rules.h"
#include "net/net.h"

/* The kind of frames of multicast groups. The layer that receives all frames passes those of this kind to
 * net_group_handle_frame, which never blocks. */
#define NET_FRAME_GROUP 18
void net_group_handle_frame(struct net *net, struct peer *from, const struct frame_header *h,
                            const void *payload, size_t len);

/* Called before the transports close, when no group is open any more. */
void net_groups_close(struct net *net);

struct net_group;

struct net_group_setup {
    uint64_t id; /* unique among the groups of a world */
    uint32_t members, me;
    uint32_t collectors; /* the root and its co-roots */
    bool deliver;        /* co-roots also receive every packet over their connections, along a tree */
    struct mcast_rules rules;
    bool by_write; /* acknowledgements are written into the memory of roots and co-roots if possible */
    int (*peer)(void *arg, uint32_t member, struct peer **out);
    void *arg;
};

/* Addresses and limits that each member sends to all others before the first message. */
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
/* Sets the cards of all members; the group takes ownership of the array (from malloc). */
void net_group_connect_members(struct net_group *g, struct net_group_card *cards);
/* After net_group_connect_members: the payload of a packet in bytes, and the number of packets that all
 * members together may send without any member running out of receive buffers. */
size_t net_group_max_payload(const struct net_group *g);
size_t net_group_max_burst(const struct net_group *g);
/* Returns when all members have acknowledged what this member sent; makes progress meanwhile. All messages to
 * this member must have been received. */
void net_group_close(struct net_group *g);

/* Sends as much of a message as possible and returns the number of bytes. After progress was made, call again
 * with the rest, before another message is sent. `total` is the length of the message, at least 1 and less
 * than 4 GiB; `at` is the number of bytes sent by earlier calls. */
size_t net_group_send(struct net_group *g, uint32_t channel, const char *message, size_t at, size_t total);
bool net_group_can_send(const struct net_group *g);
/* True if all members have acknowledged everything. */
bool net_group_is_idle(const struct net_group *g);

/* A posted receive for the next message of this sender with this channel. Messages of one channel are
 * received in the order of sending; receives for other channels may be posted in any order. */
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

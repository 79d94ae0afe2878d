/* peer.h: a process as the layers above see it: its transport, the limits of that transport, and the queue of
 * work that could not be sent yet. All decisions that a small send needs are made when the peer connects.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_PEER_H
#define FP_NET_PEER_H

#include "base/err.h"
#include "base/list.h"
#include "net/transport.h"

/* Work that could not be sent for lack of resources; embedded in a request. `resume` returns 0 when the item
 * is finished with the queue, ERR_AGAIN to stay at its head, or an error (the item is then finished too). */
struct net_pending {
    struct list link;
    int (*resume)(struct net_pending *item);
};

#define PEER_CLASSES 8

/* The members that every small message uses come first, in two cache lines. */
struct peer {
    const struct transport_ops *ops; /* transport->ops: a copy saves one load in every send */
    struct transport *transport;
    void *endpoint;       /* state of the transport for this peer */
    struct list pending;  /* struct net_pending; no send may overtake this queue */
    uint64_t eager_below; /* bytes: shorter messages are sent without further checks; 0: all are checked */
    uint64_t sent_messages, sent_bytes; /* sent by p2p to this peer, for FISHPLATE_STATS */
    uint32_t messages_to[PEER_CLASSES], messages_from[PEER_CLASSES]; /* messages in frames, counted by p2p */
    uint64_t eager_max; /* largest eager message in bytes, set by p2p when the peer connects */
    void *protocol;     /* state of p2p for this peer */
    struct transport_caps caps;
    struct list stalled_link; /* in net->stalled */
    struct net *net;
    uint32_t announced; /* large messages that the peer has not answered yet, counted by p2p */
    uint32_t rank;      /* job rank (in MPI_COMM_WORLD), or the number of a guest */
    uint32_t node;
    bool stalled; /* the peer is in net->stalled */
    bool opening; /* the transport refuses frames because the connection is not open yet */
    bool local;   /* the peer is on the same (virtual) node */
    bool self;
    const struct net_card *card; /* card of a guest; NULL: a process of this world */
    uint32_t paces;              /* index + 1 of the peer's first record in net->paces (pace.h); 0: none */
};

/* Counts a message that was sent or announced. The counters share a cache line with data that every send
 * uses, so that counting costs no cache miss. */
static inline void peer_count_message(struct peer *peer, uint64_t bytes)
{
    peer->sent_messages++;
    peer->sent_bytes += bytes;
}

/* Sends a frame ahead of the queued work. Only for work from the head of the queue, or without order. */
static inline int peer_send_now(struct peer *peer, const struct frame_header *header, const void *payload,
                                size_t len)
{
    return peer->ops->send(peer, frame_head(header->kind, header->flags, header->aux, header->context),
                           frame_from(header->source, header->tag), header->word, payload, len);
}

/* Sends a frame if nothing is queued before it; otherwise, or when the transport is out of resources,
 * ERR_AGAIN. */
static inline int peer_send(struct peer *peer, const struct frame_header *header, const void *payload,
                            size_t len)
{
    if (unlikely(!list_empty(&peer->pending)))
        return ERR_AGAIN;
    return peer_send_now(peer, header, payload, len);
}

/* Queues work for this peer; net_progress resumes queued work in order. */
void peer_queue(struct peer *peer, struct net_pending *item);

/* Resumes queued items until resources are exhausted again; returns the number of finished items. */
int peer_resume(struct peer *peer);

/* Describes the connection for people: "shm (...)", "ib over softib0 port 1, softib in shared memory (software)". */
void peer_describe(const struct peer *peer, char *out, size_t size);

/* Must be called after an item was removed from `pending` other than by peer_resume: updates net->stalled. */
void peer_remove_stalled(struct peer *peer);

#endif

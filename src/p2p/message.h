/* message.h: unexpected messages: a message, or its announcement, arrived before its receive was posted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_MESSAGE_H
#define FP_P2P_MESSAGE_H

#include "p2p/engine.h"

#define MESSAGE_SMALL 256 /* bytes of payload of a message from the pool */

struct message {
    /* MAGIC_MESSAGE; first member, since the message may be a user's handle (matched probe) */
    struct object obj;
    struct match_entry match;
    struct p2p *p2p;
    struct comm *comm; /* set when a matched probe returned the message; passed on to the receive */
    struct peer *from;
    uint64_t length; /* bytes of the whole message */
    uint64_t cookie; /* cookie of the send, for synchronous and rendezvous messages */
    uint8_t kind;    /* enum frame_kind */
    uint8_t last;    /* rendezvous: last byte of the data */
    bool pooled;
    struct rts rts;
    char payload[];
};

static inline struct message *message_of(struct match_entry *e)
{
    return container_of(e, struct message, match);
}

/* Creates an unexpected message and adds it to the table of unexpected messages. */
struct message *message_new(struct p2p *p, struct peer *from, const struct frame_header *h, size_t payload);
void message_free(struct message *m);

/* Frees the waiting messages of this peer, or of all peers if `from` is NULL. */
void messages_free_from(struct p2p *p, const struct peer *from);

#endif

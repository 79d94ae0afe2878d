/* frames.h: the frames between the point-to-point engines of two ranks: their kinds and payloads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_FRAMES_H
#define FP_P2P_FRAMES_H

#include "net/mcast_group.h"
#include "net/transport.h"
#include "p2p/envelope.h"
#include "p2p/p2p.h"

/* Frame kinds: frame_header.kind. `word` is the length of the message or the cookie of a request of the
 * frame's receiver. */
enum frame_kind {
    FRAME_EAGER,      /* word: length; payload: the data */
    FRAME_EAGER_SYNC, /* word: sender's cookie; payload: the data; answered by FRAME_ACK when matched */
    FRAME_ACK,        /* word: cookie */
    FRAME_RTS,        /* announces a message. word: length; aux: last byte; payload: struct rts */
    FRAME_FIN,   /* the receiver has read the data, or refuses it. word: sender's cookie; aux: error class */
    FRAME_CTS,   /* requests the message in pieces. word: sender's cookie; payload: struct cts */
    FRAME_PIECE, /* the next bytes. word: receiver's cookie */
    FRAME_CTS_WRITE, /* requests a write. word: sender's cookie; flags: CTS_*; payload: struct cts_write */
    FRAME_WRITTEN,   /* the data is written. word: receiver's cookie; aux: error class; payload: length */
    FRAME_RTR, /* offers the memory of a receive. word: receiver's cookie; context, source, tag of the receive;
                       * aux: last byte; flags: RTR_LOOKS; payload: struct rtr */
    /* the sender writes into the offered receive with this cookie, which matches no other message */
    FRAME_TAKEN,
    FRAME_RECALL,    /* the receiver withdraws all its offers */
    FRAME_RECALLED,  /* answer to RECALL: the sender writes into none of them any more */
    FRAME_CANCEL,    /* cancels a send. word: sender's cookie; context, source, tag of the message */
    FRAME_CANCELLED, /* answer to CANCEL. word: cookie; flags: 1 if the unmatched message was removed */
    FRAME_ONE_SIDED = P2P_FRAME_ONE_SIDED, /* a one-sided operation; contents: src/rma */
    FRAME_NOTE,                    /* FISHPLATE_DEBUG=match, about the next message; payload: struct note */
    FRAME_FAULT = P2P_FRAME_FAULT, /* an agreement after a failure; contents: src/ft */
    FRAME_GROUP = NET_FRAME_GROUP, /* a frame of net/mcast_group.h */
    FRAME_CALL = P2P_FRAME_CALL,   /* a collective call that waits; contents: src/coll */
    FRAME_KINDS
};

/* Bits of rts.can: transfers that are possible for the data. */
enum {
    RTS_READ = 1,    /* the receiver may read the data */
    RTS_WRITE = 2,   /* the sender can write the data */
    RTS_PIPE = 4,    /* the sender can register and write the data in pieces */
    RTS_MAPGET = 8,  /* the receiver may map the sender's GPU memory: struct gpu_export follows */
    RTS_MAPPUT = 16, /* the sender can map GPU memory of the receiver */
    RTS_GPU = 32,    /* the data is in GPU memory: its last byte is not known */
    RTS_STAGED = 64  /* the sender can write the data from a staging buffer */
};
enum { RTR_LOOKS = 1 }; /* the receiver polls the last byte */
enum {
    CTS_SPLIT = 1,       /* requests a part: the receiver reads the rest and reports completion */
    CTS_PIPE = 2,        /* requests a piece of a PIPE message */
    CTS_LAST = 4,        /* requests the last piece */
    CTS_UNREACHABLE = 8, /* requests the piece in frames, since the receiver could not register its memory */
    CTS_MAP = 16,        /* the sender maps GPU memory of the receiver: struct gpu_export follows */
    CTS_STAGED = 32      /* the address is that of a staging buffer (rendezvous_staged.c) */
};

struct rts {
    uint64_t cookie;
    uint64_t address; /* RTS_READ, RTS_WRITE: address of the data; RTS_PIPE: bytes of a piece */
    struct net_key key;
    uint64_t can; /* RTS_* */
};

struct cts {
    uint64_t cookie; /* cookie of the receive */
    uint64_t bytes;  /* bytes of the message for which the receiver has room */
};

struct cts_write {
    struct cts cts;
    uint64_t address;
    struct net_key key;
    uint64_t offset; /* offset in the message of the requested bytes */
};

struct rtr {
    uint64_t address, room;
    struct net_key key;
    uint32_t received; /* messages of the class from the sender, when the offer was made */
    uint32_t unused;
};

static inline struct envelope header_envelope(const struct frame_header *h)
{
    return (struct envelope){.context = h->context, .source = h->source, .tag = h->tag};
}

#endif

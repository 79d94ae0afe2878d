/* frames.h: what travels between the point-to-point engines of two ranks: the kinds of frames and their payloads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_FRAMES_H
#define FP_P2P_FRAMES_H

#include "net/group.h"
#include "net/transport.h"
#include "p2p/envelope.h"
#include "p2p/p2p.h"

/* Frame kinds: frame_header.kind. In all of them `word` is the message length or the cookie the receiver of
 * the frame knows its request by. */
enum frame_kind {
    FRAME_EAGER,      /* word: length; payload: the data */
    FRAME_EAGER_SYNC, /* word: sender's cookie; payload: the data; answered by FRAME_ACK when matched */
    FRAME_ACK,        /* word: cookie */
    FRAME_RTS,        /* word: length; aux: last byte; payload: struct rts; a message that is announced */
    FRAME_FIN, /* word: sender's cookie; aux: error class; the receiver has read the data, or cannot take it */
    FRAME_CTS,   /* word: sender's cookie; payload: struct cts; send it in pieces */
    FRAME_PIECE, /* word: receiver's cookie; payload: the next bytes */
    FRAME_CTS_WRITE, /* word: sender's cookie; flags: CTS_*; payload: struct cts_write; write it into this memory */
    FRAME_WRITTEN, /* word: receiver's cookie; aux: error class; payload: length; the data is there */
    FRAME_RTR,    /* word: receiver's cookie; context, source, tag; aux: last byte; flags: RTR_LOOKS; payload:
                         struct rtr; a receive offers its memory */
    FRAME_TAKEN,  /* word: receiver's cookie; its receive is being written to: it takes no other message */
    FRAME_RECALL, /* drop all offers of mine, and answer when nothing goes into them any more */
    FRAME_RECALLED,  /* ... the answer */
    FRAME_CANCEL,    /* word: sender's cookie; context, source, tag: where to look for it */
    FRAME_CANCELLED, /* word: cookie; flags: 1 when the message was still waiting and is gone */
    FRAME_ONE_SIDED = P2P_FRAME_ONE_SIDED, /* everything in it belongs to src/rma */
    FRAME_NOTE,                    /* FISHPLATE_DEBUG=match, about the next message; payload: struct note */
    FRAME_FAULT = P2P_FRAME_FAULT, /* everything in it belongs to src/ft */
    FRAME_GROUP = NET_FRAME_GROUP, /* everything in it belongs to net/group.h */
    FRAME_CALL = P2P_FRAME_CALL,   /* everything in it belongs to src/coll */
    FRAME_KINDS
};

/* struct rts: the receiver may read the data; the sender could write it; or register and write it in pieces. */
enum {
    RTS_READ = 1,
    RTS_WRITE = 2,
    RTS_PIPE = 4,
    RTS_MAPGET = 8,  /* GPU memory that the receiver may map: struct gpu_export follows */
    RTS_MAPPUT = 16, /* the sender could map GPU memory of the receiver */
    RTS_GPU = 32     /* the data is in GPU memory: its last byte is not known */
};
enum { RTR_LOOKS = 1 }; /* the receiver polls the last byte */
enum {
    CTS_SPLIT = 1,       /* only a part: the receiver reads the rest and reports completion */
    CTS_PIPE = 2,        /* only a piece: others follow, */
    CTS_LAST = 4,        /* but for the last, */
    CTS_UNREACHABLE = 8, /* or that could not be registered: it goes in frames */
    CTS_MAP = 16 /* into GPU memory of the receiver, which the sender maps: struct gpu_export follows */
};

struct rts {
    uint64_t cookie;
    uint64_t
        address; /* of the data, when it is one block that is registered; else bytes of a piece, with RTS_PIPE */
    struct net_key key;
    uint64_t can; /* RTS_* */
};

struct cts {
    uint64_t cookie; /* the receiver's */
    uint64_t bytes;  /* how many it has room for */
};

struct cts_write {
    struct cts cts;
    uint64_t address;
    struct net_key key;
    uint64_t offset; /* of these bytes in the message */
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

/* engine.h: what the files of src/p2p share: the engine, its requests, waiting messages, and the frames they
 * exchange. Each protocol file (eager.c, rendezvous_get.c, rendezvous_copy.c) holds both halves of its
 * protocol.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_ENGINE_H
#define FP_P2P_ENGINE_H

#include "base/copy.h"
#include "base/counter.h"
#include "base/pool.h"
#include "p2p/ids.h"
#include "p2p/match.h"
#include "p2p/p2p.h"
#include "p2p/way.h"

/* Frame kinds: frame_header.kind. In all of them `word` is the message length or the cookie the receiver of
 * the frame knows its request by. */
enum frame_kind {
    FRAME_EAGER,      /* word: length; payload: the data */
    FRAME_EAGER_SYNC, /* word: sender's cookie; payload: the data; answered by FRAME_ACK when matched */
    FRAME_ACK,        /* word: cookie */
    FRAME_RTS,        /* word: length; payload: struct rts; a message that will be fetched or asked for */
    FRAME_CTS,        /* word: sender's cookie; payload: struct cts; send it in pieces */
    FRAME_PIECE,      /* word: receiver's cookie; payload: the next bytes */
    FRAME_FIN,        /* word: sender's cookie; aux: error class; the receiver has fetched the data */
    FRAME_CANCEL,     /* word: sender's cookie; context, source, tag: where to look for it */
    FRAME_CANCELLED,  /* word: cookie; flags: 1 when the message was still waiting and is gone */
    FRAME_KINDS
};

struct rts {
    uint64_t cookie;
    uint64_t address; /* of the data, when it is one block; else 0 and `reachable` is 0 */
    struct net_key key;
    uint64_t reachable;
};

struct cts {
    uint64_t cookie; /* the receiver's */
    uint64_t bytes;  /* how many it has room for */
};

struct p2p {
    struct net *net;
    struct match_table posted, unexpected;
    uint64_t order;         /* numbers posted receives and waiting messages */
    struct pool requests;   /* struct p2p_request */
    struct pool messages;   /* struct message with MESSAGE_SMALL bytes */
    struct pool controls;   /* control frames that found no room */
    struct ids ids;         /* cookies of requests that peers know of */
    struct way_table ways;  /* what large messages have cost so far */
    struct request sent;    /* stands for every eager send: complete from the start, never freed */
    struct request no_proc; /* likewise for every receive from MPI_PROC_NULL */
    void (*drop_comm)(struct comm *comm);
    uint32_t channels;             /* names given so far */
    const struct p2p_watch *watch; /* NULL unless a tool looks */
};

struct p2p_request {
    struct request base; /* first */
    struct match_entry match;
    struct net_pending pending;
    struct net_op op;
    struct net_mem mem; /* when registered */
    struct net_key key;
    struct frame_header header;
    struct peer *peer;
    char *buf; /* start of the data when `block`, else the user's buffer */
    MPI_Count count;
    struct dtype *type; /* retained while the request is on its own */
    uint64_t length;    /* bytes to send, or room to receive */
    uint64_t moved;     /* by pieces so far */
    uint64_t expected;  /* receive by pieces: when to stop */
    uint64_t started;   /* large receive: when its data began to move */
    uint64_t first;     /* bytes of its first piece */
    uint64_t cookie;    /* mine, 0 when peers do not know this request */
    uint64_t peer_cookie;
    bool block;  /* the data is one block of memory */
    bool stack;  /* lives in a blocking call: nothing to free, type not retained */
    bool queued; /* on peer->pending */
    bool registered;
    struct dt_cursor cursor; /* valid when !block */
};

#define MESSAGE_SMALL 256

/* A message that arrived before its receive. */
struct message {
    struct object obj; /* MAGIC_MESSAGE; first: it may be a user's handle (matched probe) */
    struct match_entry match;
    struct p2p *p2p;
    struct comm *comm; /* once a matched probe handed it out; the receive takes it over */
    struct peer *from;
    uint64_t length; /* of the whole message */
    uint64_t cookie; /* of the sender, for synchronous and rendezvous messages */
    uint8_t kind;    /* enum frame_kind */
    bool pooled;
    struct rts rts;
    char payload[];
};

static inline struct message *message_of(struct match_entry *e)
{
    return container_of(e, struct message, match);
}

static inline struct p2p_request *p2p_request(struct request *r)
{
    return (struct p2p_request *)r;
}

/* request.c */
extern const struct request_ops send_ops, recv_ops;

/* The request that a peer knows by this cookie, or NULL: an old or invented cookie, one that was told to
 * another peer, or one of a request of another kind. */
static inline struct p2p_request *request_known(struct p2p *p, const struct peer *from, uint64_t cookie,
                                                const struct request_ops *kind)
{
    struct p2p_request *r = ids_find(&p->ids, cookie);
    return r && r->peer == from && r->base.ops == kind ? r : NULL;
}
struct p2p_request *p2p_request_new(struct p2p *p, const struct request_ops *ops);

/* Describes the user's buffer to the request. */
static inline void request_data(struct p2p_request *r, const void *buf, MPI_Count count, struct dtype *type)
{
    MPI_Aint offset;
    r->block = dt_is_block(type, count, &offset);
    r->buf = r->block ? ptr_add(buf, offset) : (char *)(uintptr_t)buf;
    r->count = count;
    r->type = type;
    r->length = (uint64_t)(count * type->size);
}

/* control.c: small frames of protocols, queued when there is no room. */
void control_send(struct p2p *p, struct peer *to, const struct frame_header *header, const void *payload,
                  size_t len);

/* recv.c */
void recv_start(struct p2p *p, struct p2p_request *r, struct envelope env);
/* The message that belongs to this receive is here (or its announcement): takes it over and frees it. */
void recv_message(struct p2p *p, struct p2p_request *r, struct message *m);
void message_free(struct message *m);
struct message *message_new(struct p2p *p, struct peer *from, const struct frame_header *h, size_t payload);
/* Notes who sent it and how much; the error when the message is longer than the room. */
static inline int recv_matched(struct p2p_request *r, struct envelope env, uint64_t length)
{
    r->base.source = env.source;
    r->base.tag = env.tag;
    r->base.bytes = (MPI_Count)MIN(length, r->length);
    return length <= r->length
               ? 0
               : err_set(
                     MPI_ERR_TRUNCATE,
                     "a message of %llu bytes from rank %d with tag %d arrived for a receive of %llu bytes",
                     (unsigned long long)length, env.source, env.tag, (unsigned long long)r->length);
}

/* Copies len bytes that arrived at once into the user's buffer. */
void recv_copy(struct p2p_request *r, const void *payload, size_t len);

/* send.c: sends header + data of the whole message in one frame. */
int send_frame(struct p2p_request *r);
void send_start(struct p2p *p, struct p2p_request *r, enum send_mode mode);

/* eager.c */
void eager_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                   size_t len);
void eager_sync_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                        size_t len);
void eager_take(struct p2p *p, struct p2p_request *r, struct message *m);
void ack_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);

/* rendezvous.c: the announcement, common to both ways of moving the data. */
void rendezvous_start(struct p2p *p, struct p2p_request *r);
void rts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len);
void rendezvous_take(struct p2p *p, struct p2p_request *r, struct peer *from, struct envelope env,
                     uint64_t length, const struct rts *rts);

/* Forgets the registration of the data, if there is one. */
static inline void request_unregister(struct p2p_request *r)
{
    if (r->registered)
        r->peer->transport->ops->mem_release(r->peer->transport, &r->mem);
    r->registered = false;
}

/* rendezvous_get.c: the receiver reads the sender's memory. */
bool get_possible(const struct p2p_request *r, const struct peer *from, const struct rts *rts);
void get_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
void fin_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);

/* rendezvous_copy.c: the sender sends it in pieces through frames. */
void copy_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
void cts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len);
void piece_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                   size_t len);

/* cancel.c */
void cancel_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);
void cancelled_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);
int send_cancel(struct request *r);
int recv_cancel(struct request *r);

#endif

/* engine.h: what the files of src/p2p share: the engine, its requests, waiting messages, and the frames they
 * exchange. Each protocol file (eager.c, rendezvous_*.c) holds both halves of its protocol.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_ENGINE_H
#define FP_P2P_ENGINE_H

#include "base/copy.h"
#include "base/counter.h"
#include "base/pool.h"
#include "p2p/choice.h"
#include "p2p/ids.h"
#include "p2p/last_byte.h"
#include "p2p/match.h"
#include "p2p/offers.h"
#include "p2p/p2p.h"

/* Frame kinds: frame_header.kind. In all of them `word` is the message length or the cookie the receiver of
 * the frame knows its request by. */
enum frame_kind {
    FRAME_EAGER,      /* word: length; payload: the data */
    FRAME_EAGER_SYNC, /* word: sender's cookie; payload: the data; answered by FRAME_ACK when matched */
    FRAME_ACK,        /* word: cookie */
    FRAME_RTS,        /* word: length; aux: last byte; payload: struct rts; a message that is announced */
    FRAME_FIN,   /* word: sender's cookie; aux: error class; context: ns it took; the receiver has read the
                         data */
    FRAME_CTS,   /* word: sender's cookie; payload: struct cts; send it in pieces */
    FRAME_PIECE, /* word: receiver's cookie; payload: the next bytes */
    FRAME_CTS_WRITE, /* word: sender's cookie; flags: CTS_SPLIT; payload: struct cts_write; write it into this
                         memory */
    FRAME_WRITTEN, /* word: receiver's cookie; aux: error class; context: ns a split write took; payload: length;
                      the data is there */
    FRAME_RTR,    /* word: receiver's cookie; context, source, tag; aux: last byte; flags: RTR_LOOKS; payload:
                     struct rtr; a receive offers its memory */
    FRAME_TAKEN,  /* word: receiver's cookie; its receive is being written to: it takes no other message */
    FRAME_RECALL, /* drop all offers of mine, and answer when nothing goes into them any more */
    FRAME_RECALLED,  /* ... the answer */
    FRAME_CANCEL,    /* word: sender's cookie; context, source, tag: where to look for it */
    FRAME_CANCELLED, /* word: cookie; flags: 1 when the message was still waiting and is gone */
    FRAME_ONE_SIDED = P2P_FRAME_ONE_SIDED, /* everything in it belongs to src/rma */
    FRAME_KINDS
};

enum {
    RTS_READ = 1,
    RTS_WRITE = 2
};                      /* struct rts: the receiver may read the data; the sender could write it */
enum { RTR_LOOKS = 1 }; /* the receiver looks at the last byte */
enum { CTS_SPLIT = 1 }; /* only a part: the receiver reads the rest and says when it has */

struct rts {
    uint64_t cookie;
    uint64_t address; /* of the data, when it is one block that is registered */
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
    uint32_t heard; /* messages of its class from the peer that gets this, when it was made */
    uint32_t unused;
};

struct p2p {
    struct net *net;
    struct match_table posted, unexpected;
    uint64_t order;           /* numbers posted receives and waiting messages */
    struct pool requests;     /* struct p2p_request */
    struct pool messages;     /* struct message with MESSAGE_SMALL bytes */
    struct pool controls;     /* control frames that found no room */
    struct ids ids;           /* cookies of requests that peers know of */
    struct choice choices[2]; /* how large messages move best, by caps.cpu_moves */
    struct choice sends;      /* medium ones: at once (WAY_PIECES), or announced (WAY_READ) */
    uint32_t copied;          /* medium ones that arrived at once */
    uint32_t copy_cost;       /* ... what 64 KiB of them took to copy, ns; 0: not known */
    struct last_bytes looks;  /* transfers whose last byte is looked at */
    struct pool reads;        /* struct read: those of the GET protocol */
    struct list links;        /* struct link: peers that offers went to or came from */
    uint64_t offer_above;     /* receives with more room may be offered */
    uint32_t dice;            /* for random last bytes */
    struct request sent;      /* stands for every eager send: complete from the start, never freed */
    struct request no_proc;   /* likewise for every receive from MPI_PROC_NULL */
    void (*drop_comm)(struct comm *comm);
    p2p_one_sided *one_sided; /* where frames of one-sided operations go, NULL until there is a window */
    void *one_sided_arg;
    p2p_peer_of *peer_of; /* who a receive's source is, NULL until someone knows */
    void *peer_of_arg;
    uint32_t channels;             /* names given so far */
    const struct p2p_watch *watch; /* NULL unless a tool looks */
};

/* A peer that receives are offered to or that offers its own. Made when the first offer goes or comes. */
struct link {
    struct list all; /* p2p->links */
    struct peer *peer;
    /* as a receiver */
    struct list offered; /* requests whose receive is offered */
    int noffered;
    bool recalling;     /* offers were asked back and the answer has not come: none goes meanwhile */
    struct trust trust; /* does it pay to offer? */
    /* as a sender */
    struct offers offers;
    struct list writes; /* requests that are being written into offers */
    bool answer;        /* when they are done, answer FRAME_RECALL */
    struct trust hold;  /* does it pay to wait a moment for an offer? */
};

struct p2p_request {
    struct request base; /* first */
    struct match_entry match;
    struct net_pending pending;
    struct net_op op;
    struct net_mem mem; /* when registered */
    struct net_key key; /* of the registration, or of the peer's memory that is written to */
    struct frame_header header;
    struct peer *peer;
    char *buf; /* start of the data when `block`, else the user's buffer */
    MPI_Count count;
    struct dtype *type;          /* retained while the request is on its own */
    uint64_t length;             /* bytes to send, or room to receive */
    uint64_t moved;              /* by pieces so far */
    uint64_t expected;           /* by pieces: when to stop; by one transfer: its bytes */
    uint64_t started;            /* large send: when it was held back, or a split write began */
    uint64_t from;               /* write: where in the data it begins */
    uint64_t copying;            /* in pieces, where ranks share cores: time spent copying them */
    uint64_t read_ns;            /* split receive: how long its own part took, once it is there */
    struct choice_ticket ticket; /* large receive, measured send: to be told what it cost */
    uint64_t cookie;             /* mine, 0 when peers do not know this request */
    uint64_t peer_cookie;
    uint64_t remote;      /* where in the peer's memory */
    int status;           /* of a one-sided transfer that ended inside the call that started it */
    bool starting, ended; /* that call is running; that happened */
    bool tell;            /* the receiver must be told when it is written */
    bool taken;           /* ... and has been told that the receive is */
    bool split;           /* the receiver reads a part and the sender writes the rest */
    uint8_t parts;        /* ... of which so many are not done */
    bool block;           /* the data is one block of memory */
    bool stack;           /* lives in a blocking call: nothing to free, type not retained */
    bool queued;          /* on peer->pending */
    bool held;            /* ... because an offer may come */
    bool registered;
    bool offered;          /* a receive whose memory the peer may write to: on link->offered */
    bool cancelling;       /* ... which completes when the peer has given it back */
    struct last_byte last; /* of a receive that is offered or read */
    struct read *read;     /* by the GET protocol */
    struct list offer_link;
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
    uint8_t last;    /* rendezvous: last byte of the data */
    bool pooled;
    struct rts rts;
    char payload[];
};

static inline struct envelope header_envelope(const struct frame_header *h)
{
    return (struct envelope){.context = h->context, .source = h->source, .tag = h->tag};
}

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

/* Past whatever is queued. */
void control_send_first(struct p2p *p, struct peer *to, const struct frame_header *header,
                        const void *payload, size_t len);

/* recv.c */
void recv_start(struct p2p *p, struct p2p_request *r, struct envelope env);
/* The message that belongs to this receive is here (or its announcement): takes it over and frees it. */
void recv_message(struct p2p *p, struct p2p_request *r, struct message *m);
void message_free(struct message *m);
struct message *message_new(struct p2p *p, struct peer *from, const struct frame_header *h, size_t payload);
/* The error of a message that does not fill its receive, if that is one. */
int recv_uneven(const struct p2p_request *r, struct envelope env, uint64_t length);
/* Notes who sent it and how much; the error when the message does not fit. */
static inline int recv_matched(struct p2p_request *r, struct envelope env, uint64_t length)
{
    r->base.source = env.source;
    r->base.tag = env.tag;
    r->base.bytes = (MPI_Count)MIN(length, r->length);
    return likely(length == r->length || (r->block && length < r->length)) ? 0 : recv_uneven(r, env, length);
}

/* Copies len bytes that arrived at once into the user's buffer. */
void recv_copy(struct p2p_request *r, const void *payload, size_t len);

/* offer.c: true when an offered receive that is about to be given to a frame has been filled, and is complete
 * now. */
bool offer_seen(struct p2p_request *r);

/* The posted receive that takes this message, no longer posted; or NULL. */
static inline struct p2p_request *take_posted(struct p2p *p, struct envelope env)
{
    struct match_entry *e;
    while ((e = posted_find(&p->posted, env)) != NULL) {
        struct p2p_request *r = container_of(e, struct p2p_request, match);
        if (unlikely(r->offered) && offer_seen(r))
            continue;
        posted_remove(&p->posted, e);
        return r;
    }
    return NULL;
}

/* send.c: sends header + data of the whole message in one frame. */
int send_frame(struct p2p_request *r);
void send_start(struct p2p *p, struct p2p_request *r, enum send_mode mode);

/* medium.c: messages that fit into a frame and may still be faster announced and read. */
bool medium_at_once(struct peer *to, uint64_t length);
bool medium_announced(struct p2p *p, struct p2p_request *r);
/* It was sent at once. */
void medium_sent(struct p2p *p, struct p2p_request *r, int rc);
/* It was announced, and has taken the receiver so long; 0: not known. */
void medium_took(struct p2p *p, struct p2p_request *r, uint64_t ns);
/* Copies what arrived at once, and notes now and then how long that takes. */
void medium_copy(struct p2p *p, struct p2p_request *r, const void *payload, size_t len);

/* eager.c */
void eager_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                   size_t len);
void eager_sync_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                        size_t len);
void eager_take(struct p2p *p, struct p2p_request *r, struct message *m);
void ack_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);

/* rendezvous.c: the announcement, and the choice of how the data moves. */
struct announcement {
    struct peer *from;
    struct envelope env;
    uint64_t length;
    const struct rts *rts;
    uint8_t last;
};
void rendezvous_start(struct p2p *p, struct p2p_request *r);
void rts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len);
void rendezvous_take(struct p2p *p, struct p2p_request *r, const struct announcement *a);
/* Whether nobody has forced a protocol. */
bool rendezvous_measures(void);
/* How a receive is to be offered to this peer: PROTOCOL_PUT, PROTOCOL_PUTNR, or PROTOCOL_RENDEZVOUS: not at
 * all. `sure`: whatever became of earlier offers. */
enum p2p_protocol rendezvous_offers(const struct peer *peer, bool *sure);

/* Makes the data reachable; false when the transport cannot. */
static inline bool request_register(struct p2p_request *r, uint64_t bytes)
{
    struct transport *t = r->peer->transport;
    r->registered = t->ops->mem_register(t, r->buf, bytes, &r->mem, &r->key) == 0;
    return r->registered;
}

/* Forgets the registration of the data, if there is one. */
static inline void request_unregister(struct p2p_request *r)
{
    if (r->registered)
        r->peer->transport->ops->mem_release(r->peer->transport, &r->mem);
    r->registered = false;
}

/* What is learned about the ways of large messages from this peer. */
static inline struct choice *choice_of(struct p2p *p, const struct peer *peer)
{
    return &p->choices[peer->caps.cpu_moves];
}

/* A large receive is complete, or has failed: tells the policy. */
void rendezvous_took(struct p2p_request *r, int status);
/* The way that was chosen is not open after all: in pieces, which always is. */
void rendezvous_in_pieces(struct p2p *p, struct p2p_request *r, uint64_t bytes);

/* rendezvous_r3.c: the sender sends it in pieces through frames. */
void r3_start(struct p2p *p, struct p2p_request *r, uint64_t bytes);
void cts_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len);
void piece_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                   size_t len);

/* rendezvous_getcqe.c: the receiver reads the sender's memory; the adapter says when it is done. */
void getcqe_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
void fin_send(struct p2p_request *r, int status);
void fin_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);

/* rendezvous_get.c: ... and the last byte does. */
void get_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes, uint8_t last);

/* rendezvous_rput.c: the receiver says where to (CTS), the sender writes it there. */
void rput_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
void cts_write_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                       size_t len);
void rput_written(struct p2p *p, struct p2p_request *r, int error);

/* rendezvous_split.c: ... a part of it, while the receiver reads the rest. */
void split_start(struct p2p *p, struct p2p_request *r, const struct rts *rts, uint64_t bytes);
void split_written(struct p2p *p, struct p2p_request *r, int error, uint64_t ns);
/* The sender's write, or the receiver's read, is done. */
void split_sent(struct p2p_request *r, int status);

/* write.c: the sender's half of every protocol that writes. r->remote, key, peer_cookie, expected and tell
 * say what. 0 when it was started (the request ends by itself), or ERR_AGAIN. */
int write_start(struct p2p_request *r);
/* The same, queued if need be. */
void write_go(struct p2p_request *r);
int write_resume(struct net_pending *item);
void written_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                     size_t len);

/* rendezvous_putnr.c, rendezvous_put.c: the receiver's memory was offered before the sender said anything.
 * They differ in the value they give the last byte. */
uint8_t putnr_last_byte(struct p2p *p);
uint8_t put_last_byte(struct p2p *p);
void putnr_used(void);
void put_used(void);

/* offer.c: offers, seen from both sides. */
void offer_make(struct p2p *p, struct p2p_request *r);
void rtr_arrived(struct p2p *p, struct peer *from, const struct frame_header *h, const void *payload,
                 size_t len);
/* The message that this send holds is about to leave, and an offer for it is here: it goes there if it fits.
 * False: it goes its own way. */
bool offer_use(struct p2p_request *r);
/* A message with this envelope is about to leave in a frame: an offer for it, if there is one, is void. To be
 * called while to->eager_below is 0. ERR_AGAIN: it must not leave yet. */
int offer_pass(struct peer *to, struct envelope env);
void taken_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);
/* The data is in the offered memory. */
void offer_filled(struct p2p_request *r, uint64_t length, int error);
/* The receive gets its message another way, or not at all. */
void offer_void(struct p2p_request *r);
/* It is to be cancelled: ask for it back. */
void offer_recall(struct p2p_request *r);
void recall_arrived(struct p2p *p, struct peer *from);
void recalled_arrived(struct p2p *p, struct peer *from);
void offer_written(struct p2p_request *r);
void links_close(struct p2p *p);
void link_close(struct peer *peer); /* of a guest who goes */

static inline struct link *link_of(const struct peer *peer)
{
    return peer->protocol;
}

/* Should a send of this size wait a moment for an offer? */
bool offer_awaited(const struct p2p_request *r);

/* cancel.c */
void cancel_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);
void cancelled_arrived(struct p2p *p, struct peer *from, const struct frame_header *h);
int send_cancel(struct request *r);
int recv_cancel(struct request *r);
void request_cancelled(struct request *r);

#endif

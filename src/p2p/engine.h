/* engine.h: the point-to-point engine and its requests, shared by the files of src/p2p. state.def lists the
 * states of a request; parts.h defines the data that each protocol stores in a request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_ENGINE_H
#define FP_P2P_ENGINE_H

#include "base/copy.h"
#include "base/counter.h"
#include "base/pool.h"
#include "dt/device_pack.h"
#include "p2p/traffic.h"
#include "p2p/peer_death.h"
#include "p2p/frames.h"
#include "p2p/ids.h"
#include "p2p/last_byte.h"
#include "p2p/match.h"
#include "p2p/offer_policy.h"
#include "p2p/p2p.h"
#include "p2p/parts.h"
#include "p2p/state.h"

/* The handler of another layer's frames. */
struct layer {
    p2p_layer_handler *handler; /* NULL: frames are dropped */
    void *arg;
};

struct p2p {
    struct net *net;
    struct match_table posted, unexpected;
    uint64_t order;            /* number of the next posted receive or waiting message */
    struct pool requests;      /* struct p2p_request */
    struct pool messages;      /* struct message with MESSAGE_SMALL bytes */
    struct pool controls;      /* struct control: control frames that wait for room */
    struct ids ids;            /* cookies by which peers name requests of this process */
    struct traffic traffic[2]; /* costs of large messages; the index is caps.cpu_moves */
    struct last_bytes looks;   /* transfers whose last byte is polled */
    struct pool gets;          /* struct get: transfers of the GET protocol */
    struct pool pipes;         /* struct pipe: pieces of the PIPE protocol */
    struct pool copy_pool; /* struct map_copy. Valid, as the next three members, once GPU memory was mapped */
    uint32_t descriptors;  /* open descriptors of exported GPU memory */
    struct list copies;    /* struct map_copy: copies of mapped GPU memory in progress */
    struct net_hook copy_hook;   /* in net->hooks while `copies` is not empty */
    struct list staged;          /* struct device_part: messages by STAGED that are to be polled */
    struct net_hook staged_hook; /* in net->hooks while `staged` is not empty */
    struct list links;           /* struct link: peers to which, or from which, receives were offered */
    uint64_t offer_above;        /* receives of more bytes may be offered to their senders */
    uint64_t
        check_posted_from; /* receives of at least this many bytes are checked when posted (offers, failures) */
    bool faults; /* a process has died or a communicator was revoked: receives are judged (peer_death.h) */
    p2p_judge *judge; /* set by the layer that knows communicators; NULL: not set yet */
    void (*died)(void *arg, uint32_t number);
    void *judge_arg;
    uint32_t dice;          /* state of the random numbers for last bytes */
    struct request sent;    /* the request of every eager send: complete from the start, never freed */
    struct request no_proc; /* the request of every receive from MPI_PROC_NULL, like `sent` */
    void (*drop_comm)(struct comm *comm);
    struct layer layers[FRAME_KINDS]; /* by kind of frame (enum p2p_layer_frame) */
    p2p_peer_of *peer_of;             /* finds the peer that is the source of a receive; NULL: not set yet */
    void *peer_of_arg;
    uint32_t channels;             /* channel numbers assigned so far (p2p_new_channel) */
    struct list partitioned;       /* struct partitioned */
    const struct p2p_watch *watch; /* NULL: no tool attached, no overhead */
    const struct p2p_debug *debug; /* NULL: neither FISHPLATE_DEBUG=match nor leaks */
    struct list notes;             /* notes that wait for a message or a receive (note.c) */
    void (*deliver_without_notes)(void *ctx, struct peer *from, const struct frame_header *h,
                                  const void *payload, size_t len);
};

struct p2p_request {
    struct request base;        /* must be the first member */
    struct match_entry match;   /* receive: entry in the matching table */
    struct frame_header header; /* send: header of the frame that carries or announces the message */
    struct net_pending pending; /* send: in peer->pending in the states that wait for room */
    struct peer *peer;
    char *buf; /* block: start of the data; else the user's buffer */
    MPI_Count count;
    struct dtype *type;              /* retained, unless `stack` */
    uint64_t length;                 /* bytes to send, or room to receive */
    uint64_t cookie;                 /* name of this request for peers; 0: peers do not know the request */
    uint64_t peer_cookie;            /* name of the matching request at the peer */
    uint8_t state;                   /* enum p2p_state; set by request_change_state alone */
    bool stack;                      /* the request is a variable of a blocking call: it is not freed */
    bool registered;                 /* `mem` and `key` are valid */
    bool block;                      /* the data is one block of memory */
    bool device;                     /* the data is in device memory (device_staging.h) */
    bool can_stage;                  /* large receive: STAGED is possible */
    struct device_part *device_part; /* staging buffer and descriptor (device_staging.c); NULL: none */
    struct net_mem mem;
    struct net_key key;
    struct traffic_ticket ticket; /* large receive: reports its cost to the tuner */
    struct pace_mark mark;        /* large receive: when its data began to move */
    union {
        struct hold_part hold;
        struct pieces_part pieces;
        struct write_part write;
        struct read_part read;
        struct pipe_part pipe;
        struct get_part get;
        struct offer_part offer;
    };
};

static inline struct p2p_request *p2p_request(struct request *r)
{
    return (struct p2p_request *)r;
}

struct message;

/* Defined in note.c; called only with p->debug: before a message is sent, when a receive is posted, and when
 * a receive matches a stored message. */
void note_send(struct p2p *p, struct p2p_request *r);
void note_check_at_post(struct p2p *p, struct p2p_request *r);
void note_check_at_receive(struct p2p *p, struct p2p_request *r, const struct message *m);
void notes_close(struct p2p *p);

/* Defined in request.c. */
extern const struct request_ops send_ops, recv_ops;
struct p2p_request *p2p_request_new(struct p2p *p, const struct request_ops *ops, enum p2p_state state);

/* Initialises a request object; `stack`: it is on the stack of a blocking call. */
static inline void request_begin(struct p2p_request *r, struct p2p *p, const struct request_ops *ops,
                                 enum p2p_state state, bool stack)
{
    request_setup(&r->base, p, ops);
    r->cookie = 0;
    r->match.posted = false;
    r->state = (uint8_t)state;
    r->stack = stack;
    r->registered = false;
    r->device_part = NULL;
}

/* Defined in device_staging.c. */
void request_free_device_part(struct p2p_request *r);

static inline void request_set_state(struct p2p_request *r, enum p2p_state to)
{
    if (unlikely(r->state == STATE_SEND_ANNOUNCED))
        r->peer->announced--;
    r->state = (uint8_t)to;
}

/* Changes the state of a request; the table of transitions must permit it. */
static inline void request_change_state(struct p2p_request *r, enum p2p_state to)
{
    ASSERT(state_may_follow((enum p2p_state)r->state, to));
    request_set_state(r, to);
}

/* Completes a send or receive of any protocol. The request may be freed afterwards. */
static inline void request_end(struct p2p_request *r, int error)
{
    request_change_state(r, STATE_DONE);
    if (unlikely(r->device_part != NULL))
        request_free_device_part(r);
    request_complete(&r->base, error);
}

/* Fails the request because its peer has died; permitted in any state. */
static inline void request_fail(struct p2p_request *r, int error)
{
    request_set_state(r, STATE_DONE);
    if (unlikely(r->device_part != NULL))
        request_free_device_part(r);
    request_complete(&r->base, error);
}

static inline bool request_is_in_state(const struct p2p_request *r, uint32_t states)
{
    return 1u << r->state & states;
}

/* The request that a peer knows by this cookie, or NULL: an old or invented cookie, one that was sent to
 * another peer, or one of a request that is in none of these states. */
static inline struct p2p_request *request_find_by_cookie(struct p2p *p, const struct peer *from,
                                                         uint64_t cookie, uint32_t states)
{
    struct p2p_request *r = ids_find(&p->ids, cookie);
    return r && r->peer == from && request_is_in_state(r, states) ? r : NULL;
}

/* Assigns a cookie to the request; false: out of memory. */
static inline bool request_publish(struct p2p_request *r)
{
    r->cookie = ids_add(&r->base.p2p->ids, r);
    return r->cookie != 0;
}

/* Removes the request's cookie: frames of peers no longer find the request. */
static inline void request_unpublish(struct p2p_request *r)
{
    if (r->cookie)
        ids_remove(&r->base.p2p->ids, r->cookie);
    r->cookie = 0;
}

/* Stores buffer, length and kind of memory of the user's data in the request. */
static inline void request_describe_data(struct p2p_request *r, const void *buf, MPI_Count count,
                                         struct dtype *type)
{
    MPI_Aint offset;
    r->block = dt_is_contiguous_block(type, count, &offset);
    r->buf = r->block ? ptr_add(buf, offset) : (char *)(uintptr_t)buf;
    r->count = count;
    r->type = type;
    r->length = (uint64_t)(count * type->size);
    r->device = dt_is_device(buf, count, type);
}

/* True if the data is one block that peers can access once it is registered. */
static inline bool request_is_remotely_accessible(const struct p2p_request *r)
{
    return r->block && (!r->device || r->peer->caps.gpu_memory);
}

/* Registers the data for access by peers; false if the transport cannot. */
static inline bool request_register(struct p2p_request *r, uint64_t bytes)
{
    struct transport *t = r->peer->transport;
    r->registered = t->ops->mem_register(t, r->buf, bytes, &r->mem, &r->key) == 0;
    return r->registered;
}

/* Releases the registration of the data, if there is one. */
static inline void request_unregister(struct p2p_request *r)
{
    if (r->registered)
        r->peer->transport->ops->mem_release(r->peer->transport, &r->mem);
    r->registered = false;
}

/* Defined in control_frames.c: send a control message, which is queued while the transport is out of resources. */
void control_send(struct p2p *p, struct peer *to, const struct frame_header *header, const void *payload,
                  size_t len);

/* Like control_send, but queues the message in front of all frames that wait for the peer. */
void control_send_first(struct p2p *p, struct peer *to, const struct frame_header *header,
                        const void *payload, size_t len);

/* Defined in recv.c: the error for a message that is longer than its receive or ends inside an element; 0: no
 * error. */
int recv_check_whole_elements(const struct p2p_request *r, struct envelope env, uint64_t length);
/* Stores source, tag and length in the receive's status; an error when the message does not fit. */
static inline int recv_set_status(struct p2p_request *r, struct envelope env, uint64_t length)
{
    r->base.source = env.source;
    r->base.tag = env.tag;
    r->base.bytes = (MPI_Count)MIN(length, r->length);
    return likely(length == r->length || (r->block && length < r->length))
               ? 0
               : recv_check_whole_elements(r, env, length);
}

/* Copies len bytes of a message received in one frame to the user's buffer. Only GPU memory can cause an
 * error. */
int recv_copy_payload(struct p2p_request *r, const void *payload, size_t len);

/* Defined in offer.c: ends the offer of a receive that a frame is about to match. Returns true if the sender
 * has filled the offered memory meanwhile: the receive is complete then. */
bool offer_finish_or_withdraw(struct p2p_request *r);

/* Defined in recv.c: prepares a posted receive for a frame that matches it: withdraws its offer, or resumes
 * it if it is suspended. Returns true if the sender has filled the offered memory meanwhile: the receive is
 * complete then. */
bool recv_is_filled(struct p2p_request *r);

/* Removes and returns the posted receive that matches this message, or NULL. */
static inline struct p2p_request *posted_remove_matching(struct p2p *p, struct envelope env)
{
    struct match_entry *e;
    while ((e = posted_find(&p->posted, env)) != NULL) {
        struct p2p_request *r = container_of(e, struct p2p_request, match);
        if (unlikely(r->state != STATE_RECV_UNMATCHED) && recv_is_filled(r))
            continue;
        posted_remove(&p->posted, e);
        return r;
    }
    return NULL;
}

/* Handles the frames of one kind (p2p.c has the table). */
typedef void frame_handler(struct p2p *p, struct peer *from, const struct frame_header *h,
                           const void *payload, size_t len);

/* Defined in eager.c. */
frame_handler eager_handle_frame, eager_sync_arrived, ack_arrived;
void eager_receive_stored(struct p2p *p, struct p2p_request *r, struct message *m);

/* Defined in cancel.c. */
frame_handler cancel_arrived, cancelled_arrived;
int send_cancel(struct request *r);
int recv_cancel(struct request *r);
void request_finish_cancel(struct p2p_request *r);

#endif

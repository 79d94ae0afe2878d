/* p2p.h: point-to-point messages: matching and protocols. This module knows contexts (numbers that separate
 * communicators) and ranks within them, not communicators; the caller finds the peer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_P2P_H
#define FP_P2P_P2P_H

#include <mpi.h>

#include "dt/dtype.h"
#include "net/net.h"
#include "p2p/envelope.h"
#include "p2p/request.h"

struct p2p;

enum send_mode { SEND_STANDARD, SEND_SYNCHRONOUS, SEND_READY };

/* Describes measured costs and chosen paths of large messages, a line for each class of sizes and kind of
 * traffic (traffic.h). */
size_t p2p_describe_choices(const struct p2p *p, char *out, size_t size);

int p2p_open(struct net *net, struct p2p **out);
void p2p_close(struct p2p *p);
struct net *p2p_get_net(struct p2p *p);

/* Sets the function of an upper layer that releases a request's communicator (request.comm). */
void p2p_on_drop_comm(struct p2p *p, void (*drop)(struct comm *comm));

/* The peer that is the source of a receive; NULL if unknown. Without this callback no receive is offered to
 * its sender. */
typedef struct peer *p2p_peer_of(void *arg, struct envelope env);
void p2p_on_peer_of(struct p2p *p, p2p_peer_of *peer_of, void *arg);

/* Frames of other layers share the connections and the order of messages. The sender sets their kind, and the
 * peer passes frames of that kind to the layer's handler, which runs inside progress and must never wait.
 * Without a handler (NULL) they are dropped. */
enum p2p_layer_frame {
    P2P_FRAME_ONE_SIDED = 15, /* one-sided operations (src/rma) */
    P2P_FRAME_FAULT = 17,     /* agreements after a failure (src/ft) */
    P2P_FRAME_CALL = 19,      /* collective calls that wait (coll/mismatch_query.h) */
};
typedef void p2p_layer_handler(void *arg, struct peer *from, const struct frame_header *h,
                               const void *payload, size_t len);
void p2p_set_layer_handler(struct p2p *p, enum p2p_layer_frame kind, p2p_layer_handler *handler, void *arg);

/* A request that is complete from the start, shared by all users: an eager send, a receive from
 * MPI_PROC_NULL. */
struct request *p2p_completed_send_request(struct p2p *p);
struct request *p2p_proc_null_request(struct p2p *p);

/* A unique 31-bit name for a channel that this process opens. */
uint32_t p2p_new_channel(struct p2p *p);

/* Events for tools. The callbacks run inside progress, under the lock. */
enum p2p_protocol {
    PROTOCOL_EAGER,
    PROTOCOL_SYNCHRONOUS,
    PROTOCOL_R3,
    PROTOCOL_GETCQE,
    PROTOCOL_RENDEZVOUS, /* announced; the receiver has not chosen a protocol yet */
    PROTOCOL_RPUT,
    PROTOCOL_GET,
    PROTOCOL_PUTNR,
    PROTOCOL_PUT,
    PROTOCOL_SPLIT,
    PROTOCOL_PIPE,
    PROTOCOL_MAPGET,
    PROTOCOL_MAPPUT,
};
struct p2p_arrival {
    struct envelope env;
    uint64_t length;
    enum p2p_protocol protocol; /* eager, synchronous, announced (rendezvous), or written (putnr, put) */
    bool expected;              /* a matching receive is posted */
};
struct p2p_watch {
    void (*arrived)(struct p2p *p, const struct p2p_arrival *a);
    void (*delivered)(struct p2p *p); /* after the message was matched or stored */
    void (*chose)(struct p2p *p, struct envelope env, uint64_t length, enum p2p_protocol protocol);
};
/* Sets the callbacks of tools; with NULL there is no cost. */
void p2p_set_watch(struct p2p *p, const struct p2p_watch *watch);

/* The numbers of unexpected messages and of posted receives. */
size_t p2p_unexpected_length(const struct p2p *p);
size_t p2p_posted_length(const struct p2p *p);
/* True if a posted receive matches this message. */
bool p2p_is_posted(struct p2p *p, struct envelope env);
/* Calls `show` for at most `most` messages that wait for a receive. The payload is NULL for a message that
 * was only announced. */
void p2p_visit_unexpected(const struct p2p *p, int most,
                          void (*show)(void *arg, struct envelope env, const void *payload, uint64_t length),
                          void *arg);

/* Starts a send of `count` elements at `buf`. env.source: this process's rank in the communicator. *out may
 * be complete already. The datatype is retained until completion. */
int p2p_isend(struct p2p *p, const void *buf, MPI_Count count, struct dtype *type, struct peer *to,
              struct envelope env, enum send_mode mode, struct request **out);
int p2p_irecv(struct p2p *p, void *buf, MPI_Count count, struct dtype *type, struct envelope env,
              struct request **out);

/* Blocking forms: no request is allocated and the eager path is one call into the transport. */
int p2p_send(struct p2p *p, const void *buf, MPI_Count count, struct dtype *type, struct peer *to,
             struct envelope env, enum send_mode mode);
int p2p_recv(struct p2p *p, void *buf, MPI_Count count, struct dtype *type, struct envelope env,
             MPI_Status *status);

/* True if a complete receive got fewer bytes than it has room for: an error only for callers that know the
 * length in advance. */
bool p2p_receive_is_short(const struct request *r);

/* Probing. A matched message (improbe) is no longer matched with receives; receive it with p2p_imrecv. */
struct message;
bool p2p_iprobe(struct p2p *p, struct envelope env, MPI_Status *status);
struct message *p2p_improbe(struct p2p *p, struct envelope env, MPI_Status *status);
/* Sets the communicator whose error handler serves the message's receive; the request takes over the
 * reference. */
void p2p_message_bind(struct message *m, struct comm *comm);
int p2p_imrecv(struct p2p *p, struct message *message, void *buf, MPI_Count count, struct dtype *type,
               struct request **out);

/* Cancels the request if that is still possible; it completes either way. Only a generalized request may
 * fail. */
int p2p_cancel(struct p2p *p, struct request *r);

/* Drives progress until the request is complete. Does not free it. Returns its error. */
int p2p_wait(struct p2p *p, struct request *r);
/* Like p2p_wait, for one request of a set for which the caller waits. */
int p2p_wait_among(struct p2p *p, struct request *r, const struct request_set *all);

#endif

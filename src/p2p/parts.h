/* parts.h: what one protocol keeps in a request while it runs. A request has room for one part at a time; its state
 * selects the valid one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_P2P_PARTS_H
#define FP_P2P_PARTS_H

#include "dt/dtype.h"
#include "net/peer.h"
#include "p2p/last_byte.h"
#include "p2p/p2p.h"
#include "p2p/read.h"

struct p2p_request;

/* SEND_HELD. */
struct hold_part {
    uint64_t since; /* ns */
};

/* SEND_PIECES, RECV_PIECES. */
struct pieces_part {
    uint64_t moved, bytes;   /* so far; in all */
    uint64_t copying;        /* receive, where ranks share cores: ns spent on copying */
    struct dt_cursor cursor; /* valid when the data is not one block, or in device memory */
    uint64_t staged_from;    /* device memory: the first byte that goes through the staging buffer ... */
    uint64_t staged;         /* ... and how many have entered it */
    int failed;              /* device memory: the error of a copy; later bytes are dropped */
};

/* A write into the peer's memory (write.h): SEND_RPUT, SEND_SPLIT*, SEND_PUT. */
enum write_phase {
    WRITE_QUEUED,   /* refused for now: on peer->pending */
    WRITE_STARTING, /* the call that starts it is running */
    WRITE_ENDED,    /* it ended inside that call */
    WRITE_UNDER_WAY
};
struct write_part {
    struct net_op op;
    uint64_t remote; /* where in the peer's memory */
    struct net_key key;
    uint64_t from, bytes;  /* which bytes of the message */
    struct pace_mark mark; /* when it began */
    void (*done)(struct p2p_request *r, int status);
    struct list link; /* SEND_PUT: link->writes */
    int status;       /* WRITE_ENDED: how */
    uint8_t phase;    /* enum write_phase */
    bool tell;        /* the receiver must be notified when it is written */
    bool looked;      /* no notification, since the receiver polls the last byte */
    bool whole;       /* not a part of a split message: its speed is recorded (net/pace.h) */
    bool taken_sent;  /* SEND_PUT: the receiver was notified that its receive is taken */
};

/* RECV_READ, RECV_SPLIT*. */
struct read_part {
    struct read read;
    int status; /* split: the error of the part that came first */
};

/* SEND_PIPE, RECV_PIPE. */
struct pipe_part {
    struct pipe *pipe; /* its pieces; NULL at a sender that has no memory for them */
    uint64_t bytes;    /* in all; at the sender: the bytes that were requested */
    bool last;         /* send: no further request will come */
    bool notified;     /* send: WRITTEN has left */
};

/* RECV_GET. */
struct get_part {
    struct last_byte last;
    struct get *get; /* the transfer, which may outlive the request */
};

/* RECV_OFFERED, RECV_TAKEN, RECV_RECALLED. */
struct offer_part {
    struct last_byte last;
    struct list link;           /* link->offered */
    enum p2p_protocol protocol; /* PROTOCOL_PUT or PROTOCOL_PUTNR */
};

#endif

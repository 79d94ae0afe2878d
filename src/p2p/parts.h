/* parts.h: the data that a protocol stores in a request. The parts share memory; the state of the request
 * selects the valid part.
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

/* Valid in state SEND_HELD. */
struct hold_part {
    uint64_t since; /* when the send began to wait for an offer, in ns */
};

/* Valid in states SEND_PIECES and RECV_PIECES. */
struct pieces_part {
    uint64_t moved, bytes;   /* bytes moved so far, and bytes of the message */
    uint64_t copying;        /* receive, if ranks share cores: ns spent on copying */
    struct dt_cursor cursor; /* valid if the data is not one block, or in device memory */
    uint64_t staged_from; /* device memory: offset of the first byte that goes through the staging buffer */
    uint64_t staged;      /* device memory: bytes that have entered the staging buffer */
    int failed;           /* device memory: error of a copy; later bytes are dropped */
};

/* A write into the peer's memory (write.h): SEND_RPUT, SEND_SPLIT*, SEND_PUT. */
enum write_phase {
    WRITE_QUEUED,   /* the transport has no room: the write waits in peer->pending */
    WRITE_STARTING, /* the call that starts the write has not returned */
    WRITE_ENDED,    /* the write ended before that call returned */
    WRITE_UNDER_WAY
};
struct write_part {
    struct net_op op;
    uint64_t remote; /* address in the peer's memory */
    struct net_key key;
    uint64_t from, bytes;  /* offset and length of the written part of the message */
    struct pace_mark mark; /* when the write began */
    void (*done)(struct p2p_request *r, int status);
    struct list link; /* SEND_PUT: in link->writes */
    int status;       /* WRITE_ENDED: result of the write */
    uint8_t phase;    /* enum write_phase */
    bool tell;        /* the receiver must be notified when the data is written */
    bool looked;      /* no notification, since the receiver polls the last byte */
    bool whole;       /* the write carries the whole message: its speed is recorded (net/pace.h) */
    bool taken_sent;  /* SEND_PUT: the receiver was notified that its receive is taken */
};

/* Valid in states RECV_READ and RECV_SPLIT*. */
struct read_part {
    struct read read;
    int status; /* SPLIT: error of the part that ended first */
};

/* Valid in states SEND_PIPE and RECV_PIPE. */
struct pipe_part {
    struct pipe *pipe; /* the pieces; NULL: the sender has no memory for them */
    uint64_t bytes;    /* receive: bytes of the message; send: bytes requested so far */
    bool last;         /* send: the receiver requests no further piece */
    bool notified;     /* send: WRITTEN was sent */
};

/* Valid in state RECV_GET. */
struct get_part {
    struct last_byte last;
    struct get *get; /* the read, which may outlive the request */
};

/* Valid in states RECV_OFFERED, RECV_TAKEN and RECV_RECALLED. */
struct offer_part {
    struct last_byte last;
    struct list link;           /* in link->offered */
    enum p2p_protocol protocol; /* PROTOCOL_PUT or PROTOCOL_PUTNR */
};

#endif

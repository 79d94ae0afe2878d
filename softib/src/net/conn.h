/* conn.h: a TCP connection to a process of another machine, and the state of a connected QP for this wire.
 * Requests are sent on a connection that this process opened. The peer sends READ data and NAKs on the
 * same connection, and acknowledgements on the connection that the peer opened, if any. The lock of this wire
 * protects these structures.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_CONN_H
#define SOFTIB_CONN_H

#include "hca/send_queue.h"
#include "net/frame.h"
#include "net/loop.h"
#include "net/reach.h"

#define CONN_BUFFER (64u << 10)

/* The answer to an RDMA READ, sent piece by piece. */
struct read_job {
    struct qp *q;
    struct frame head;
    struct rseg src;
    char *copy; /* copy of the data if it is in the memory of another process; else NULL */
    uint32_t off;
    struct read_job *next;
};

/* Destination of the payload of the frame that is being received. */
enum sink_kind { SINK_DROP, SINK_SMALL, SINK_REQUEST, SINK_ANSWER };

struct sink {
    enum sink_kind kind;
    struct qp *q;
    struct iovec iov[MAX_SGE];
    int n, at;
    uint8_t small[16];
    uint32_t small_have;
};

struct conn {
    struct watch w;
    int fd;
    bool outgoing, connecting, want_out, broken;
    bool rx_full;                /* input is not read, because too many answers wait to be sent */
    uint32_t node, slot;         /* of the peer, which has authenticated */
    uint32_t linear, to;         /* local port, port of the peer */
    struct reach reach;          /* address search, while the connection is being opened */
    uint32_t ping, pong;         /* number of the last probe sent, and of the last one answered */
    uint64_t rx_pause, tx_pause; /* times until which the port's rate forbids to read and to send READ data */
    struct conn *next;

    uint8_t rx[CONN_BUFFER];
    size_t rx_at, rx_end;
    bool in_payload;
    struct frame in;
    uint32_t in_left;
    struct sink sink;
    struct qp *ack_q; /* QP of `ack`; NULL: there is none */
    struct frame ack; /* acknowledgement that is not queued yet; the next one of the same QP replaces it */
    bool ack_lazy;    /* `ack` may wait for the program's next message */

    uint8_t head[FRAME_BYTES + 16];
    struct iovec out[MAX_SGE + 3];
    int out_n, out_at;
    struct qp *out_q; /* owner of the memory to which `out` points */
    char *out_copy;
    char *ctrl, *ctrl_out; /* small frames to send, and those that are part of `out` */
    size_t ctrl_len, ctrl_cap, ctrl_out_cap;
    struct read_job *jobs;
    unsigned njobs;
    struct remote *active, *active_last;
};

struct remote {
    struct qp *q;
    struct remote *next;
    uint32_t node, slot, to; /* of the peer: node, slot, port */
    /* requester state */
    struct conn *conn;
    bool active;
    struct remote *active_next;
    uint32_t tx_off;      /* bytes of request q->next sent so far */
    uint64_t tx_pause;    /* time until which the port's rate forbids to send */
    uint64_t acked;       /* requests before this index are acknowledged */
    uint32_t rd_out;      /* READs and atomic operations in progress */
    uint64_t progress_at; /* time of the last progress, if `busy` */
    bool busy;            /* requests wait for an acknowledgement */
    uint32_t probe;       /* number of the probe sent to the peer; 0: none */
    uint64_t probed_at;
    bool reap_after; /* UC: requests complete when their frames were sent */
    int outq;        /* bytes in the socket's send queue at the last check */
    /* responder state */
    uint32_t expect;        /* sequence number of the next request */
    bool open;              /* a message is arriving */
    struct conn *from;      /* connection on which the message arrives */
    struct conn *answering; /* connection on which the answer to a READ arrives */
    uint32_t seq;           /* sequence number of the arriving message */
    enum answer cut;        /* NAK to send because the region was deregistered */
    struct target t;
    struct request r;
    struct landing l;
    char *stage;  /* buffer for a message to an XRC SRQ of another process; NULL: data is received in place */
    uint32_t got; /* bytes of the message received so far */
    uint32_t atomic_seq[MAX_RD_ATOM];
    uint64_t atomic_old[MAX_RD_ATOM];
    unsigned atomics;
};

/* Input of a connection is not read while this many answers, or bytes of small frames, wait to be sent. */
#define CROWDED_JOBS  64u
#define CROWDED_BYTES (64u << 10)

static inline bool conn_is_congested(const struct conn *c)
{
    return c->njobs >= CROWDED_JOBS || c->ctrl_len > CROWDED_BYTES;
}

/* Callbacks of the users of connections; set once, by net.c. */
struct conn_user {
    void (*frame)(struct conn *c);   /* a header was decoded into c->in: chooses the sink */
    void (*payload)(struct conn *c); /* the payload of frame c->in is complete */
    /* Fills c->out with the next piece; false: there is none at present. */
    bool (*segment)(struct remote *r, struct conn *c);
    void (*lost)(struct conn *c); /* the connection was closed */
    /* Called when the address search has ended. me: local address that reaches the port; NULL: no address
     * does. */
    void (*routed)(uint32_t port, const struct in_addr *me);
};
extern const struct conn_user *conn_user;

/* defined in conn.c */
extern struct conn *conns, *conn_hot; /* connection of the last frame: polled first */
/* Accounts for bytes in one direction of a port and on the bus of its adapter. Returns the time until
 * which the next bytes have to wait; 0: no wait. */
uint64_t port_reserve_time(uint32_t linear, bool out, uint64_t bytes);
void conn_received(struct conn *c, uint32_t linear, uint32_t bytes); /* bytes arrived; may pause reading */
void conn_mark_broken(struct conn *c);                               /* conn_free_closed frees it later */
/* True if a connection broke since the previous call. */
bool conn_test_and_clear_broken(void);
void conn_update_watch(struct conn *c); /* sets the events to wait for */

static inline uint32_t net_fabric(void)
{
    return (uint32_t)proc.fab.id;
}

/* defined in conn_open.c */
struct conn *conn_open(uint32_t node, uint32_t slot, uint32_t linear, uint32_t to);
/* Creates a connection for a caller that has authenticated as this process. linear: local port; from: port
 * of the caller. */
bool conn_accepted(int fd, uint32_t node, uint32_t slot, uint32_t linear, uint32_t from);
void conn_free_closed(void); /* frees broken connections; called while no thread uses one */
void conn_tick(uint64_t now);
void conn_reset_after_fork(void);

/* defined in conn_in.c */
void conn_receive(struct conn *c);
void conn_parse(struct conn *c); /* parses input that was read before */

/* defined in conn_out.c */
void conn_send(struct conn *c); /* sends as much as the socket accepts */
void conn_reply(struct conn *c, const struct frame *f, const void *payload);
uint32_t conn_send_ping(struct conn *c); /* sends a PING; returns its number */
void conn_delay_ack(struct conn *c);     /* the acknowledgement may wait for the program's next message */
void conn_flush_ack(struct conn *c);
void conn_flush_acks(void); /* flushes the acknowledgements of all connections */
void conn_drop_ack(struct conn *c);
void conn_add_active(struct conn *c, struct remote *r);
void conn_out_free(struct conn *c);
/* Sends a delayed acknowledgement of q, if any, together with the next data on `with`. */
void conn_piggyback_ack(struct qp *q, struct conn *with);

#endif

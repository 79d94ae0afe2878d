/* conn.h: one TCP connection to a process of another machine, and the remote half of a connected QP. Requests
 * leave on a connection that this process opened. READ data and refusals come back on the same one;
 * acknowledgements come back on the connection that the peer opened, if there is one. The lock of this wire
 * protects everything here.
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
    char *copy; /* of memory of another process, which sends it from here; else NULL */
    uint32_t off;
    struct read_job *next;
};

/* Where the payload of the frame being received goes. */
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
    bool rx_full;                    /* not read: too many answers wait to leave */
    uint32_t node, slot, linear, to; /* the peer, which proved it, our port and its port */
    struct reach reach;              /* while connecting */
    uint32_t ping, pong;             /* number of the last probe sent, and of the last one answered */
    uint64_t rx_pause, tx_pause;     /* the port's rate: do not read, do not send READ data, until then */
    struct conn *next;

    uint8_t rx[CONN_BUFFER];
    size_t rx_at, rx_end;
    bool in_payload;
    struct frame in;
    uint32_t in_left;
    struct sink sink;
    struct qp *ack_q; /* acknowledgement not yet queued: the next one of the same QP replaces it */
    struct frame ack;
    bool ack_lazy; /* it may wait for the program's own next message */

    uint8_t head[FRAME_BYTES + 16];
    struct iovec out[MAX_SGE + 3];
    int out_n, out_at;
    struct qp *out_q; /* whose memory `out` points to */
    char *out_copy;
    char *ctrl, *ctrl_out; /* small frames, ready to go; and those that are part of `out` */
    size_t ctrl_len, ctrl_cap, ctrl_out_cap;
    struct read_job *jobs;
    unsigned njobs;
    struct remote *active, *active_last;
};

struct remote {
    struct qp *q;
    struct remote *next;
    uint32_t node, slot, to; /* the peer, and its port */
    /* requester */
    struct conn *conn;
    bool active;
    struct remote *active_next;
    uint32_t tx_off;   /* of request q->next */
    uint64_t tx_pause; /* the port's rate: no piece before that */
    uint64_t acked;    /* requests before this index are acknowledged */
    uint32_t rd_out;   /* READs and atomics in progress */
    uint64_t progress_at;
    bool busy;      /* progress_at counts */
    uint32_t probe; /* number of the probe sent to the peer, 0: none */
    uint64_t probed_at;
    bool reap_after; /* UC: complete once the frame has left */
    int outq;
    /* responder */
    uint32_t expect;
    bool open; /* a message is arriving */
    struct conn *from,
        *answering;  /* what arrives, and what a READ brings, comes there: one place at a time */
    uint32_t seq;    /* of the message */
    enum answer cut; /* its region was deregistered: the refusal that is still to be sent */
    struct target t;
    struct request r;
    struct landing l;
    char *stage; /* a whole message for an XRC SRQ of another process; NULL: it lands where it belongs */
    uint32_t got;
    uint32_t atomic_seq[MAX_RD_ATOM];
    uint64_t atomic_old[MAX_RD_ATOM];
    unsigned atomics;
};

/* As many answers may wait to leave before nothing more is read. */
#define CROWDED_JOBS  64u
#define CROWDED_BYTES (64u << 10)

static inline bool conn_is_congested(const struct conn *c)
{
    return c->njobs >= CROWDED_JOBS || c->ctrl_len > CROWDED_BYTES;
}

/* What stands above connections and uses them; set once, by net.c. */
struct conn_user {
    void (*frame)(struct conn *c);                     /* c->in was decoded: choose the sink */
    void (*payload)(struct conn *c);                   /* its payload is complete */
    bool (*segment)(struct remote *r, struct conn *c); /* the next piece into c->out; false: nothing now */
    void (*lost)(struct conn *c);                      /* the connection is gone */
    void (*routed)(uint32_t port,
                   const struct in_addr *me); /* our address that leads to it, NULL: none does */
};
extern const struct conn_user *conn_user;

/* conn.c */
extern struct conn *conns, *conn_hot; /* connection of the last frame: polled first */
/* Books bytes on one direction of a port and on the bus of its adapter. Returns the time until which the next ones
 * have to wait, 0 for no wait. */
uint64_t port_book_time(uint32_t linear, bool out, uint64_t bytes);
void conn_received(struct conn *c, uint32_t linear, uint32_t bytes); /* the port's rate may stop reading */
void conn_mark_broken(struct conn *c);  /* marks it; freed when nothing uses it */
bool conn_any_broken(void);             /* since the previous call */
void conn_update_watch(struct conn *c); /* for the events that it waits for */

static inline uint32_t net_fabric(void)
{
    return (uint32_t)proc.fab.id;
}

/* conn_open.c */
struct conn *conn_open(uint32_t node, uint32_t slot, uint32_t linear, uint32_t to);
/* Accepts a connection from a caller that has proved to be that process; `linear` is our port, `from` the caller's. */
bool conn_accepted(int fd, uint32_t node, uint32_t slot, uint32_t linear, uint32_t from);
void conn_free_closed(void); /* nothing uses one: frees those that broke */
void conn_tick(uint64_t now);
void conn_reset_after_fork(void);

/* conn_in.c */
void conn_receive(struct conn *c);
void conn_parse(struct conn *c); /* what was read already */

/* conn_out.c */
void conn_send(struct conn *c); /* as much as the socket takes */
void conn_reply(struct conn *c, const struct frame *f, const void *payload);
uint32_t conn_request_number(struct conn *c); /* are you there? Returns the number of the question */
void conn_delay_ack(struct conn *c);          /* it may wait for the program's own next message */
void conn_flush_ack(struct conn *c);
void conn_flush_acks(void); /* all that wait */
void conn_drop_ack(struct conn *c);
void conn_add_active(struct conn *c, struct remote *r);
void conn_out_free(struct conn *c);
/* Sends a delayed acknowledgement of q, if there is one, together with the next data on `with`. */
void conn_piggyback_ack(struct qp *q, struct conn *with);

#endif

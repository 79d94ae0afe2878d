/* queue.h: queue pairs of connections (lane.c): receive buffers, send queue, credits; shared receive queues
 * (shared.c); and the queue pair that connects this process to itself (own_atomics.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_QUEUE_H
#define FP_NET_IB_QUEUE_H

#include <arpa/inet.h>
#include <stdatomic.h>

#include "net/ib/device/device.h"
#include "net/ib/policy/credit.h"
#include "net/ib/wire.h"

struct ib_endpoint;
struct ib_initiator;
struct ib_rail;
struct net_op;

/* A work request that has not completed. The completion of a signalled request retires the unsignalled ones before it. */
struct ib_work {
    struct ib_buffer *buffer; /* released when the request completes; NULL: none */
    struct net_op *op;        /* reported as done when the request completes; NULL: none */
    bool signalled;
    bool frame;     /* the message is not only credits: losing it would matter to the peer */
    bool last;      /* marker that ends a queue pair after CLOSE or AGREE */
    bool rdma;      /* ib_lane.rdma describes the request */
    uint32_t bytes; /* length of a message in the buffer or in ib_lane.copies; 0: no message */
};

/* A put or get as it was posted, recorded so that it can be repeated over another path. */
struct ib_rdma {
    enum ibv_wr_opcode opcode;
    uintptr_t local;
    uint64_t remote;
    size_t len;
    struct net_mem mem;
    struct net_key key;
    uint16_t seq; /* sequence number of the frame after a put: if that frame has arrived, the put has too */
};

struct ib_lane {
    /* Members that every send uses: one and a half cache lines. */
    struct ib_endpoint *endpoint;
    struct ibv_qp *qp; /* NULL: the queue pair does not exist */
    struct ib_work *work;
    uint64_t id;           /* wr_id of the lane's work requests, without their index */
    uint32_t depth;        /* entries of the send queue and of `work`, a power of two */
    uint32_t head, tail;   /* number of the next request, and of the oldest one that has not completed */
    uint32_t quiet;        /* consecutive unsignalled requests */
    uint32_t signal_every; /* every signal_every-th request is signalled */
    uint8_t index;         /* below IB_LANES: primary rail; else IB_LANES + pair of rails */
    uint8_t adapter;       /* index of the adapter, whose keys the lane uses */
    struct credit credit;

    struct ib_rail *rail;
    struct ib_shared *shared; /* shared receive queue; NULL: the lane has receive buffers of its own */
    struct ib_pool *pool;     /* buffers of received and sent messages */
    struct list posted;       /* the lane's own receive buffers */
    size_t frame_max;         /* largest payload in bytes */
    char *copies;             /* inline messages, IB_COPY bytes for each request; NULL: never repeated */
    struct ib_rdma *rdma;     /* puts and gets, for each request; NULL: never repeated */
    uint32_t psn;
    uint32_t started; /* value of `tail` when the queue pair was created */
    /* XRC (xrc.h): the queue pair belongs to the initiator. */
    struct ib_initiator *initiator;
    uint32_t remote_srq, remote_number; /* receive queue of the peer; immediate of messages */
    bool failed;                        /* a request has failed; all later requests fail too */
    bool given_up;                      /* ib_lane_set_error was called: flushed requests are no failure */
    bool bare;                          /* carries only puts and gets: no receive buffers, no credits */
};

int ib_lane_probe_device(struct ib *ib); /* finds the inline limit, and whether the last byte arrives last */
void ib_lane_use_primary(struct ib_lane *lane); /* uses the primary rail of the connection */
/* qp.c: functions return 0, or -1 with errno. service_level: 0 to 15; IB_SERVICE_LEVEL_DEFAULT:
 * FISHPLATE_IB_SERVICE_LEVEL. */
enum { IB_SERVICE_LEVEL_DEFAULT = -1 };
int ib_qp_init(const struct ib_device *d, struct ibv_qp *qp);
int ib_qp_start_datagrams(const struct ib_device *d, struct ibv_qp *qp, uint32_t qkey);
int ib_qp_connect(const struct ib_device *d, struct ibv_qp *qp, uint32_t my_psn, const struct ib_address *to,
                  uint32_t qpn, uint32_t psn, uint32_t rd_atomic, int service_level);
int ib_lane_create(struct ib_lane *lane);
int ib_lane_connect(struct ib_lane *lane, const struct ib_address *to, uint32_t qpn, uint32_t psn,
                    uint32_t rd_atomic);
void ib_lane_destroy(struct ib_lane *lane);
void ib_lane_post_receives(struct ib_lane *lane, uint32_t n);
void ib_lane_post_receive(struct ib_lane *lane, struct ib_buffer *b);
void ib_lane_retire_sends(struct ib_lane *lane, uint32_t place); /* all requests up to `place` are complete */
void ib_lane_destroy_queue_pair(struct ib_lane *lane);           /* fails transfers in flight */
void ib_lane_report_refusal(struct ib_lane *lane, int rc);       /* the adapter refused a request */
void ib_lane_post_marker(struct ib_lane *lane, bool last);
bool ib_lane_has_only_credits(const struct ib_lane *lane); /* no message in flight but credits */
bool ib_lane_carries_frames(const struct ib_lane *lane);   /* a frame is in flight */
/* Ensures that a completion is requested that covers all posted requests. */
void ib_lane_request_completion(struct ib_lane *lane);
struct ib_lane *ib_lane_find(struct ib *ib, uint32_t qpn, const struct ib_shared *shared);
void ib_lane_set_error(struct ib_lane *lane); /* no message arrives through the queue pair afterwards */

/* The kind of a completed request: the two low bits of its wr_id. A send has the index of its record in
 * wr_id; a receive or a handshake has the address of its buffer. */
enum ib_kind { IB_KIND_RECEIVE, IB_KIND_SEND, IB_KIND_HELLO_SENT, IB_KIND_HELLO };

static inline uint64_t ib_send_id(uint32_t endpoint, uint32_t lane) /* with work index 0 */
{
    return (uint64_t)endpoint << 32 | lane << 2 | IB_KIND_SEND;
}
static inline uint32_t ib_send_endpoint(uint64_t id)
{
    return (uint32_t)(id >> 32);
}
static inline uint32_t ib_send_lane(uint64_t id)
{
    return (id >> 2) & 63;
}
static inline uint32_t ib_send_work_index(uint64_t id)
{
    return (id >> 8) & 0xffffff;
}

#define IB_CONTROL_ROOM 8 /* entries of the send queue that only control messages may use */

static inline bool ib_lane_has_room(const struct ib_lane *lane, uint32_t n, bool control)
{
    return lane->head - lane->tail + n + (control ? 0 : IB_CONTROL_ROOM) <= lane->depth;
}

/* Returns the record for a request that is about to be posted, and decides whether that request is signalled. */
static inline struct ib_work *ib_lane_prepare_work(struct ib_lane *lane, struct ibv_send_wr *wr, bool signal)
{
    struct ib_work *w = &lane->work[lane->head & (lane->depth - 1)];
    bool due = ++lane->quiet >= lane->signal_every;
    *w = (struct ib_work){.signalled = signal || due};
    if (w->signalled) {
        lane->quiet = 0;
        wr->send_flags |= IBV_SEND_SIGNALED;
    }
    return w;
}

/* Posts a request; the send queue must have a free entry. */
static inline void ib_lane_post_send(struct ib_lane *lane, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    if (unlikely(lane->initiator != NULL)) {
        wr->qp_type.xrc.remote_srqn = lane->remote_srq;
        wr->imm_data = htonl(lane->remote_number);
        if (wr->opcode == IBV_WR_SEND)
            wr->opcode = IBV_WR_SEND_WITH_IMM;
    }
    wr->wr_id = lane->id | (uint64_t)(lane->head++ & 0xffffff) << 8;
    int rc = ibv_post_send(lane->qp, wr, &bad);
    if (unlikely(rc != 0))
        ib_lane_report_refusal(lane, rc);
}

/* A shared receive queue and its buffers. */
struct ib_shared {
    struct ib *ib;
    struct ibv_srq *srq;
    struct ib_pool *pool;
    uint32_t adapter;
    uint32_t target; /* buffers to post: log2(n) * k + b */
    uint32_t posted;
    uint32_t capacity; /* capacity of the queue */
    struct list buffers;
    _Atomic int low; /* the limit event has arrived */
};

/* shared.c */
int ib_shared_open(struct ib *ib, uint32_t adapter); /* called by the first connection of the adapter */
void ib_shared_close(struct ib *ib);
void ib_shared_refill(struct ib_shared *s);     /* if half of the buffers are in use */
void ib_shared_refill_low(struct ib_shared *s); /* after the limit event of the queue */
void ib_shared_grow(struct ib_shared *s, uint32_t n);

/* own_atomics.c */
int ib_self_open(struct transport *t);
int ib_self_atomic(struct transport *t, const struct net_atomic *change, uint64_t *old, void *word,
                   const struct net_key *key);
void ib_self_close(struct ib *ib);

static inline void ib_lane_fill_atomic(const struct net_atomic *change, uint64_t remote, uint32_t rkey,
                                       struct ibv_send_wr *out)
{
    out->opcode = change->swap ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    out->wr.atomic.remote_addr = remote;
    out->wr.atomic.rkey = rkey;
    out->wr.atomic.compare_add = change->operand;
    out->wr.atomic.swap = change->value;
}

#endif

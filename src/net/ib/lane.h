/* lane.h: a queue pair of a connection: its receive buffers, its send queue, its credits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_LANE_H
#define FP_NET_IB_LANE_H

#include <stdatomic.h>

#include "net/ib/buffer.h"
#include "net/ib/device.h"
#include "net/ib/policy/credit.h"

struct ib_endpoint;
struct ib_rail;
struct net_op;

/* A work request that has not completed. Unsignalled ones are retired by the next signalled one. */
struct ib_work {
    struct ib_buffer *buffer; /* to give back, or NULL */
    struct net_op *op;        /* to tell, or NULL */
    bool signalled;
    bool frame; /* carries something the peer waits for */
    bool last;  /* the end of a lane of a connection that closes */
};

struct ib_lane {
    struct ib_endpoint *endpoint;
    struct ib_rail *rail;
    struct ibv_qp *qp;        /* NULL: not there */
    struct ib_shared *shared; /* where its receives are posted, or NULL: own ones */
    struct ib_pool *pool;     /* what it receives into and sends from */
    struct credit credit;
    struct list posted; /* own receive buffers */
    size_t frame_max;   /* payload */
    struct ib_work *work;
    uint32_t depth; /* a power of two; work is numbered without end */
    uint32_t head, tail;
    uint32_t quiet; /* unsignalled requests in a row */
    uint32_t psn;
    uint8_t index;
    struct {
        _Atomic uint32_t events; /* times the adapter has moved it, not looked at yet */
        bool armed;              /* the other path is loaded */
        bool moved;              /* it travels by the alternate path */
        bool fled;               /* because the home port here went down: move back when it is up */
    } path;
    bool bare; /* for put and get alone: no receives, no credits */
};

int ib_lane_probe(struct ib *ib); /* how much can be inline, and in which order bytes arrive */
uint8_t ib_lane_timeout(void);
int ib_lane_create(struct ib_lane *lane);
int ib_lane_connect(struct ib_lane *lane, const struct ib_address *to, uint32_t qpn, uint32_t psn,
                    uint32_t rd_atomic);
void ib_lane_destroy(struct ib_lane *lane);
void ib_lane_post(struct ib_lane *lane, uint32_t n);            /* receive buffers */
void ib_lane_repost(struct ib_lane *lane, struct ib_buffer *b); /* this one again */
void ib_lane_retire(struct ib_lane *lane, uint32_t place);      /* this one and all before it are done */
void ib_lane_abandon(struct ib_lane *lane);                     /* fails what is under way; then destroys */
struct ib_work *ib_lane_signal(struct ib_lane *lane, struct ibv_send_wr *wr, bool signal);
void ib_lane_send(struct ib_lane *lane, struct ibv_send_wr *wr); /* posts; the queue had room */
void ib_lane_end(struct ib_lane *lane, bool last);
bool ib_only_news(const struct ib_lane *lane); /* nothing is on its way that the peer waits for */
void ib_lane_ask(struct ib_lane *lane);        /* has all that was sent arrived? asks the adapter to tell */
struct ib_lane *ib_lane_find(struct ib *ib, uint32_t qpn);

/* Who a completion is for: the two low bits of a request's id. Sends name their place in the queue, receives
 * and handshakes their buffer. */
enum ib_kind { IB_KIND_RECEIVE, IB_KIND_SEND, IB_KIND_HELLO_SENT, IB_KIND_HELLO };

static inline uint64_t ib_send_id(uint32_t endpoint, uint32_t lane, uint32_t place)
{
    return (uint64_t)endpoint << 32 | (uint64_t)(place & 0xffffff) << 8 | lane << 2 | IB_KIND_SEND;
}
static inline uint32_t ib_send_endpoint(uint64_t id)
{
    return (uint32_t)(id >> 32);
}
static inline uint32_t ib_send_lane(uint64_t id)
{
    return (id >> 2) & 63;
}
static inline uint32_t ib_send_place(uint64_t id)
{
    return (id >> 8) & 0xffffff;
}

#define IB_CONTROL_ROOM 8 /* places in the send queue that only control messages may use */

static inline bool ib_lane_room(const struct ib_lane *lane, uint32_t n, bool control)
{
    return lane->head - lane->tail + n + (control ? 0 : IB_CONTROL_ROOM) <= lane->depth;
}

#endif

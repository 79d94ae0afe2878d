/* ib.h: what the files of src/net/ib share: the transport, its connections (endpoints), their queue pairs
 * (lanes), registered buffers, and the bytes on the wire.
 *
 *   verbs.c     libibverbs, loaded               memory.c    the user's memory, registered
 *   survey.c    which ports there are            agree.c     one network for all ranks
 *   device.c    this process's port, opened      hello.c     handshake datagrams, timers
 *   buffer.c    registered memory, buffers       lane.c      a queue pair: receive buffers, send queue
 *   endpoint.c  connections: open, close         shared.c    shared receive queues [Shipman06 5.2]
 *   send.c      frames out, put, get             receive.c   completions, order, frames in
 *   rdma.c      the RDMA ring and polling set    event.c     the thread that wakes sleepers
 *   credit.h conn.h ring.h pollset.h choose.h devlist.h   pure
 *   ib.c        the transport's life
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_IB_H
#define FP_NET_IB_IB_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "base/list.h"
#include "net/ib/conn.h"
#include "net/ib/credit.h"
#include "net/ib/device.h"
#include "net/ib/pollset.h"
#include "net/ib/ring.h"
#include "net/net.h"
#include "net/regcache.h"

#define IB_LANES 2 /* at most; one without shared receive queues */

/* ---- on the wire ---- */

enum ib_type {
    IB_FRAME,        /* a frame of the layer above; takes a credit (or a ring slot) */
    IB_CREDIT,       /* nothing but credits; unordered */
    IB_WAKE,         /* look at your rings; unordered */
    IB_LEAVE,        /* I need nothing more and end soon: when I am gone nothing is wrong; unordered */
    IB_RING_ON,      /* struct ib_ring_on: you may write frames there */
    IB_RING_OFF,     /* write no more */
    IB_RING_STOPPED, /* I shall write no more */
    IB_CLOSE,        /* conn.h */
    IB_AGREE,
    IB_KEEP,
    IB_TYPES
};
#define IB_LAST_WORDS (1u << IB_CLOSE | 1u << IB_AGREE) /* what ends a connection */

#define IB_WAITED 1 /* flags: this frame had to wait for a credit */

/* Before everything that is sent. All but unordered types count in seq (the paper's PSN, 6.2.5), so that the
 * receiver can put the channels of a connection in order. Credits ride on everything. */
struct ib_head {
    uint16_t seq;
    uint8_t type;
    uint8_t flags;
    uint8_t credits[IB_LANES];
    uint16_t ring; /* slots of your ring that are free again */
};
_Static_assert(sizeof(struct ib_head) == 8, "head and frame header fill half a cache line");

struct ib_frame {
    struct ib_head head;
    struct frame_header header;
    char payload[];
};

struct ib_ring_on {
    uint64_t address;
    uint32_t rkey;
    uint32_t slots, slot_size;
};

/* What a process tells another to open a connection (conn.h); a datagram. */
struct ib_hello {
    uint32_t magic;
    uint32_t version;
    uint64_t job;
    uint32_t from, to; /* job ranks */
    uint32_t mine, yours;
    uint32_t lanes;
    uint32_t qpn[IB_LANES], psn[IB_LANES];
    uint32_t posted[IB_LANES]; /* credits to begin with */
    uint32_t scheme;           /* both must do the same sums */
    uint32_t rd_atomic;
    uint64_t bell;
    uint32_t bell_key;
    uint32_t ready;       /* conn_ready */
    uint32_t ring_by_imm; /* frames in my ring must be announced by an immediate */
    struct ib_address address;
};

/* ---- registered memory ---- */

struct ib;
struct ib_lane;

/* A buffer: its descriptor lies apart from its bytes, which the adapter writes. */
struct ib_buffer {
    char *data;
    struct ib_buffer *next;   /* in its pool */
    struct list link;         /* what a lane has posted, or what waits for its turn */
    struct ib_lane *lane;     /* where it was posted or came in */
    struct ib_shared *shared; /* where it was posted, in shared mode */
    uint32_t lkey, rkey;
    uint32_t length; /* what arrived */
};

/* Buffers of one size. */
struct ib_pool {
    struct ib *ib;
    struct ib_buffer *free;
    size_t size;
    uint32_t total, in_use;
};

/* ---- a queue pair ---- */

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
};

/* ---- a connection ---- */

enum ib_ring_state { IB_RING_NONE, IB_RING_USED, IB_RING_LEAVING };

struct ib_endpoint {
    struct ib *ib;
    struct peer *peer;
    struct conn conn;
    uint16_t next_seq; /* of what I send */
    uint16_t expected; /* the paper's ESN */
    uint32_t id;       /* index in ib->endpoints */

    /* The ring I write to, when the peer polls me. */
    bool tx_on;
    bool tx_by_imm; /* its adapter may show a frame's end before the rest: announce by an immediate */
    struct ring_tx tx;
    struct ib_buffer *tx_mirror;
    uint64_t tx_address;
    size_t tx_frame_max;        /* payload */
    struct ibv_send_wr tx_work; /* prefilled: only addresses and length change */
    struct ibv_sge tx_piece;
    /* The ring I poll. */
    enum ib_ring_state rx_state;
    struct ring_rx rx;
    struct ib_buffer *rx_memory;
    uint32_t rx_traffic;   /* pollset's */
    uint32_t rx_announced; /* frames whose immediate came, where that is how they are found */

    struct ib_lane lanes[IB_LANES];
    struct list held;        /* arrived through a lane before their turn; by seq */
    uint32_t unsaid;         /* control messages to send, a bit each: 1 << enum ib_type */
    struct list unsaid_link; /* ib->unsaid: they found no room */
    uint32_t last_words;     /* ends of lanes that are on their way since my CLOSE or AGREE */
    bool left;               /* the peer has said LEAVE */
    bool leaving;            /* I have, and begin nothing more */
    enum ibv_wc_status why;  /* CONN_FAILED: what the adapter said; success: the peer never answered */

    /* A word the peer sets before it sleeps: what is written into its ring then needs a knock. */
    struct ib_buffer *bell;
    uint64_t peer_bell;
    uint32_t peer_bell_key;
    bool bell_rung; /* I set the peer's word, and nothing has come from it since: it is still set */

    uint32_t ops;       /* puts and gets in flight */
    uint64_t used;      /* ib->tick of its last frame: who is idle longest */
    struct list asking; /* ib->asking: waiting for an answer */
    uint64_t deadline;
    struct ib_address address; /* of the peer */
    struct ibv_ah *ah;

    /* Between reserve and commit. */
    struct ib_lane *reserved_lane;
    struct ib_buffer *reserved; /* NULL: the ring */
    char *reserved_room;
    bool reserved_waited;
};

/* ---- the transport ---- */

enum { IB_POLL_BATCH = 16 };

struct ib_chunk {
    void *memory;
    size_t size;
    struct ibv_mr *mr;
    struct ib_buffer *buffers;
};

/* A shared receive queue and its buffers. */
struct ib_shared {
    struct ib *ib;
    struct ibv_srq *srq;
    struct ib_pool *pool;
    uint32_t target; /* log2(n) * k + b */
    uint32_t posted;
    uint32_t most; /* what the device allows */
    struct list buffers;
    _Atomic int low; /* the limit event came */
};

struct ib {
    struct transport base;
    struct ib_device device;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    int cq_size, cq_used;
    struct ibv_qp *ud;
    int ud_depth, ud_sends; /* HELLOs that may be, and are, on their way out */
    struct ib_pool ud_pool, small, large, rings, bells;
    struct ib_chunk *chunks;
    uint32_t nchunks, chunks_room;
    struct ib_shared shared[IB_LANES];
    struct ib_endpoint **endpoints; /* by id */
    uint32_t nendpoints, endpoints_room;
    uint32_t open; /* connections with queue pairs */
    struct pollset pollset;
    struct credit_rules rules;
    struct list asking, unsaid;
    struct regcache *regcache;
    uint32_t inline_max;
    uint32_t lanes;
    uint32_t ring_slots, ring_slot_size;
    size_t ring_frame_max; /* with its head */
    _Atomic int attention; /* an asynchronous event wants to be looked at */
    _Atomic int pulse;     /* time to ask whether silent peers are alive */
    _Atomic uint64_t down; /* when the port went down, in ns; 0: it is up */
    _Atomic int broken;    /* the event after which nothing works any more, plus one; 0: none */
    uint64_t job;          /* hash of the job's name: datagrams of others are dropped */
    uint64_t tick;         /* polls so far */
    uint64_t next_timer;
    /* qp number -> lane, for shared receive queues: a small hash with linear probing */
    struct ib_lane **by_qpn;
    uint32_t by_qpn_size, by_qpn_used;

    /* event.c */
    pthread_t thread;
    bool thread_runs;
    int stop_fd;
    _Atomic int stop;
    _Atomic int sleeps_with_rings;
    bool closing; /* errors of connections that go away mean nothing now */
};

static inline struct ib *ib_of(struct transport *t)
{
    return (struct ib *)t;
}

/* Ends the job with a sentence that names the peer, the device and what happened. */
_Noreturn void ib_fatal(struct ib *ib, const struct ib_endpoint *ep, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* buffer.c */
void ib_pool_init(struct ib_pool *pool, struct ib *ib, size_t size);
struct ib_buffer *ib_buffer_get(struct ib_pool *pool); /* NULL: memory is out, err_detail says why */
void ib_buffer_put(struct ib_pool *pool, struct ib_buffer *b);
void ib_buffers_close(struct ib *ib);

/* lane.c */
int ib_lane_probe(struct ib *ib); /* how much can be inline, and in which order bytes arrive */
int ib_lane_create(struct ib_lane *lane);
int ib_lane_connect(struct ib_lane *lane, const struct ib_address *to, uint32_t qpn, uint32_t psn,
                    uint32_t rd_atomic);
void ib_lane_destroy(struct ib_lane *lane);
void ib_lane_post(struct ib_lane *lane, uint32_t n);            /* receive buffers */
void ib_lane_repost(struct ib_lane *lane, struct ib_buffer *b); /* this one again */
void ib_lane_retire(struct ib_lane *lane, uint32_t place);      /* this one and all before it are done */
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
    return (id >> 2) & 3;
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

/* endpoint.c */
int ib_connect(struct transport *t, struct peer *peer);
void ib_disconnect(struct transport *t, struct peer *peer);
void ib_endpoint_do(struct ib_endpoint *ep, unsigned actions);
void ib_endpoint_hello(struct ib_endpoint *ep, const struct ib_hello *h);
void ib_endpoint_want(struct ib_endpoint *ep);
bool ib_endpoint_busy(const struct ib_endpoint *ep);
void ib_endpoints_pulse(struct ib *ib);

/* hello.c */
int ib_hello_open(struct ib *ib);
void ib_hello_close(struct ib *ib);
void ib_hello_send(struct ib_endpoint *ep);
void ib_hello_arrived(struct ib *ib, struct ib_buffer *b, uint32_t length);
void ib_hello_timers(struct ib *ib);

/* send.c */
int ib_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len);
int ib_reserve(struct peer *peer, size_t len, void **payload);
void ib_commit(struct peer *peer, const struct frame_header *header, size_t len);
int ib_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op);
int ib_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op);
void ib_say(struct ib_endpoint *ep, enum ib_type type); /* a control message, now or when there is room */
void ib_flush(struct ib_endpoint *ep);                  /* those that found no room */
void ib_head_fill(struct ib_endpoint *ep, struct ib_head *h, enum ib_type type, bool waited);

/* receive.c */
int ib_poll(struct transport *t);
int ib_poll_completions(struct ib *ib);
void ib_received(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
void ib_drain(struct ib_endpoint *ep);
void ib_owe(struct ib_endpoint *ep); /* sends a credit message if one is due */

/* rdma.c */
char *ib_rdma_room(struct ib_endpoint *ep);
void ib_rdma_post(struct ib_endpoint *ep, size_t size);
int ib_rdma_poll(struct ib *ib);
int ib_rdma_take(struct ib_endpoint *ep);
bool ib_rdma_quiet(const struct ib *ib);
void ib_rdma_candidate(struct ib_endpoint *ep);
void ib_rdma_control(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
void ib_rdma_reset(struct ib_endpoint *ep);
bool ib_rdma_bells(struct ib *ib); /* tells those who write into rings that this process goes to sleep */

/* shared.c */
int ib_shared_open(struct ib *ib);
void ib_shared_close(struct ib *ib);
void ib_shared_refill(struct ib_shared *s); /* when half of its buffers are out */
void ib_shared_low(struct ib_shared *s);    /* the limit event came */
void ib_shared_grow(struct ib_shared *s, uint32_t n);

/* event.c */
int ib_event_open(struct ib *ib);
void ib_event_close(struct ib *ib);
bool ib_arm(struct transport *t);

/* memory.c */
int ib_memory_open(struct ib *ib);
void ib_memory_close(struct ib *ib);
int ib_register(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                struct net_key *key);
void ib_release(struct transport *t, struct net_mem *mem);

static inline uint32_t ib_lkey(const struct net_mem *mem)
{
    return ((const struct ibv_mr *)((const struct regcache_entry *)mem->handle)->handle)->lkey;
}

#endif

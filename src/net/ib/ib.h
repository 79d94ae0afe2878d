/* ib.h: the transport, and the functions that its files call in each other. Connections are in endpoint.h,
 * their queue pairs in lane.h, registered buffers in buffer.h, the format of messages in wire.h.
 *
 *   verbs.c     libibverbs, loaded               memory.c    the user's memory, registered
 *   survey.c    which ports there are            agree.c     one network for all ranks
 *   device.c    this process's port, opened      hello.c     handshake datagrams, timers
 *   buffer.c    registered memory, buffers       lane.c      a queue pair: receive buffers, send queue
 *   endpoint.c  connections: open, close         shared.c    shared receive queues [Shipman06 5.2]
 *   send.c      frames out, put, get             receive.c   completions, order, frames in
 *   rdma.c      the RDMA ring and polling set    event.c     the thread that wakes sleepers
 *   rail.c      the ports of this process        join.c      queue pairs on further rails
 *   stripe.c    put and get over several rails   migrate.c   alternate paths of connections
 *   allot.c     reserved rails                   spread.c    frames over several rails
 *   way.c       the rails of a connection        move.c      connections that break and go on elsewhere
 *   barrier.c   barriers in the switch           ib.c        start and end of the transport
 *   policy/     pure: credit, conn, ring, pollset, choose, devlist
 *   mcast.c     multicast packets                mcast_join.c, mcast_sa.c  joining groups
 *   own.c       atomics on this process's own memory
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_IB_H
#define FP_NET_IB_IB_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "base/list.h"
#include "base/pool.h"
#include "net/ib/allot.h"
#include "net/ib/buffer.h"
#include "net/ib/device.h"
#include "net/ib/endpoint.h"
#include "net/ib/lane.h"
#include "net/ib/join.h"
#include "net/ib/policy/pollset.h"
#include "net/ib/rail.h"
#include "net/ib/receive.h"
#include "net/ib/wire.h"
#include "net/net.h"
#include "net/rails/stripe.h"
#include "net/regcache.h"

enum { IB_POLL_BATCH = 16 };
#define IB_PULSE 3000 /* ms between two looks whether silent peers are alive */

struct ib_chunk {
    void *memory;
    size_t size;
    struct ibv_mr *mr[IB_ADAPTERS_MAX];
    struct ib_buffer *buffers;
};

/* Where HELLOs come in and go out: a queue pair for datagrams on each rail. */
struct ib_ud {
    struct ibv_qp *qp;
    int depth, sends; /* HELLOs that may be, and are, on their way out */
};

/* A shared receive queue and its buffers. */
struct ib_shared {
    struct ib *ib;
    struct ibv_srq *srq;
    struct ib_pool *pool;
    uint32_t adapter;
    uint32_t target; /* log2(n) * k + b */
    uint32_t posted;
    uint32_t most; /* what the device allows */
    struct list buffers;
    _Atomic int low; /* the limit event came */
};

/* One that the fabric performs. */
struct ib_barrier {
    struct transport_barrier base;
    const struct verbs_barrier *verbs;
};
/* The device of a barrier network. */
struct ib_wires {
    struct transport_barrier base;
    const struct verbs_wires *verbs;
    struct ibv_context *context; /* NULL: there is none */
};

struct ib {
    struct transport base;
    /* What every poll or send touches stands together. */
    uint64_t tick;                  /* polls so far */
    struct ib_endpoint **endpoints; /* by id */
    struct list asking, unsaid;
    uint32_t nadapters, nrails;
    uint32_t elsewhere;    /* stripes under way on adapters other than the first */
    _Atomic int attention; /* an asynchronous event wants to be looked at */
    uint32_t inline_max;
    uint32_t lanes;
    bool silent;                                 /* the last poll found nothing in the rings */
    struct ib_adapter adapters[IB_ADAPTERS_MAX]; /* 0: that of device */
    struct pollset pollset;

    struct ib_barrier barrier;
    struct ib_wires wires;
    struct ib_device device;
    struct ib_rail rails[IB_RAILS_MAX]; /* 0: device */
    struct ib_rail *alternate; /* where connections go when the home port fails (migrate.c); NULL: nowhere */
    bool stuck;                /* a stripe waits for room in a send queue */
    uint64_t found;            /* when the completions at hand were found, in ns; 0: nobody has asked yet */
    struct stripe_rules stripe_rules;
    bool stripe_measured;           /* how finely to divide is found by trial, not by the rules */
    uint64_t rails_from;            /* puts and gets of so many bytes may leave the home */
    struct ib_allot *allot;         /* NULL: every message takes whatever rails it likes */
    struct pool striped;            /* struct ib_striped */
    struct ib_ud uds[IB_RAILS_MAX]; /* by rail */
    struct ib_pool ud_pool, small, large, rings, bells;
    struct ib_chunk *chunks;
    uint32_t nchunks, chunks_room;
    struct ib_shared shared[IB_ADAPTERS_MAX][IB_LANES];
    uint32_t nendpoints, endpoints_room;
    uint32_t open; /* connections with queue pairs */
    struct credit_rules rules;
    struct list mcasts; /* members of multicast groups */
    struct regcache *regcache;
    struct ib_own *own; /* own.c: NULL until it is used */
    uint32_t ring_slots, ring_slot_size;
    size_t ring_frame_max; /* with its head */
    _Atomic int ports;     /* one went down or came up */
    _Atomic int pulse;     /* time to ask whether silent peers are alive */
    _Atomic int broken;    /* the event after which nothing works any more, plus one; 0: none */
    bool breaks;           /* a connection has broken: look */
    bool drops;            /* and a pair of rails */
    uint64_t job;          /* hash of the job's name: datagrams of others are dropped */
    uint64_t next_timer;
    bool settling;   /* all connections are opened before MPI_Init returns */
    bool worried;    /* the user was told that a peer does not answer */
    uint64_t pulsed; /* when it was last asked whether silent peers are alive, in ns */
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

/* hello.c */
int ib_hello_open(struct ib *ib);
void ib_hello_close(struct ib *ib);
void ib_hello_send(struct ib_endpoint *ep);
void ib_hello_arrived(struct ib *ib, struct ib_buffer *b, uint32_t length);
void ib_hello_timers(struct ib *ib);

/* A one-sided transfer, from where to where. */
struct ib_transfer {
    enum ibv_wr_opcode opcode;
    uintptr_t local;
    uint64_t remote;
    uint32_t lkey, rkey;
    const struct ib_rdma
        *whole; /* to be done again when the connection breaks; NULL: somebody else does that */
};

#define IB_WAY_TRIES 8 /* HELLOs without an answer, after which another way is tried */

/* way.c: the rails that carry a connection. */
int ib_ways_open(struct ib_endpoint *ep, const struct ib_rail_said *peer, uint32_t count);
void ib_way_take(struct ib_endpoint *ep, unsigned way);
void ib_way_doubt(struct ib_endpoint *ep);
void ib_way_next(struct ib_endpoint *ep); /* another one than that of now, if there is */
bool ib_way_meets(struct ib_endpoint *ep, uint8_t rail,
                  const struct ib_hello *h); /* false: say HELLO again */
uint32_t ib_rails_up(const struct ib *ib);
bool ib_first(const struct ib_endpoint *ep); /* of the two ends: both must agree on one */
uint32_t ib_rails_tell(const struct ib *ib, struct ib_rail_said out[IB_RAILS_MAX]);

/* move.c: connections that break and go on over another rail. */
bool ib_break(struct ib_endpoint *ep,
              const char *why);     /* false: it has no other way. NULL: the user need not know */
void ib_moves(struct ib *ib);       /* those that broke */
void ib_look_at_all(struct ib *ib); /* whatever has completed; not while a completion is looked at */
void ib_moves_ports(struct ib *ib, bool rested);
void ib_moves_patience(struct ib *ib);
void ib_moved(struct ib_endpoint *ep);                        /* it is open */
void ib_kept_collect(struct ib_endpoint *ep);                 /* before the queue pairs go */
void ib_kept_told(struct ib_endpoint *ep, uint16_t expected); /* what has arrived needs not be sent again */
void ib_kept_lane(struct ib_lane *lane);                      /* of one of them */
bool ib_kept_send(struct ib_endpoint *ep);                    /* true: nothing is left */
void ib_kept_free(struct ib_endpoint *ep, int status);        /* the peer is gone */
size_t ib_kept_tell(const struct ib_endpoint *ep,
                    struct ib_written *out); /* what IB_WRITE says; its length */
void ib_fate(struct ib_endpoint *ep, const struct ib_head *h, size_t len);    /* IB_ASK and IB_SAW */
void ib_written(struct ib_endpoint *ep, const struct ib_head *h, size_t len); /* IB_WRITE and IB_WROTE */

/* migrate.c */
void ib_paths_open(struct ib *ib);
void ib_path_arm(struct ib_lane *lane);
void ib_path_moved(struct ib *ib, struct ib_lane *lane);
void ib_paths_look(struct ib *ib,
                   bool rested); /* after events of ports and paths; rested: time to move back */
bool ib_paths_carry(const struct ib *ib);

/* stripe.c */
int ib_stripe_open(struct ib *ib);
void ib_stripe_close(struct ib *ib);
void ib_stripe_again(struct ib *ib); /* what found no room */
int ib_stripe(struct ib_endpoint *ep, enum ibv_wr_opcode opcode, uintptr_t local, const struct net_mem *mem,
              uint64_t remote, const struct net_key *key, size_t len, struct net_op *op);

/* Large enough for other rails, and more than one way may lead there? */
static inline bool ib_stripes(const struct ib *ib, const struct ib_endpoint *ep, size_t len)
{
    return unlikely(ep->several) && len >= ib->rails_from;
}

/* What stands before every message. */
static inline void ib_head_fill(struct ib_endpoint *ep, struct ib_head *h, enum ib_type type, bool waited)
{
    *h = (struct ib_head){.seq = type <= IB_LEAVE && type != IB_FRAME ? 0 : ep->next_seq++,
                          .type = (uint8_t)type,
                          .flags = waited ? IB_WAITED : 0,
                          .credits = {(uint8_t)credit_tell(&ep->lanes[0].credit, UINT8_MAX)},
                          .ring = (uint16_t)ring_rx_tell(&ep->rx, UINT16_MAX)};
    if (ep->ib->lanes > 1)
        h->credits[1] = (uint8_t)credit_tell(&ep->lanes[1].credit, UINT8_MAX);
    ep->used = ep->ib->tick;
}

/* send.c */
int ib_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len);
int ib_reserve(struct peer *peer, size_t len, void **payload);
void ib_commit(struct peer *peer, const struct frame_header *header, size_t len);
int ib_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op);
int ib_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op);
int ib_atomic(struct peer *peer, const struct net_atomic *change, uint64_t *old, const struct net_mem *mem,
              uint64_t remote, const struct net_key *key, struct net_op *op);
void ib_atomic_request(const struct net_atomic *change, uint64_t remote, uint32_t rkey,
                       struct ibv_send_wr *out);
int ib_lane_rdma(struct ib_lane *lane, const struct ib_transfer *t, size_t len, struct net_op *op);
void ib_say(struct ib_endpoint *ep, enum ib_type type); /* a control message, now or when there is room */
void ib_flush(struct ib_endpoint *ep);                  /* those that found no room */
int ib_lane_claim(struct ib_lane *lane, bool *waited);
struct ib_lane *ib_lane_for(struct ib_endpoint *ep, size_t len);
void ib_lane_message(struct ib_lane *lane, struct ib_buffer *b, const void *at, size_t bytes, bool signal);
int ib_lane_frame(struct ib_lane *lane, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                  size_t len, bool signal);
struct ib_work *ib_lane_control(struct ib_lane *lane, const void *message, size_t bytes, bool signal);
int ib_no_buffer(struct ib_lane *lane);
int ib_not_open(struct ib_endpoint *ep);
int ib_home_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                 size_t len); /* a frame, over the rail that carries the connection */
int ib_lanes_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                  size_t len); /* through the send/receive channel */
int ib_home_reserve(struct ib_endpoint *ep, size_t len, void **payload);
int ib_home_rdma(struct ib_endpoint *ep, const struct ib_rdma *r, struct net_op *op);

/* own.c */
int ib_own_open(struct transport *t);
int ib_own_atomic(struct transport *t, const struct net_atomic *change, uint64_t *old, void *word,
                  const struct net_key *key);
void ib_own_close(struct ib *ib);

/* rdma.c */
int ib_rdma_send(struct ib_endpoint *ep, uint64_t head, uint64_t from, uint64_t word, const void *payload,
                 size_t len); /* a frame into the peer's ring, if there is room */
char *ib_rdma_room(struct ib_endpoint *ep);
char *ib_rdma_room_on(struct ib_endpoint *ep, struct ib_lane *lane);
void ib_rdma_post(struct ib_endpoint *ep, size_t size);
void ib_rdma_post_on(struct ib_endpoint *ep, struct ib_lane *lane, uint8_t theirs, size_t size,
                     bool signal); /* over a further rail, to that adapter of the peer */
int ib_rdma_poll(struct ib *ib);
int ib_rdma_take(struct ib_endpoint *ep);
bool ib_rdma_quiet(const struct ib *ib);
void ib_rdma_candidate(struct ib_endpoint *ep);
void ib_rdma_control(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
void ib_rdma_reset(struct ib_endpoint *ep);
bool ib_rdma_bells(struct ib *ib); /* tells those who write into rings that this process goes to sleep */

/* barrier.c */
void ib_barriers_open(struct ib *ib);
void ib_barriers_close(struct ib *ib);

/* mcast.c */
extern const struct transport_multicast ib_multicast;
bool ib_mcast_arm(struct ib *ib); /* false: a packet has arrived already */

/* shared.c */
int ib_shared_open(struct ib *ib, uint32_t adapter); /* once; when the first connection is there */
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
int ib_register_piece(struct transport *t, const void *address, size_t len, struct net_mem *mem,
                      struct net_key *key);
void ib_release(struct transport *t, struct net_mem *mem);
bool ib_memory_in_use(const struct ib *ib, uint64_t address, size_t len,
                      const struct net_key *key); /* it has that key, and was not released */

/* The user's memory, registered with every adapter. */
struct ib_region {
    uint32_t lkey[IB_ADAPTERS_MAX], rkey[IB_ADAPTERS_MAX];
    struct ibv_mr *mr[IB_ADAPTERS_MAX];
};

static inline uint32_t ib_lkey(const struct net_mem *mem, unsigned adapter)
{
    return ((const struct ib_region *)((const struct regcache_entry *)mem->handle)->handle)->lkey[adapter];
}

/* The owner's adapters in their order, two to a word. */
static inline uint32_t ib_rkey(const struct net_key *key, unsigned adapter)
{
    return (uint32_t)(key->word[adapter / 2] >> (adapter % 2 ? 32 : 0));
}

#endif

/* ib.h: the state of the InfiniBand and RoCE transport of a process, of its connections, and of their further rails. Each module
 * (a folder) has one header with its functions; a module calls only modules above it in this list:
 *
 *   device       adapters, ports, registered memory        policy  pure machines, used by all
 *   queue        queue pairs and shared receive queues
 *   channel      messages through queue pairs and rings, in order
 *   connection   opening and closing
 *   rails        queue pairs on further rails, and frames over them
 *   rendezvous   puts, gets, atomic operations, stripes
 *   failover     connections that fail and continue; peers that die
 *   multicast    multicast packets
 *   transport    start, end, poll, sleep; the table of operations
 *
 * Events are reported upwards through the tables of events.h. wire.h has the format of messages.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_IB_H
#define FP_NET_IB_IB_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "base/list.h"
#include "base/pool.h"
#include "net/ib/device/device.h"
#include "net/ib/events.h"
#include "net/ib/policy/conn.h"
#include "net/ib/policy/leave.h"
#include "net/ib/policy/pollset.h"
#include "net/ib/policy/rdma_ring.h"
#include "net/ib/policy/frame_route.h"
#include "net/ib/queue/queue.h"
#include "net/ib/wire.h"
#include "net/net.h"
#include "net/peer.h"
#include "net/rails/adapt.h"
#include "net/rails/joint.h"
#include "net/rails/stripe.h"
#include "net/rails/mux.h"
#include "net/rails/pair.h"
#include "net/rails/stripe.h"
#include "net/regcache.h"

struct ib_allotment;
struct ib_spread;

enum { IB_POLL_BATCH = 16 };
#define IB_LISTEN 64   /* on adapters without connections, HELLOs are polled for once in IB_LISTEN polls */
#define IB_PULSE  3000 /* ms between two probes of silent peers */

/* ---- the further rails of a connection (rails/) ---- */

/* A pair of rails, one at each end, joined by a queue pair [Liu04 8.2.2]. */
struct ib_pair {
    struct ib_lane lane;
    struct joint joint;
    uint8_t mine, yours; /* rail of this process, rail of the peer */
    bool resting;        /* the pair has failed: no new attempt before the next pulse or port event */
};

/* The pairs of rails of a connection. Pair 0 is the queue pair of the primary rail, which carries all RDMA
 * writes and reads until further rails are connected. */
struct ib_pairs {
    uint32_t count; /* 0: the peer has not sent its list of rails yet */
    uint32_t up;    /* bit set of the pairs that transfers may use */
    uint32_t peer_rails;
    struct ib_rail_info peer[IB_RAILS_MAX];
    struct ib_pair pair[RAILS_MAX]; /* of pair 0 only `mine` and `yours` are used */
    double weight[RAILS_MAX];       /* even and weighted striping */
    struct adapt adapt;
    struct ib_spread *spread; /* NULL: frames stay on the primary rail */
    bool rejoining;           /* the pairs are dropped because the connection is being reopened */
    bool rings;               /* slots of the peer's ring may be written over any pair */
    uint16_t frames;          /* receive buffers of each pair at the peer; 0: pairs carry no frames */
    uint32_t owing; /* bit set of pairs that must return credits as soon as their send queue has room */
    struct list under_way; /* struct ib_striped: transfers that have not ended */
    void *allot_peer;      /* state of the allotment policy for this peer; NULL: none */
};

/* ---- a connection to one peer ---- */

/* The paths that a connection may use: a rail at each end, both on one network. */
struct ib_paths {
    uint32_t peer_up;                 /* bit set of the peer's rails whose ports it last reported up */
    uint8_t count, peer_rails, at;    /* at: index of the current path */
    uint8_t next;                     /* path of the next connection generation; RAIL_NONE: not chosen yet */
    struct pair path[PAIR_PATHS_MAX]; /* a: rail of this process, b: rail of the peer */
    struct ib_rail_info peer[IB_RAILS_MAX];
};

enum ib_ring_state { IB_RING_NONE, IB_RING_USED, IB_RING_LEAVING };

/* XRC target queue pair that receives from a peer's initiator. Its row may have another target once its
 * creator has died. */
struct ib_xrc_target {
    struct ib_xrc_row *row; /* NULL: none */
    uint32_t serial, qpn;
};

struct ib_endpoint {
    struct ib *ib;
    struct peer *peer; /* NULL: the guest has disconnected; the endpoint is reused for the next peer */
    struct conn conn;
    struct frame_route route; /* whether frames may be sent, and over which rails */
    uint8_t primary;          /* rail of this process that carries the connection */
    uint8_t peer_rail;        /* rail of the peer that carries the connection */
    uint8_t peer_adapter;
    uint16_t next_seq; /* sequence number of the next message to send */
    uint16_t expected; /* sequence number of the next message to deliver; ESN in [Liu04 6.2.5] */
    uint32_t id;       /* index in ib->endpoints */

    /* Owner: channel. The ring that this process writes and the peer polls. */
    bool tx_on;
    struct ring_tx tx;
    struct ib_buffer *tx_mirror;
    uint64_t tx_address;
    uint32_t tx_rkey[IB_ADAPTERS_MAX]; /* by adapter of the peer */
    size_t tx_frame_max;               /* largest payload of a frame in the ring */
    struct ibv_send_wr tx_work;        /* prefilled write request: only addresses and length change */
    struct ibv_sge tx_piece;
    /* Owner: channel. The ring that the peer writes and this process polls. */
    enum ib_ring_state rx_state;
    struct ring_rx rx;
    struct ib_buffer *rx_memory;
    uint32_t rx_traffic;    /* frames that the polling set (pollset.h) counted for this peer */
    bool peer_bell_set;     /* the peer's bell was set, and the peer has sent nothing since */
    struct list held;       /* early messages from queue pairs, by sequence number */
    uint64_t used;          /* ib->tick of the last message: the connection idle longest is closed first */
    struct ib_buffer *bell; /* word that the peer sets before it sleeps: the next frame must wake it */
    uint64_t peer_bell;     /* address of this process's word at the peer */
    uint32_t peer_bell_key;
    uint32_t control_pending; /* bit set of the control messages to send, by enum ib_type */
    struct list control_link; /* in ib->control_waiting while control messages wait for room */
    uint32_t final_markers;   /* markers in flight, each after a CLOSE or AGREE */
    /* Between reserve and commit. */
    struct ib_lane *reserved_lane;
    struct ib_buffer *reserved; /* NULL: the frame is built in the ring */
    char *reserved_room;
    bool reserved_waited;

    struct ib_lane lanes[IB_LANES];
    struct ib_xrc_target xrc_target; /* owner: queue */

    /* Owner: connection. */
    struct ib_paths *paths;    /* NULL: a guest; if its connection fails the job ends */
    bool has_several_rails;    /* this process or the peer has more than one rail */
    struct list opening_link;  /* in ib->opening while a HELLO awaits its answer */
    uint64_t deadline;         /* when the HELLO is sent again, in ns */
    uint64_t opening_since;    /* when the first unanswered HELLO was sent, in ns */
    struct ib_address address; /* port of the peer */
    struct ibv_ah *ah;
    struct leave leave;

    struct ib_pairs *pairs; /* owner: rails; NULL: further rails were not needed yet */
    uint32_t ops;           /* owner: rendezvous; puts and gets in flight */

    /* Owner: failover (docs/failover.md). */
    struct list unacknowledged;      /* frames that may have been lost in the failure, by sequence number */
    struct list unacknowledged_rdma; /* struct ib_unacknowledged: transfers that may not have been executed */
    struct ib_write_status query, answer; /* bodies of the next IB_QUERY and IB_ANSWER */
    uint64_t failed_since;                /* when the connection failed, in ns; 0: it has not failed */
    bool switched_port;        /* the connection uses another path because a port of this process went down */
    uint8_t failed_attempts;   /* consecutive connections that failed before anything was sent */
    bool suspected;            /* the launcher was notified that the peer does not answer */
    enum ibv_wc_status status; /* reported by the adapter; IBV_WC_SUCCESS: the peer never answered */
};

/* ---- the transport ---- */

/* A UD queue pair for HELLO datagrams; each rail has one. */
struct ib_ud {
    struct ibv_qp *qp;
    int depth, sends; /* capacity of the send queue, and HELLOs in it */
};

/* A barrier that the network performs. */
struct ib_barrier {
    struct transport_barrier base;
    const struct verbs *verbs;
    struct ibv_context *wires; /* device of a barrier network; NULL: the switch performs the barrier */
};

#define IB_ALLOCATIONS 256

/* An allocation of GPU memory. size 0: a free entry. */
struct ib_allocation {
    uint64_t start, size, id;
};

/* FISHPLATE_IB_RECEIVE */
enum ib_receive { IB_RECEIVE_PEER, IB_RECEIVE_SHARED, IB_RECEIVE_XRC };

struct ib {
    struct transport base;
    const struct ib_events *events;
    const struct ib_message *messages; /* by type */
    /* The following members are used by every poll or send and share cache lines. */
    uint64_t tick;                  /* number of polls so far */
    struct ib_endpoint **endpoints; /* by id */
    struct list opening;            /* connections whose HELLO awaits an answer */
    struct list control_waiting;    /* connections whose control messages wait for room */
    uint32_t nadapters, nrails;
    uint32_t elsewhere;    /* connections and stripes on adapters other than the first */
    _Atomic int attention; /* poll has other work than completions and rings (poll.c) */
    uint32_t inline_max;
    uint32_t lanes;
    bool rings_idle;                             /* the last poll found nothing in the rings */
    struct ib_adapter adapters[IB_ADAPTERS_MAX]; /* 0: the adapter of `device` */
    struct pollset pollset;

    struct ib_barrier barrier, wires;
    struct ib_device device;
    struct ib_rail rails[IB_RAILS_MAX]; /* 0: `device` */
    bool stripes_blocked;               /* a stripe waits for room in a send queue */
    uint64_t completions_ns; /* when the current completions were polled; 0: the clock was not read yet */
    struct stripe_rules stripe_rules;
    uint64_t stripe_from;             /* bytes: longer puts and gets may use further rails */
    const struct ib_allotment *allot; /* NULL: a transfer uses all rails */
    void *allot_state;
    struct pool striped;            /* struct ib_striped */
    struct ib_ud uds[IB_RAILS_MAX]; /* by rail */
    struct ib_pool ud_pool, small, large, rings, bells;
    struct ib_chunk *chunks;
    uint32_t nchunks, chunks_room;
    struct ib_shared shared[IB_ADAPTERS_MAX][IB_LANES];
    uint32_t nendpoints, endpoints_room;
    uint32_t open; /* connections with queue pairs */
    struct credit_rules rules;
    struct list multicasts; /* members of multicast groups */
    struct regcache *regcache;
    struct ib_allocation
        allocations[IB_ALLOCATIONS];     /* GPU memory with registrations, by buffer id (memory.c) */
    uint32_t allocation_checked;         /* number of checks whether an allocation still exists */
    const struct gpu_range *registering; /* the allocation that is being registered; NULL: host memory */
    bool gpu_refused;                    /* ordinary GPU memory cannot be registered */
    enum ib_receive receive;
    struct ib_xrc *xrc;   /* NULL: FISHPLATE_IB_RECEIVE is not xrc */
    struct ib_self *self; /* NULL: the process has used no adapter atomics on its own memory */
    uint32_t ring_slots, ring_slot_size;
    size_t ring_frame_max;   /* largest frame in a ring, with its head */
    _Atomic int ports;       /* a port went down or came up */
    _Atomic int pulse;       /* silent peers must be probed */
    _Atomic int fatal_event; /* ibv_event_type + 1 of the event that ended the adapter; 0: none */
    bool failures;           /* at least one connection has failed */
    bool pair_failures;      /* a pair of rails has failed */
    uint64_t job;            /* hash of the job's name: datagrams of other jobs are dropped */
    uint64_t next_timer;     /* earliest deadline of a HELLO, in ns */
    bool opening_all;        /* MPI_Init opens all connections before it returns */
    bool warned;             /* the user was warned that a peer does not answer */
    uint64_t pulsed;         /* when silent peers were last probed, in ns */
    struct ib_lane **by_qpn; /* lanes with shared receive queues, hashed by queue pair number */
    uint32_t by_qpn_size, by_qpn_used;

    /* Owner: transport/sleep.c. */
    pthread_t thread;
    bool thread_runs;
    int stop_fd;
    _Atomic int stop;
    _Atomic int sleeps_with_rings;
    bool closing;       /* failures of connections are expected from now on */
    bool ends_together; /* all ranks of the job end now (leave.h) */
};

static inline struct ib *ib_of(struct transport *t)
{
    return (struct ib *)t;
}

#endif

/* ib.h: the state of the InfiniBand and RoCE transport of a process, of its connections, and of their further rails. Each module
 * (a folder) has one header with its functions; a module calls only modules that stand before it:
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
 * Events go up through the tables of events.h. wire.h has the format of messages.
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
#include "net/ib/policy/ring.h"
#include "net/ib/policy/traffic.h"
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
#define IB_LISTEN 64   /* polls between two checks for HELLOs on adapters that carry nothing */
#define IB_PULSE  3000 /* ms between two probes of silent peers */

/* ---- the further rails of a connection (rails/) ---- */

/* A pair of rails, one at each end, joined by a queue pair [Liu04 8.2.2]. */
struct ib_pair {
    struct ib_lane lane;
    struct joint joint;
    uint8_t mine, yours; /* rails */
    bool resting;        /* it has failed: not joined again until the next pulse, or until a port comes up */
};

/* Pair 0 is the queue pair of the connection that carries RDMA writes and reads without further rails. */
struct ib_pairs {
    uint32_t count; /* 0: the peer has not sent its list of rails yet */
    uint32_t up;    /* pairs that transfers may take, a bit each */
    uint32_t peer_rails;
    struct ib_rail_info peer[IB_RAILS_MAX];
    struct ib_pair pair[RAILS_MAX]; /* 0: only mine and yours */
    double weight[RAILS_MAX];       /* even and weighted striping */
    struct adapt adapt;
    struct ib_spread *spread; /* NULL: frames stay on the primary rail */
    bool rejoining;           /* pairs are dropped because the connection is opened again */
    bool rings;               /* slots of the peer's ring may be written over any pair */
    uint16_t frames;          /* receive buffers of each pair at the peer; 0: it takes no frames there */
    uint32_t owing;           /* pairs whose credits found no room in the send queue */
    struct list under_way;    /* struct ib_striped */
    void *allot_peer;         /* of the allotment; NULL: none */
};

/* ---- a connection to one peer ---- */

/* The paths that a connection may take: a rail at each end, both on one network. */
struct ib_paths {
    uint32_t peer_up;                 /* rails of the peer whose ports are up, as it reported last */
    uint8_t count, peer_rails, at;    /* at: the present path */
    uint8_t next;                     /* to take when the connection is opened again; RAIL_NONE: choose */
    struct pair path[PAIR_PATHS_MAX]; /* a: my rail, b: that of the peer */
    struct ib_rail_info peer[IB_RAILS_MAX];
};

enum ib_ring_state { IB_RING_NONE, IB_RING_USED, IB_RING_LEAVING };

struct ib_endpoint {
    struct ib *ib;
    struct peer *peer; /* NULL: a guest who has gone; the next peer takes its place */
    struct conn conn;
    struct traffic traffic; /* whether and where frames may be sent */
    uint8_t primary;        /* my rail that carries the connection */
    uint8_t peer_rail;
    uint8_t peer_adapter;
    uint16_t next_seq; /* of the next message to send */
    uint16_t expected; /* of the next message to deliver; ESN in [Liu04 6.2.5] */
    uint32_t id;       /* index in ib->endpoints */

    /* Owner: channel. The ring that this process writes and the peer polls. */
    bool tx_on;
    bool
        tx_by_imm; /* the peer's adapter may place the end of a frame before the rest: announce it by an immediate */
    struct ring_tx tx;
    struct ib_buffer *tx_mirror;
    uint64_t tx_address;
    uint32_t tx_rkey[IB_ADAPTERS_MAX]; /* by the peer's adapter */
    size_t tx_frame_max;               /* payload */
    struct ibv_send_wr tx_work;        /* prefilled: only addresses and length change */
    struct ibv_sge tx_piece;
    /* The ring that this process polls. */
    enum ib_ring_state rx_state;
    struct ring_rx rx;
    struct ib_buffer *rx_memory;
    uint32_t rx_traffic;    /* for the polling set */
    uint32_t rx_announced;  /* frames whose immediate came, if they are announced so */
    bool peer_bell_set;     /* the peer's bell was set, and nothing has come from the peer since */
    struct list held;       /* arrived through a queue pair before their turn; by seq */
    uint64_t used;          /* ib->tick of its last message: which connection is idle longest */
    struct ib_buffer *bell; /* a word that the peer sets before it sleeps: it must be woken then */
    uint64_t peer_bell;
    uint32_t peer_bell_key;
    uint32_t control_pending; /* control messages to send, a bit each: 1 << enum ib_type */
    struct list control_link; /* ib->control_waiting: they found no room */
    uint32_t final_markers;   /* ends of queue pairs under way since CLOSE or AGREE was sent */
    /* Between reserve and commit. */
    struct ib_lane *reserved_lane;
    struct ib_buffer *reserved; /* NULL: the ring */
    char *reserved_room;
    bool reserved_waited;

    struct ib_lane lanes[IB_LANES];
    struct ib_xrc_row
        *xrc_target; /* owner: queue: the target of the peer's initiator, in the table of the node */

    /* Owner: connection. */
    struct ib_paths *paths;    /* NULL: a guest; a failure of its connection ends the job */
    bool has_several_rails;    /* this process or the peer has more than one rail */
    struct list opening_link;  /* ib->opening: waiting for an answer */
    uint64_t deadline;         /* when HELLO is sent again */
    uint64_t opening_since;    /* since when HELLOs are repeated */
    struct ib_address address; /* of the peer */
    struct ib_address alternate;
    struct ibv_ah *ah;
    struct leave leave;

    struct ib_pairs *pairs; /* owner: rails; NULL: nobody has wanted any */
    uint32_t ops;           /* owner: rendezvous: puts and gets in flight */

    /* Owner: failover (docs/failover.md). */
    struct list unacknowledged;           /* frames that may not have arrived when it failed; by seq */
    struct list unacknowledged_rdma;      /* and transfers: struct ib_unacknowledged */
    struct ib_write_status query, answer; /* the bodies of IB_QUERY and IB_ANSWER */
    uint64_t failed_since;                /* in ns; 0: it has not failed */
    bool switched_port;      /* it left its first path because a port of this process went down */
    uint8_t failed_attempts; /* connections in a row on which nothing was sent before they failed */
    bool suspected;          /* the launcher was notified that the peer does not answer */
    enum ibv_wc_status
        status; /* of the failure that the adapter reported; success: the peer never answered */
};

/* ---- the transport ---- */

/* A queue pair for HELLO datagrams, on each rail. */
struct ib_ud {
    struct ibv_qp *qp;
    int depth, sends; /* HELLOs that may be, and are, in the send queue */
};

/* A barrier that the fabric performs. */
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
    /* What every poll or send touches stands together. */
    uint64_t tick;                  /* polls so far */
    struct ib_endpoint **endpoints; /* by id */
    struct list opening;            /* connections that wait for an answer to HELLO */
    struct list control_waiting;    /* connections whose control messages found no room */
    uint32_t nadapters, nrails;
    uint32_t elsewhere;    /* users of adapters other than the first */
    _Atomic int attention; /* poll has rarer work to do */
    uint32_t inline_max;
    uint32_t lanes;
    bool rings_idle;                             /* the last poll found nothing in the rings */
    struct ib_adapter adapters[IB_ADAPTERS_MAX]; /* 0: that of device */
    struct pollset pollset;

    struct ib_barrier barrier, wires;
    struct ib_device device;
    struct ib_rail rails[IB_RAILS_MAX]; /* 0: device */
    struct ib_rail *alternate; /* where connections migrate when the primary port fails; NULL: nowhere */
    bool stripes_blocked;      /* a stripe waits for room in a send queue */
    uint64_t completions_ns;   /* when the completions at hand were polled; 0: not read yet */
    struct stripe_rules stripe_rules;
    uint64_t stripe_from;             /* puts and gets of this many bytes may leave the primary rail */
    const struct ib_allotment *allot; /* NULL: transfers take all rails */
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
    uint32_t allocation_checked;         /* counts checks whether an allocation still exists */
    const struct gpu_range *registering; /* the allocation that is being registered; NULL: host memory */
    bool gpu_refused;                    /* ordinary GPU memory cannot be registered */
    enum ib_receive receive;
    struct ib_xrc *xrc;   /* NULL: not IB_RECEIVE_XRC */
    struct ib_self *self; /* NULL until it is used */
    uint32_t ring_slots, ring_slot_size;
    size_t ring_frame_max;   /* with its head */
    _Atomic int ports;       /* one went down or came up */
    _Atomic int pulse;       /* time to probe silent peers */
    _Atomic int fatal_event; /* the event after which nothing works any more, plus one; 0: none */
    bool failures;           /* a connection has failed */
    bool pair_failures;      /* a pair of rails has failed */
    uint64_t job;            /* hash of the job's name: datagrams of others are dropped */
    uint64_t next_timer;
    bool opening_all; /* all connections are opened before MPI_Init returns */
    bool warned;      /* the user was warned that a peer does not answer */
    uint64_t pulsed;  /* when silent peers were last probed, in ns */
    /* qp number -> lane, for shared receive queues: a small hash with linear probing */
    struct ib_lane **by_qpn;
    uint32_t by_qpn_size, by_qpn_used;

    /* Owner: transport/sleep.c. */
    pthread_t thread;
    bool thread_runs;
    int stop_fd;
    _Atomic int stop;
    _Atomic int sleeps_with_rings;
    bool closing;       /* errors of connections that close are expected now */
    bool ends_together; /* all ranks of the job end now (leave.h) */
};

static inline struct ib *ib_of(struct transport *t)
{
    return (struct ib *)t;
}

#endif

/* shm.h: the structures that more than one process accesses. They are in two kinds of memory files
 * (memfd), which the kernel frees when the last process ends, also if it is killed:
 *   the registry, one per machine and fabric: members, port states, counters, multicast groups;
 *   an arena per process: QPs, CQs, receive queues, memory regions; every process that sends to it maps it.
 * A QP number is (member slot << QP_BITS | index), so that the number alone identifies the process and the
 * QP.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SHM_H
#define SOFTIB_SHM_H

#include "fabric/fabric.h"
#include "fabric/shlock.h"
#include "softib/barrier.h"

#define SHM_MAGIC     0x50f71b07u
#define MEMBERS       1024 /* slot 0 is never used */
#define QP_BITS       14
#define QP_MAX        (1u << QP_BITS)
#define CQ_MAX        16384u
#define SRQ_BITS      13
#define SRQ_MAX       (1u << SRQ_BITS)
#define RQ_TABLE      (QP_MAX + SRQ_MAX) /* a QP's own queue has the QP's index */
#define MR_MAX        131072u
#define MR_SHIFT      15 /* a key is index << MR_SHIFT | variant */
#define MR_VARIANT    ((1u << MR_SHIFT) - 1)
#define CHAN_MAX      4096u
#define GROUPS        FABRIC_GROUPS
#define XRCDS         1024u
#define GROUP_QPS     240
#define LANE_PACKETS  128u
#define LANE_WORDS    4
#define LANE_HEAD     128
#define LANE_BYTES    4096u /* the largest datagram */
#define EVENTS        1024
#define MAX_SGE       32
#define SHARED_COPIES 8
#define ARENA_BYTES   (2ull << 30)
#define ARENA_FIRST \
    (32ull << 20) /* bytes of the first extent of an arena; each further extent doubles the arena */
#define ARENA_EXTENTS 7
#define HOLDS         63 /* objects that a member's row can record: see hold.h */

enum counter {
    CNT_TX_PACKETS,
    CNT_TX_BYTES,
    CNT_RX_PACKETS,
    CNT_RX_BYTES,
    CNT_RNR_NAKS,    /* RNR NAKs sent because a receive queue was empty */
    CNT_RETRIES,     /* retransmissions of requests */
    CNT_TX_DROPS,    /* packets dropped at the sender: port down, or fault injection */
    CNT_RX_DROPS,    /* packets dropped at the receiver: no receive posted, wrong key, no such QP */
    CNT_BAD_FRAMES,  /* invalid frames from the network */
    CNT_UNREACHABLE, /* addresses of peers at which the peer did not answer */
    CNT_COUNT
};

struct reg_port {
    atomic_uint up;
    atomic_uint plan;                  /* bit 0: the planned down was applied, bit 1: the planned up */
    _Atomic uint64_t tx_free, rx_free; /* time in ns at which the link is next idle, in each direction */
    _Atomic uint64_t tx_high_free, rx_high_free; /* the same for its high-priority virtual lane */
    /* The following members are used in an adapter's first port only. */
    _Atomic uint64_t bus_free; /* time in ns at which the adapter's bus is next idle */
    atomic_uint gone;          /* the adapter was removed */
} __attribute__((aligned(CACHELINE)));

/* Counters of a port by one member, so that no two processes write the same cache line. Readers add those
 * of all members. */
struct reg_tally {
    _Atomic uint64_t count[CNT_COUNT];
} __attribute__((aligned(CACHELINE)));

struct reg_member {
    atomic_uint live;
    atomic_uint gen;
    int32_t pid;
    int32_t arena_fd, reg_fd;
    uint64_t born;  /* start time of the process, to detect a later process with the same id */
    uint64_t nonce; /* part of its socket names, so that no other process can bind these names first */
    uint32_t node;
    atomic_uint rung; /* its doorbell was rung, and it has not run since */
} __attribute__((aligned(CACHELINE)));

struct reg_group {
    uint8_t gid[16];
    atomic_uint used;
    atomic_uint qpn[GROUP_QPS];
    atomic_uint port[GROUP_QPS]; /* port of each QP */
    atomic_uint top;             /* upper bound of the members' indexes */
};

struct reg_packet {
    uint64_t began; /* time at which the first byte left the sender; 0: ports have no rate and no latency */
    uint32_t length;
    uint32_t not_qpn;                  /* QP to which the packet is not delivered: the sender, or 0 */
    uint32_t from;                     /* port of the sender */
    _Alignas(16) char head[LANE_HEAD]; /* the packet's struct request */
    char data[LANE_BYTES];
};

/* State of a lane for one member of its group. Only `taken` is read without the lock. */
struct reg_taker {
    struct shlock lock; /* held by the thread that delivers to the member */
    /* 1: this member accounts for the packet at its port, once for all members at that port. */
    atomic_uint books;
    _Atomic uint64_t taken; /* number of the next packet for the member */
    uint64_t due;           /* time at which packet `taken` has passed the member's port; 0: not computed */
};

/* Packets of a multicast group, which its members take: see local/lane.h. */
struct reg_lane {
    struct shlock lock;       /* held by the sender of a packet */
    uint64_t floor;           /* lower bound of `taken` of all members */
    _Atomic uint64_t slowest; /* bytes per second of the slowest port with members; 0: no port has a rate */
    _Atomic uint64_t free_at; /* time at which the slowest port is next idle */
    _Alignas(CACHELINE) _Atomic uint64_t tail; /* packets sent so far */
    /* Bits of members whose program waits for an event, or may wait. */
    _Alignas(CACHELINE) _Atomic uint64_t asleep[LANE_WORDS];
    atomic_uint waking; /* the member that was woken last wakes the next one */
    /* Bits of members that were asleep and fetched an event of another CQ. */
    _Atomic uint64_t dozing[LANE_WORDS];
    _Alignas(CACHELINE) struct reg_taker taker[GROUP_QPS];
    _Alignas(CACHELINE) struct reg_packet packet[LANE_PACKETS];
};

/* The row of a member: objects of other members that it uses, as owner << 32 | index; 0: free (hold.h).
 * `more` counts objects that did not fit. */
struct reg_hold {
    _Atomic uint64_t at[HOLDS], more;
} __attribute__((aligned(CACHELINE)));

/* An XRC domain that a process has open: processes of a node that open the same file share the domain. */
struct reg_xrcd {
    uint64_t key;       /* 0: free */
    uint32_t slot, gen; /* slot and generation of the process that has the domain open */
    uint32_t opened;    /* number of times that the process has it open */
};

struct registry {
    uint32_t magic, bytes;
    uint64_t key; /* registry_key of the fabric */
    uint64_t began;
    struct shlock lock; /* protects members and groups */
    atomic_uint slots;  /* upper bound of the slots used so far */
    struct reg_member member[MEMBERS];
    struct reg_hold hold[MEMBERS];
    struct reg_port port[FAB_MAX_PORTS];
    struct reg_group group[GROUPS];
    struct reg_xrcd xrcd[XRCDS]; /* under `lock` */
    struct reg_tally tally[MEMBERS][FAB_MAX_PORTS];
    struct shlock sw_lock;
    struct softib_switch sw;
    struct softib_switch leaf[SOFTIB_LEAVES_MAX]; /* switches below `sw` if there are several (`switches=`) */
    /* Mailboxes for packets from the switch to a port: acknowledgement and barrierReady of each barrier.
     * One packet is enough, because every packet is repeated until it is acknowledged. The last row is for
     * getId. */
    _Atomic uint64_t sw_mail[SOFTIB_SWITCH_PORTS][SOFTIB_SWITCH_BARRIERS + 1][2];
    uint64_t sw_rng;
    struct shlock hub_lock;
    struct softib_hub hub;
    unsigned hub_owner; /* process (shlock_self) that acquired the hub, until the first process plugs in */
    unsigned hub_user[MEMBERS]; /* process that plugged in at each port */
    /* wire=tcp: process of each port of the switch, as node << 16 | slot, and its address. */
    uint32_t sw_host[SOFTIB_SWITCH_PORTS];
    struct sockaddr_in sw_addr[SOFTIB_SWITCH_PORTS];
    _Alignas(CACHELINE) _Atomic uint64_t multicasts; /* packets sent to all lanes so far */
    struct reg_lane lane[GROUPS];                    /* at the end, since most of its pages are never used */
};

struct sh_cqe {
    uint64_t wr_id, stamp;
    uint32_t status, opcode, byte_len, imm, qp_num, src_qp, wc_flags, sq_end;
    uint16_t pkey_index, slid;
    uint8_t sl, path_bits, solicited, is_send;
    uint32_t pad;
};

struct sh_cq {
    struct shlock lock;
    atomic_uint live;
    atomic_uint size; /* entries of the ring, a power of two; the CQ is full at `limit` */
    atomic_uint limit;
    _Atomic uint64_t ring; /* offset in the arena */
    atomic_uint armed;     /* 0: not armed, 1: for any completion, 2: for solicited completions */
    atomic_uint events;    /* events that ibv_get_cq_event has not returned yet */
    uint32_t chan;         /* completion channel, 0: none */
    atomic_uint overrun;
    atomic_uint stamped;                       /* the program reads time stamps */
    _Atomic uint64_t notified;                 /* value of `tail` when the last event was raised */
    _Alignas(CACHELINE) _Atomic uint64_t tail; /* written by producers */
    _Alignas(CACHELINE) _Atomic uint64_t head; /* written by the consumer */
};

struct sh_sge {
    uint64_t addr;
    uint32_t length, lkey;
};

struct sh_rwqe {
    uint64_t wr_id;
    uint32_t nsge, total;
    struct sh_sge sge[];
};

struct sh_rq {
    struct shlock lock;
    atomic_uint live;
    uint32_t size, stride, max_sge; /* slots (a power of two), bytes of a slot */
    uint32_t limit_wr;              /* limit of posted requests */
    _Atomic uint64_t ring;          /* offset in the arena */
    atomic_uint srq_limit;          /* limit of the armed limit event; 0: not armed */
    _Alignas(CACHELINE) _Atomic uint64_t tail;
    _Alignas(CACHELINE) _Atomic uint64_t head;
};

/* XRC state of an SRQ, which senders find by its number. Before a sender compares number and domain, it
 * holds the SRQ (hold.h) or, as a thread of the owner, increments `users`. ibv_destroy_srq clears both and
 * then waits for the holds and for `users`. */
struct sh_xrc {
    _Alignas(CACHELINE) atomic_uint users;
    atomic_uint number, pd, cq;
    _Atomic uint64_t domain; /* 0: not an XRC SRQ */
};

/* A memory region or a memory window, in a cache line. The highest bits of `access` contain the type of a
 * window. */
struct sh_mr {
    _Alignas(CACHELINE) atomic_uint rkey; /* 0: free */
    uint32_t pd, access;
    uint32_t qpn; /* of a window: the QP that bound it */
    uint64_t iova, length, addr;
    uint64_t file_off; /* offset in `fd`; of device memory: offset of its struct gpu_handle in the arena */
    int32_t fd;        /* the owner's descriptor if the region is shared memory; else -1 */
    uint32_t serial;   /* distinguishes regions that used the same entry */
    union {
        atomic_uint moved; /* of a region: pages of 4 KiB that large messages have transferred */
        uint32_t within;   /* of a bound window: index of its region */
    };
};

#define WINDOW_SHIFT 30
#define MR_ON_DEMAND (1u << 6)  /* IBV_ACCESS_ON_DEMAND */
#define MR_GPU       (1u << 18) /* memory of a CUDA device; no IBV_ACCESS flag has this value */

/* The type of the memory window (enum ibv_mw_type), 0 for a region. */
static inline unsigned mr_window_type(const struct sh_mr *s)
{
    return s->access >> WINDOW_SHIFT;
}

struct sh_qp {
    _Alignas(CACHELINE) atomic_uint state; /* enum ibv_qp_state; QP_NONE: no such QP */
    atomic_uint users; /* deliveries in progress by the owner's threads; other processes use holds (hold.h) */
    atomic_uint mig;   /* enum ibv_mig_state */
    atomic_uint qpn, type, pd, port, dest_qpn, dlid, qkey, access, rcq, rq, is_srq, rnr_timer, max_dest_rd,
        mtu;
    atomic_uint roce_v2;            /* 1: the QP accepts packets of RoCE v2, 0: of RoCE v1 */
    atomic_uint alt_port, alt_dlid; /* the alternate path: local port and the peer's LID */
    atomic_uint drained;            /* LAST_WQE_REACHED was reported */
    _Atomic uint64_t domain;        /* domain of an XRC receive QP */
};

#define QP_NONE 0x80000000u

/* Requests to the owner of an object, which the owner's engine thread handles. */
enum sh_event_kind {
    SHEV_QP_ERROR, /* the responder rejected a request: enter the error state, flush, raise an event */
    SHEV_QP_PATH,  /* the peer migrated the QP or failed to */
    SHEV_SRQ_LIMIT,
    SHEV_CQ_OVERRUN,
    SHEV_MR_REUSED, /* large messages use the region repeatedly: see huge.c */
};

struct sh_event {
    uint32_t kind, index, detail;
};

struct sh_piece {
    uint64_t addr, len;
};

/* A large copy between this process and a sender, divided into pieces that both copy: see share.h. The
 * upper halves of `next` and `done` contain the number of the copy, so that a late helper has no effect on
 * the next copy. */
struct sh_copy {
    struct shlock lock; /* held by the sender that uses this entry */
    uint32_t pid, nnear, nfar;
    uint32_t inward; /* 1: the sender reads this process's memory */
    uint64_t total;
    struct sh_piece near[MAX_SGE], far[MAX_SGE]; /* memory of the sender and of this process */
    atomic_uint failed;
    _Alignas(CACHELINE) _Atomic uint64_t next; /* first byte not assigned to a copier */
    _Alignas(CACHELINE) _Atomic uint64_t done; /* bytes that the owner of the arena has copied */
};

struct arena {
    uint32_t magic, slot;
    _Atomic uint64_t top; /* end of the memory in use */
    /* Bits of the entries of `copy` for which help is requested. */
    _Alignas(CACHELINE) atomic_uint copies_open;
    atomic_uint attentive;      /* the engine thread polls without being woken */
    atomic_uint help_requested; /* the doorbell was rung for a copy, which may have ended since */
    atomic_uint copying;        /* threads of this process that copy to or from other processes */
    _Alignas(CACHELINE) struct sh_copy copy[SHARED_COPIES];
    struct shlock ev_lock;     /* protects `event` */
    struct shlock atomic_unit; /* held during an atomic operation on this process's memory */
    _Atomic uint64_t ev_head, ev_tail;
    struct sh_event event[EVENTS];
    atomic_uint chan_events[CHAN_MAX];
    struct sh_qp qp[QP_MAX];
    struct sh_cq cq[CQ_MAX];
    struct sh_rq rq[RQ_TABLE];
    struct sh_xrc xrc[SRQ_MAX];
    struct sh_mr mr[MR_MAX];
    _Alignas(4096) char heap[];
};

_Static_assert(sizeof(struct arena) < ARENA_FIRST * 3 / 4,
               "the first extent contains the tables and some queues");

#endif

/* shm.h: every structure that more than one process accesses. They are in two kinds of memory. Both are
 * memfds, so that the kernel frees them when the last process ends, in whatever way:
 *   the registry, one per machine and fabric: members, port states, counters, multicast groups;
 *   an arena per process: its QPs, CQs, receive queues and memory regions; every process that sends to it maps it.
 * A QP number is (member slot << QP_BITS | index), so that the number alone identifies the process and the
 * QP.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_SHM_H
#define SOFTIB_SHM_H

#include "fabric/fabric.h"
#include "fabric/shlock.h"
#include "softib/barrier.h"

#define SHM_MAGIC     0x50f71b05u
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
#define ARENA_FIRST   (32ull << 20) /* the first part of an arena; each further one doubles what there is */
#define ARENA_EXTENTS 7
#define HOLDS         63

enum counter {
    CNT_TX_PACKETS,
    CNT_TX_BYTES,
    CNT_RX_PACKETS,
    CNT_RX_BYTES,
    CNT_RNR_NAKS,    /* sent: a receive queue was empty */
    CNT_RETRIES,     /* a sender tried again */
    CNT_TX_DROPS,    /* this port was down, or the fault injection ate it */
    CNT_RX_DROPS,    /* packets dropped at the receiver: no receive posted, wrong key, no such QP */
    CNT_BAD_FRAMES,  /* bytes from the network that were no frame of ours */
    CNT_UNREACHABLE, /* an address of a peer that did not lead to it */
    CNT_COUNT
};

struct reg_port {
    atomic_uint up;
    atomic_uint plan;                  /* bit 0: the planned down was done, bit 1: the planned up */
    _Atomic uint64_t tx_free, rx_free; /* when the wire is next idle, ns */
    /* Of an adapter's first port: when its bus is next idle, and whether the adapter was taken out. */
    _Atomic uint64_t bus_free;
    atomic_uint gone;
} __attribute__((aligned(CACHELINE)));

/* Counters of one port as one member saw them: no two processes write the same line. Readers add up. */
struct reg_tally {
    _Atomic uint64_t count[CNT_COUNT];
} __attribute__((aligned(CACHELINE)));

struct reg_member {
    atomic_uint live;
    atomic_uint gen;
    int32_t pid;
    int32_t arena_fd, reg_fd;
    uint64_t born;  /* start time of the process: distinguishes it from a later one with its pid */
    uint64_t nonce; /* part of its socket names, so that no other process can bind them first */
    uint32_t node;
    atomic_uint rung; /* its doorbell was rung and the wake-up is pending */
} __attribute__((aligned(CACHELINE)));

struct reg_group {
    uint8_t gid[16];
    atomic_uint used;
    atomic_uint qpn[GROUP_QPS];
    atomic_uint port[GROUP_QPS]; /* on which that QP is */
    atomic_uint top;             /* all members are below this one */
};

struct reg_packet {
    uint64_t began;                    /* when its first byte left, 0: ports have no rate and no latency */
    uint32_t length, not_qpn, from;    /* from: the sender's port */
    _Alignas(16) char head[LANE_HEAD]; /* struct request */
    char data[LANE_BYTES];
};

/* One member of a group, as the lane sees it. `taken` alone is read without the lock. */
struct reg_taker {
    struct shlock lock; /* held by the thread that delivers to it */
    atomic_uint books;  /* it stands for its port, which the packet enters once for all members there */
    _Atomic uint64_t taken;
    uint64_t due; /* time when packet `taken` has passed its port; 0: not computed */
};

/* The packets of a group, which members take: see local/lane.h. */
struct reg_lane {
    struct shlock lock; /* of senders */
    uint64_t floor;     /* all members have taken those before, at least */
    _Atomic uint64_t
        slowest; /* rate of the slowest port that has members, bytes in a second; 0: none has a rate */
    _Atomic uint64_t free_at;                  /* when that port is next idle */
    _Alignas(CACHELINE) _Atomic uint64_t tail; /* packets ever sent */
    _Alignas(
        CACHELINE) _Atomic uint64_t asleep[LANE_WORDS]; /* members whose program waits for an event, or may */
    atomic_uint waking;                                 /* the member woken last wakes the next one */
    _Atomic uint64_t dozing[LANE_WORDS];                /* those that fetched an event of another CQ since */
    _Alignas(CACHELINE) struct reg_taker taker[GROUP_QPS];
    _Alignas(CACHELINE) struct reg_packet packet[LANE_PACKETS];
};

/* The objects of other members that a member uses just now, as owner << 32 | index, 0: free (hold.h). The last word counts
 * holds that found no room. */
struct reg_hold {
    _Atomic uint64_t at[HOLDS], more;
} __attribute__((aligned(CACHELINE)));

/* An XRC domain that a process has open: processes of a node that open the same file share the domain. */
struct reg_xrcd {
    uint64_t key; /* 0: free */
    uint32_t slot, gen, opened;
};

struct registry {
    uint32_t magic, bytes;
    uint64_t fabric_id, began;
    struct shlock lock; /* members and groups */
    atomic_uint slots;  /* all members ever are below this one */
    struct reg_member member[MEMBERS];
    struct reg_hold hold[MEMBERS];
    struct reg_port port[FAB_MAX_PORTS];
    struct reg_group group[GROUPS];
    struct reg_xrcd xrcd[XRCDS]; /* under `lock` */
    struct reg_tally tally[MEMBERS][FAB_MAX_PORTS];
    struct shlock sw_lock;
    struct softib_switch sw;
    struct softib_switch leaf[SOFTIB_LEAVES_MAX]; /* below it, when there are several (`switches=`) */
    /* What the switch sent to a port: acknowledgements and barrierReady of each barrier, one deep, because
     * every packet is repeated until it is acknowledged. The extra row is for getId. */
    _Atomic uint64_t sw_mail[SOFTIB_SWITCH_PORTS][SOFTIB_SWITCH_BARRIERS + 1][2];
    uint64_t sw_rng;
    struct shlock hub_lock;
    struct softib_hub hub;
    uint32_t hub_taker; /* the slot of the process that took it, until the first one plugs in */
    /* wire=tcp: which process has which port of the switch, as node << 16 | slot, and where it is. */
    uint32_t sw_host[SOFTIB_SWITCH_PORTS];
    struct sockaddr_in sw_addr[SOFTIB_SWITCH_PORTS];
    _Alignas(CACHELINE) _Atomic uint64_t multicasts; /* packets in all lanes, ever */
    struct reg_lane lane[GROUPS];                    /* last: most of it is never touched */
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
    atomic_uint size; /* power of two entries in the ring; the CQ is full at `limit` */
    atomic_uint limit;
    _Atomic uint64_t ring; /* offset in the arena */
    atomic_uint armed;     /* 0, 1 any, 2 solicited */
    atomic_uint events;    /* not yet fetched with ibv_get_cq_event */
    uint32_t chan;         /* completion channel, 0: none */
    atomic_uint overrun;
    atomic_uint stamped;                       /* the program reads time stamps */
    _Atomic uint64_t notified;                 /* completions ever pushed when the last event was raised */
    _Alignas(CACHELINE) _Atomic uint64_t tail; /* producers */
    _Alignas(CACHELINE) _Atomic uint64_t head; /* the consumer */
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
    uint32_t size, stride, max_sge; /* size is a power of two; posting stops at limit_wr */
    uint32_t limit_wr;
    _Atomic uint64_t ring;
    atomic_uint srq_limit; /* armed limit event, 0: none */
    _Alignas(CACHELINE) _Atomic uint64_t tail;
    _Alignas(CACHELINE) _Atomic uint64_t head;
};

/* The XRC side of an SRQ: senders find the SRQ by its number. A sender holds it, or counts itself in `users` if it is a thread of
 * the owner, before it compares number and domain; ibv_destroy_srq clears both and then waits for holds and `users`. */
struct sh_xrc {
    _Alignas(CACHELINE) atomic_uint users;
    atomic_uint number, pd, cq;
    _Atomic uint64_t domain; /* 0: not an XRC SRQ */
};

/* A memory region, or a memory window: the highest bits of `access` hold the window's type. A cache line each. */
struct sh_mr {
    _Alignas(CACHELINE) atomic_uint rkey; /* 0: free */
    uint32_t pd, access;
    union {
        atomic_uint windows; /* of a region: bound to it */
        uint32_t qpn;        /* of a window: the QP that bound it */
    };
    uint64_t iova, length, addr;
    uint64_t file_off; /* in that memory; of device memory: of its struct gpu_handle in the arena */
    int32_t fd;        /* the owner's descriptor of the memory, when it is shared memory; else -1 */
    uint32_t serial;
    union {
        atomic_uint moved; /* of a region: by large messages, in pages of 4 KiB */
        uint32_t within;   /* of a window: the region that it is bound to, 0: none */
    };
};

#define WINDOW_SHIFT 30
#define MR_ON_DEMAND (1u << 6)  /* IBV_ACCESS_ON_DEMAND */
#define MR_GPU       (1u << 18) /* none of IBV_ACCESS: memory of a CUDA device */

/* The type of the memory window (enum ibv_mw_type), 0 for a region. */
static inline unsigned mr_window_type(const struct sh_mr *s)
{
    return s->access >> WINDOW_SHIFT;
}

struct sh_qp {
    _Alignas(CACHELINE) atomic_uint state; /* enum ibv_qp_state; QP_NONE: no such QP */
    atomic_uint users; /* deliveries by the owner's threads; those of other processes are holds (hold.h) */
    atomic_uint mig;   /* enum ibv_mig_state */
    atomic_uint qpn, type, pd, port, dest_qpn, dlid, qkey, access, rcq, rq, is_srq, rnr_timer, max_dest_rd,
        mtu;
    atomic_uint roce_v2;            /* which packets it takes, on a port of RoCE */
    atomic_uint alt_port, alt_dlid; /* the alternate path: our port and the peer's LID */
    atomic_uint drained;            /* LAST_WQE_REACHED was reported */
    _Atomic uint64_t domain;        /* of an XRC receive QP */
};

#define QP_NONE 0x80000000u

/* What a peer wants the owner of an object to do; the owner's engine thread reads these. */
enum sh_event_kind {
    SHEV_QP_ERROR, /* the responder rejected a request: enter the error state, flush, raise an event */
    SHEV_QP_PATH,  /* the peer migrated the QP, or tried */
    SHEV_SRQ_LIMIT,
    SHEV_CQ_OVERRUN,
    SHEV_MR_REUSED, /* a region moves large messages again and again: see huge.c */
};

struct sh_event {
    uint32_t kind, index, detail;
};

struct sh_piece {
    uint64_t addr, len;
};

/* A large copy between this process and a sender, split into pieces that both take: see share.h. The upper
 * half of `next` and `done` is the number of the copy, so that a late helper changes nothing. */
struct sh_copy {
    struct shlock lock; /* the sender that uses this entry */
    uint32_t pid, nnear, nfar, inward;
    uint64_t total;
    struct sh_piece near[MAX_SGE], far[MAX_SGE]; /* the sender's memory, and ours */
    atomic_uint failed;
    _Alignas(CACHELINE) _Atomic uint64_t next; /* first byte not assigned to a copier */
    _Alignas(CACHELINE) _Atomic uint64_t done; /* bytes this process has copied */
};

struct arena {
    uint32_t magic, slot;
    _Atomic uint64_t top;                        /* nothing beyond is in use */
    _Alignas(CACHELINE) atomic_uint copies_open; /* which entries of `copy` want help */
    atomic_uint attentive;                       /* our engine thread polls without being woken */
    atomic_uint help_requested;                  /* the ring is for a copy, perhaps over by now */
    atomic_uint copying;                         /* threads of ours that copy to or from other processes */
    _Alignas(CACHELINE) struct sh_copy copy[SHARED_COPIES];
    struct shlock ev_lock, atomic_unit;
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
               "the tables and some queues are in the first part");

#endif

/* hca.h: the verbs objects of this process. Each has three parts: the public structure of rdma-core, to
 * which the program has a pointer, private data of the process, and a pointer to a structure in the arena,
 * which peers access.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTIB_HCA_H
#define SOFTIB_HCA_H

#include "engine/engine.h"
#include "memory/region.h"
#include <infiniband/verbs.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define MAX_INLINE  1024u
#define MAX_WR      32768u
#define MAX_CQE     (1u << 20)
#define MAX_RD_ATOM 16
#define MAX_MSG     (1u << 30)
#define GRH_BYTES   40u
#define DM_BYTES    (1u << 20) /* limit of device memory of a process */
#define DM_MAX      1024u

struct ah;
struct wire;

struct device {
    struct ibv_device ibv;
    const void *ops; /* vendor libraries read the table of their driver at this offset */
    void *spare[16];
    uint32_t hca;
    bool wires; /* the device of a barrier network, not an HCA: no ports, queues or memory */
};

struct ctx {
    uint32_t hca;
    bool wires;        /* device of a barrier network, as in struct device */
    uint32_t exporter; /* slot of the process whose context was imported; own slot: not imported */
    struct lock ev_lock;
    struct async_node *ev_list;
    struct ctx *next;
    struct verbs_context v;
};

struct pd {
    struct ibv_pd ibv;
    struct pd *parent; /* PD of a parent domain; NULL: not a parent domain */
    atomic_int refs;
    struct pd *next; /* in the list of all PDs of this process */
};

struct mr {
    struct ibv_mr ibv;
    struct sh_mr *sh;
    uint32_t access;
    struct mr_import *import;  /* of a region imported from another process (import.c); else NULL */
    atomic_int *device_memory; /* counter of the device memory's regions (dm.c); NULL: other memory */
    void *map;                 /* mapping of a dma-buf; NULL: ordinary memory */
    size_t map_length;
    /* Offset of the region's struct gpu_handle in the arena if the memory is in a CUDA device; else 0. */
    uint64_t gpu_handle;
};

/* An XRC domain. Its key is equal in all processes that opened the same file. */
struct xrcd {
    struct ibv_xrcd ibv;
    uint64_t key;
    atomic_int refs;
};

struct channel {
    struct ibv_comp_channel ibv;
    uint32_t num;
    struct lock lock;
    struct cq *cqs;
    struct cq *turn; /* the CQ of the last event, after which the next search begins */
};

struct cq {
    struct ibv_cq_ex ex; /* its first members are those of struct ibv_cq */
    struct sh_cq *sh;
    uint32_t idx;
    struct lock poll_lock;
    struct cq *next;    /* next CQ on the same channel */
    uint32_t delivered; /* events that the program has fetched, including acknowledged ones */
    uint32_t async_delivered;
    uint64_t cursor; /* ring index of extended polling */
    struct sh_cqe now;
    atomic_int refs;
    bool is_ex;
};

struct srq {
    struct ibv_srq ibv;
    struct sh_rq *sh;
    uint32_t idx;
    uint32_t max_sge;
    uint32_t async_delivered;
    atomic_int refs;
    struct sh_xrc *xrc; /* of an XRC SRQ, with its domain and its own CQ; else NULL */
    struct xrcd *xrcd;
    struct cq *cq;
};

/* Destination and route of packets: of an address handle, or of a connected QP. */
struct path {
    uint16_t dlid;
    uint8_t sl, src_path_bits, is_global, port_num, hop_limit, traffic_class;
    uint8_t sgid_index, gid_type; /* enum gid_type */
    uint32_t flow_label;
    union ibv_gid dgid;
};

struct wqe {
    uint64_t wr_id, raddr, compare, swap;
    uint64_t due;    /* time at which the request arrives; 0: ports have no rate and no latency */
    uint64_t ack_at; /* time at which the acknowledgement arrives */
    uint32_t length, rkey, imm, seq;
    uint32_t remote_qpn, remote_qkey, srqn;
    uint8_t opcode, flags, nsge, is_inline;
    uint8_t executed;
    uint8_t settled;      /* a request for a memory window was executed on the local table */
    uint32_t got;         /* bytes of an RDMA READ's answer received so far */
    struct path path;     /* path of a UD request */
    struct ibv_sge sge[]; /* gather list or inline data */
};

struct qp {
    struct ibv_qp_ex ex;
    struct sh_qp *sh;
    uint32_t idx;
    struct lock lock; /* protects the send side */
    const struct wire *wire;
    bool has_ex, sig_all, no_self_mcast;
    bool opened;    /* a handle of ibv_open_qp, which has only a number and a domain */
    bool alternate; /* an alternate path is loaded, and the QP has not migrated to it: see migrate.c */
    struct ibv_qp_cap cap;
    struct ibv_qp_attr attr; /* attributes as set by ibv_modify_qp */
    uint64_t send_ops;
    uint32_t linear; /* linear number of the local port */
    struct path path;
    uint32_t async_delivered;
    /* Runs the send queue at a later time. While its `busy` is not 0, the QP is not freed. */
    struct task task;

    char *sq;
    size_t stride;
    uint64_t tail;          /* next free slot; requests from `posted` to `tail` are being built */
    uint64_t posted;        /* number of posted requests */
    uint64_t next;          /* next request to execute, <= posted */
    uint64_t done;          /* next request to complete, <= next */
    _Atomic uint64_t freed; /* requests whose completions were polled */
    uint64_t wait_until;    /* end of the RNR or retry timer */
    uint32_t rnr_left, retry_left;
    struct peer *peer;
    struct xrcd *xrcd; /* XRC domain of an XRC receive QP */

    enum ibv_qp_state posting_in; /* state of the QP when posting began */
    int build_err;                /* first error between ibv_wr_start and ibv_wr_complete */
    struct wqe *build_wqe;        /* request that the ibv_wr_* calls are building */
    _Atomic(void *) builder; /* thread_unique_mark of the thread between ibv_wr_start and ibv_wr_complete */

    uint64_t rng;
    struct held_datagram *held; /* datagram that the fault injection delays */
    struct remote *remote;      /* state of a QP that is connected to another machine: see net/conn.h */
};

struct ah {
    struct ibv_ah ibv;
    struct path path;
};

static inline struct ctx *ctx_from_ibv(struct ibv_context *c)
{
    return CONTAINER_OF(c, struct ctx, v.context);
}

/* True if the adapter has the feature: see without= in fabric.h. */
static inline bool ctx_has_feature(const struct ctx *c, enum fab_feature what)
{
    return !fabric_lacks_feature(&proc.fab, fabric_port_index(&proc.fab, proc.fab.node, c->hca, 1), what);
}

static inline struct qp *qp_from_ibv(struct ibv_qp *q)
{
    return (struct qp *)q;
}

static inline struct ibv_qp *qp_to_ibv(struct qp *q)
{
    return &q->ex.qp_base;
}

/* True for transports with acknowledgements and retries: RC and both ends of XRC. */
static inline bool type_is_reliable(unsigned type)
{
    return type != IBV_QPT_UC && type != IBV_QPT_UD;
}

static inline bool qp_is_reliable(struct qp *q)
{
    return type_is_reliable(qp_to_ibv(q)->qp_type);
}

/* The QP type that the other end must have. */
static inline unsigned type_of_peer(unsigned type)
{
    return type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : type == IBV_QPT_XRC_RECV ? IBV_QPT_XRC_SEND : type;
}

/* True if the QP has a receive queue of its own: XRC QPs have none, other QPs may use an SRQ instead. */
static inline bool qp_has_receive_queue(struct qp *q)
{
    return !qp_to_ibv(q)->srq && qp_to_ibv(q)->qp_type != IBV_QPT_XRC_SEND &&
           qp_to_ibv(q)->qp_type != IBV_QPT_XRC_RECV;
}

static inline struct cq *cq_from_ibv(struct ibv_cq *c)
{
    return (struct cq *)c;
}

static inline uint32_t pd_key(struct ibv_pd *p)
{
    return p->handle;
}

static inline struct wqe *sq_get_wqe(struct qp *q, uint64_t i)
{
    return (struct wqe *)(q->sq + (i % q->cap.max_send_wr) * q->stride);
}

/* defined in cq_ring.c */
void cq_push(struct peer *owner, uint32_t cq, const struct sh_cqe *e);
/* Raises an event for completions whose event was suppressed, if the program does not poll. */
void cq_notify_unreported(struct peer *owner, struct sh_cq *s);
static inline struct sh_cqe *cq_ring(struct peer *owner, const struct sh_cq *s)
{
    return peer_arena_address(owner, atomic_load_explicit(&s->ring, memory_order_relaxed));
}

/* defined in rq_ring.c */
struct rwqe {
    uint64_t wr_id;
    uint32_t nsge, total;
    struct sh_sge sge[MAX_SGE];
};
bool rq_make(struct sh_rq *rq, uint32_t max_wr, uint32_t max_sge);
void rq_destroy(struct sh_rq *rq);
int rq_resize(struct sh_rq *rq, uint32_t max_wr); /* posted requests keep their order */
int rq_post(struct sh_rq *rq, const struct ibv_recv_wr *wr);
bool rq_pop(struct peer *owner, uint32_t rq, bool is_srq, struct rwqe *out);

/* An address that is unique to the calling thread, to mark the owner of a lock. */
static inline void *thread_unique_mark(void)
{
    static _Thread_local char mark;
    return &mark;
}

/* defined in qp_table.c */
/* Returns an index, 0: none is free; *nth: number of QPs created so far. */
uint32_t qp_number_allocate(uint32_t *nth);
void qp_number_free(uint32_t idx);
void qp_table_add(struct qp *q);
void qp_table_remove(struct qp *q);
struct qp *qp_lookup(uint32_t qpn); /* with a reference, which qp_release drops */
void qp_for_each(void (*fn)(struct qp *q, uint32_t arg), uint32_t arg); /* fn has a reference to each QP */
/* Waits until each request in execution has ended or will check its memory keys again. */
void qp_wait_lock_holders(void);
extern _Atomic(struct qp *) qp_table[QP_MAX];

/* Finds a QP without taking a reference. For the thread that polls the QP's completions: a QP exists as long
 * as it has completions. */
static inline struct qp *qp_find_unreferenced(uint32_t qpn)
{
    struct qp *q = atomic_load_explicit(&qp_table[qpn & (QP_MAX - 1)], memory_order_acquire);
    return q && q->ex.qp_base.qp_num == qpn ? q : NULL;
}

static inline void qp_release(struct qp *q)
{
    atomic_fetch_sub(&q->task.busy, 1);
}

/* defined in qp_error.c; the caller holds the locks unless stated otherwise */
/* Waits for messages that are being delivered. The state of the QP admits no new ones. Needs no lock. */
void qp_wait_deliveries(const struct qp *q);
void qp_to_error(struct qp *q);
void qp_handle_responder_error(struct qp *q, enum ibv_event_type why); /* acquires the locks */
void qp_report_drained(struct qp *q);
void qp_flush_receives(struct qp *q); /* needs no lock */

/* async.c; `delivered` counts the events of one object that the program fetched; NULL for port events. */
void async_report(struct ctx *c, const struct ibv_async_event *e, uint32_t *delivered);
void qp_report(struct qp *q, enum ibv_event_type type);
bool async_next(struct ctx *c, struct ibv_async_event *e);
void async_purge(struct ctx *c, const uint32_t *delivered);
void async_wait(uint32_t *completed, uint32_t *delivered, pthread_mutex_t *m, pthread_cond_t *cond);

/* defined in path.c */
bool path_attr_legal(const struct ibv_ah_attr *a, uint32_t hca);
/* Computes the path of legal attributes. Its LID is 0 if they designate no port that can be reached. */
void path_from_attr(const struct ibv_ah_attr *a, uint32_t hca, struct path *p);

#endif

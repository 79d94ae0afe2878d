/*
 * The verbs objects of this process. Each has a public face (the structure of rdma-core that the program
 * holds), what is private to the process, and a pointer to its half in the arena that peers work on.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SOFTIB_HCA_H
#define SOFTIB_HCA_H

#include "hold.h"
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

struct ah;

struct device {
    struct ibv_device ibv;
    const void *ops; /* where vendor libraries look for their own driver's table */
    void *spare[16];
    uint32_t hca;
};

struct ctx {
    uint32_t hca;
    struct lock ev_lock;
    struct async_node *ev_list;
    struct ctx *next;
    struct verbs_context v;
};

struct pd {
    struct ibv_pd ibv;
    struct pd *parent; /* of a parent domain */
    atomic_int refs;
};

struct mr {
    struct ibv_mr ibv;
    struct sh_mr *sh;
    uint32_t access;
};

struct channel {
    struct ibv_comp_channel ibv;
    uint32_t num;
    struct lock lock;
    struct cq *cqs;
    struct cq *turn; /* fairness: the last one that had an event */
};

struct cq {
    struct ibv_cq_ex ex; /* begins as struct ibv_cq does */
    struct sh_cq *sh;
    uint32_t idx;
    struct lock poll_lock;
    struct cq *next;    /* on the same channel */
    uint32_t delivered; /* events given to the program, to be acknowledged */
    uint32_t async_delivered;
    uint64_t cursor; /* extended polling */
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
};

/* Where a packet goes: an address handle, or the path of a connected QP. */
struct path {
    uint16_t dlid;
    uint8_t sl, src_path_bits, is_global, port_num, hop_limit, traffic_class;
    uint32_t flow_label;
    union ibv_gid dgid;
};

struct wqe {
    uint64_t wr_id, raddr, compare, swap;
    uint64_t due;    /* when the wire has carried it, 0: no model */
    uint64_t ack_at; /* when the acknowledgement is back */
    uint32_t length, rkey, imm, seq;
    uint32_t remote_qpn, remote_qkey;
    uint8_t opcode, flags, nsge, is_inline;
    uint8_t executed;
    uint32_t got;         /* of an RDMA READ's answer */
    struct path path;     /* UD */
    struct ibv_sge sge[]; /* or the inline bytes */
};

struct qp {
    struct ibv_qp_ex ex;
    struct sh_qp *sh;
    uint32_t idx;
    struct lock lock; /* the send side */
    bool has_ex, sig_all, no_self_mcast;
    struct ibv_qp_cap cap;
    struct ibv_qp_attr attr; /* as last modified */
    uint64_t send_ops;
    uint32_t linear; /* our port, as the fabric numbers them */
    struct path path;
    uint32_t async_delivered;
    atomic_int busy; /* the engine is working on it */

    char *sq;
    size_t stride;
    uint64_t posted, next, done; /* posted >= next (to execute) >= done (to complete) */
    _Atomic uint64_t freed;      /* up to here completions were polled */
    uint64_t wait_until;         /* RNR or retry timer */
    uint32_t rnr_left, retry_left;
    struct peer *peer;

    atomic_bool deferred;
    uint64_t due;
    struct qp *defer_next;

    struct ibv_send_wr build; /* the ibv_wr_* interface */
    uint64_t build_from;
    int build_err;
    struct wqe *build_wqe;
    _Atomic(void *) builder; /* the thread between ibv_wr_start and ibv_wr_complete */

    uint64_t rng;
    struct held_datagram *held; /* a datagram the fault injection delays */
    struct remote *remote;      /* wire (b): the other side of a connected QP */
};

struct ah {
    struct ibv_ah ibv;
    struct path path;
};

static inline struct ctx *ctx_of(struct ibv_context *c)
{
    return CONTAINER_OF(c, struct ctx, v.context);
}

static inline struct qp *qp_of(struct ibv_qp *q)
{
    return (struct qp *)q;
}

static inline struct ibv_qp *qp_ibv(struct qp *q)
{
    return &q->ex.qp_base;
}

static inline struct cq *cq_of(struct ibv_cq *c)
{
    return (struct cq *)c;
}

static inline uint32_t pd_key(struct ibv_pd *p)
{
    return p->handle;
}

static inline struct wqe *sq_at(struct qp *q, uint64_t i)
{
    return (struct wqe *)(q->sq + (i % q->cap.max_send_wr) * q->stride);
}

/* cq.c */
void cq_push(struct peer *owner, uint32_t cq, const struct sh_cqe *e);
void cq_purge(struct cq *cq, uint32_t qpn, struct srq *srq);
int cq_poll(struct ibv_cq *ibv, int n, struct ibv_wc *wc);
int cq_arm(struct ibv_cq *ibv, int solicited_only);
struct cq *cq_make(struct ibv_context *c, uint32_t cqe, void *user, struct ibv_comp_channel *ch);
struct ibv_cq_ex *cq_create_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *a);
void cq_note_overrun(uint32_t idx);

/* rq.c */
bool rq_make(struct sh_rq *rq, uint32_t max_wr, uint32_t max_sge);
void rq_destroy(struct sh_rq *rq);
int rq_post(struct sh_rq *rq, const struct ibv_recv_wr *wr);
struct rwqe {
    uint64_t wr_id;
    uint32_t nsge, total;
    struct sh_sge sge[MAX_SGE];
};
bool rq_pop(struct peer *owner, uint32_t rq, bool is_srq, struct rwqe *out);
int srq_post(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void srq_limit_event(uint32_t idx);

/* huge.c: asks malloc to take large blocks from the heap, where they lie in whole huge pages: a block that it
 * maps by itself mostly holds none. The program's buffers come after this. */
void huge_heap(void);
/* The region is in one private mapping [map_start, map_end). */
void huge_pages(uint64_t addr, uint64_t len, uint64_t map_start, uint64_t map_end);

/* mr.c */
struct rseg { /* a piece of some process's memory */
    uint64_t addr;
    uint64_t len;
    char *map; /* where we can reach it directly; NULL: only by cross-memory copy */
    struct sh_mr *mr;
    _Atomic uint64_t *hold; /* NULL: our own */
    uint32_t key;
};
/* Finds [addr, addr+len) of a region and holds it; false when key, bounds, domain or rights do not fit. */
bool mr_hold(struct peer *owner, uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need,
             struct rseg *out);
/* The same for our own lkeys; valid while the QP's lock is held. */
bool mr_local(uint32_t key, uint32_t pd, uint64_t addr, uint64_t len, uint32_t need, char **at);
static inline void mr_release(struct rseg *s)
{
    if (s->hold)
        hold_drop(s->hold);
}

/* An address that is this thread's alone. */
static inline void *thread_mark(void)
{
    static _Thread_local char mark;
    return &mark;
}

/* qp.c */
extern _Atomic(struct qp *) qp_table[QP_MAX];
void qp_fail(struct qp *q, enum ibv_event_type why, bool report);
void qp_to_error(struct qp *q); /* lock held */
void sq_flush(struct qp *q);
int qp_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_qp *qp_create_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *a);
void qp_bind_wr_ops(struct qp *q);
void qp_fence(void);                /* every request under way has looked at its keys again, or ended */
struct qp *qp_lookup(uint32_t qpn); /* marked busy; drop with atomic_fetch_sub */
bool mcast_attached(uint32_t qpn);
bool qp_transition_legal(enum ibv_qp_type t, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/* send.c, requester.c */
int qp_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
void sq_progress(struct qp *q, uint64_t now); /* lock held */
void sq_run(struct qp *q);                    /* takes the locks */
void sq_lock_both(struct qp *q);
void sq_unlock_both(struct qp *q);
void sq_complete(struct qp *q, struct wqe *w, uint64_t index, enum ibv_wc_status st);
void sq_error(struct qp *q, enum ibv_wc_status st); /* of the oldest incomplete request; lock held */
void sq_reserve(struct qp *q, struct wqe *w);
uint64_t rnr_timer_ns(unsigned code);
uint64_t ack_timeout_ns(unsigned code);

/* device.c, event.c */
extern struct ctx *contexts;
extern struct lock contexts_lock;
/* `delivered` counts the events of one object that the program fetched; NULL for port events. */
void async_report(struct ctx *c, const struct ibv_async_event *e, uint32_t *delivered);
void async_purge(struct ctx *c, const uint32_t *delivered);
void async_wait(uint32_t *completed, uint32_t *delivered, pthread_mutex_t *m, pthread_cond_t *cond);
void port_changed(uint32_t linear, bool up);
struct ibv_pd *pd_parent(struct ibv_context *c, struct ibv_parent_domain_init_attr *a);
struct ibv_td *td_alloc(struct ibv_context *c, struct ibv_td_init_attr *a);
int td_dealloc(struct ibv_td *td);
uint16_t path_resolve(const struct path *p);
void path_from_attr(const struct ibv_ah_attr *a, struct path *p);

#endif

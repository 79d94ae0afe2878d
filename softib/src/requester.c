/*
 * The sender's half on wire (a): runs the send queue in order, each request from the check of its buffers to
 * the completion, in the thread that posted it when nothing stands in the way, and later in the engine thread
 * or a poller when something does (no receive posted, peer not there, the wire's rate or latency).
 * SPDX-License-Identifier: Apache-2.0
 */
#include "requester.h"
#include "copy.h"
#include "engine.h"
#include "wire.h"

uint64_t rnr_timer_ns(unsigned code)
{
    /* Table 45 of the InfiniBand architecture, in units of 10 us. */
    static const uint32_t t[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                   48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                   2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return t[code & 31] * 10 * NS_US;
}

uint64_t ack_timeout_ns(unsigned code)
{
    return code ? 4096ull << (code & 31) : 0;
}

/* Our own buffers as iovecs; -1 when a key does not fit. */
int sq_gather(struct qp *q, struct wqe *w, uint32_t need, struct iovec *iov)
{
    int n = 0;
    if (w->is_inline) {
        iov[0] = (struct iovec){w->sge, w->length};
        return 1;
    }
    for (int i = 0; i < w->nsge; i++) {
        char *at;
        if (!w->sge[i].length)
            continue;
        if (UNLIKELY(!mr_local(w->sge[i].lkey, pd_key(qp_ibv(q)->pd), w->sge[i].addr, w->sge[i].length, need,
                               &at)))
            return -1;
        iov[n++] = (struct iovec){at, w->sge[i].length};
    }
    return n;
}

void sq_request(struct qp *q, const struct wqe *w, struct request *r)
{
    r->opcode = w->opcode;
    r->solicited = w->flags & IBV_SEND_SOLICITED;
    r->has_grh = q->path.is_global;
    r->type = (uint8_t)qp_ibv(q)->qp_type;
    r->sl = q->path.sl;
    r->length = w->length;
    r->imm = w->imm;
    r->rkey = w->rkey;
    r->raddr = w->raddr;
    r->src_qpn = qp_ibv(q)->qp_num;
    r->slid = (uint16_t)(fabric_lid(&proc.fab, q->linear) + q->path.src_path_bits);
    r->dlid = q->path.dlid;
}

static enum answer do_store(struct qp *q, struct target *t, const struct request *r, struct wqe *w,
                            uint32_t *arg)
{
    struct iovec iov[MAX_SGE];
    struct landing l;
    int n = sq_gather(q, w, 0, iov);
    if (UNLIKELY(n < 0))
        return ANS_LOCAL;
    enum answer a = target_land(t, r, &l, arg);
    if (UNLIKELY(a != ANS_OK))
        return a;
    return target_finish(t, r, &l, copy_out(t->owner, l.seg, l.nseg, iov, n, w->length));
}

static enum answer do_read(struct qp *q, struct target *t, const struct request *r, struct wqe *w)
{
    struct iovec iov[MAX_SGE];
    struct rseg s;
    int n = sq_gather(q, w, IBV_ACCESS_LOCAL_WRITE, iov);
    if (UNLIKELY(n < 0))
        return ANS_LOCAL;
    enum answer a = target_source(t, r, w->length, IBV_ACCESS_REMOTE_READ, &s);
    if (a != ANS_OK || !w->length)
        return a;
    bool ok = copy_in(t->owner, &s, 1, iov, n, w->length);
    mr_release(&s);
    if (!ok)
        target_fail(t, IBV_EVENT_QP_FATAL);
    return ok ? ANS_OK : ANS_OP;
}

static enum answer do_atomic(struct qp *q, struct target *t, const struct request *r, struct wqe *w)
{
    struct iovec iov[MAX_SGE];
    struct rseg s;
    uint64_t old;
    int n = sq_gather(q, w, IBV_ACCESS_LOCAL_WRITE, iov);
    if (UNLIKELY(n != 1))
        return ANS_LOCAL;
    enum answer a = target_source(t, r, 8, IBV_ACCESS_REMOTE_ATOMIC, &s);
    if (a != ANS_OK)
        return a;
    bool ok = copy_atomic(t->owner, &s, w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP, w->compare, w->swap, &old);
    mr_release(&s);
    if (!ok)
        target_fail(t, IBV_EVENT_QP_FATAL);
    else
        copy_last_last(iov[0].iov_base, (char *)&old, 8);
    return ok ? ANS_OK : ANS_OP;
}

static void count_traffic(struct qp *q, struct wqe *w, uint32_t to, enum answer a)
{
    uint32_t mtu = (uint32_t)q->attr.path_mtu, packets = packets_of(w->length, mtu);
    uint32_t from = q->linear;
    if (a == ANS_RNR)
        port_count(to, CNT_RNR_NAKS, 1);
    if (w->opcode == IBV_WR_RDMA_READ) { /* the data flows the other way */
        from = to;
        to = q->linear;
    }
    port_count(from, CNT_TX_PACKETS, packets);
    port_count(from, CNT_TX_BYTES, w->length);
    port_count(to, CNT_RX_PACKETS, packets);
    port_count(to, CNT_RX_BYTES, w->length);
}

static struct peer *partner(struct qp *q, int *why)
{
    *why = 0;
    if (q->peer && LIKELY(!atomic_load_explicit(&q->peer->dead, memory_order_relaxed)))
        return q->peer;
    peer_put(q->peer);
    q->peer = peer_find(q->attr.dest_qp_num >> QP_BITS, why);
    return q->peer;
}

static enum answer execute(struct qp *q, struct wqe *w, uint32_t *arg)
{
    struct request r;
    struct target t;
    int why;
    struct peer *p = partner(q, &why);
    uint32_t to = (uint32_t)(q->path.dlid >> proc.fab.lmc) - 1;
    if (!p || UNLIKELY(!port_up(q->linear) || to >= proc.fab.nports || !port_up(to))) {
        port_count(q->linear, CNT_TX_DROPS, 1);
        return why ? ANS_REFUSED : ANS_DROP;
    }
    sq_request(q, w, &r);
    enum answer a = target_find(p, q->attr.dest_qp_num, &r, &t);
    if (a != ANS_OK) {
        port_count(to, CNT_RX_DROPS, 1);
        return a;
    }
    if (w->opcode == IBV_WR_RDMA_READ)
        a = do_read(q, &t, &r, w);
    else if (w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        a = do_atomic(q, &t, &r, w);
    else
        a = do_store(q, &t, &r, w, arg);
    target_release(&t);
    count_traffic(q, w, to, a);
    /* A copy that failed because the process died is silence, not a refusal; one that the system forbids is
     * nobody's fault but its own. */
    if (UNLIKELY(a == ANS_OP) && atomic_load(&p->dead))
        return ANS_DROP;
    return UNLIKELY(a == ANS_OP) && atomic_load(&p->refused) ? ANS_REFUSED : a;
}

static enum ibv_wc_opcode wc_opcode(uint8_t opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    default:
        return IBV_WC_SEND;
    }
}

void sq_complete(struct qp *q, struct wqe *w, uint64_t index, enum ibv_wc_status st)
{
    if (st == IBV_WC_SUCCESS && !(w->flags & IBV_SEND_SIGNALED) && !q->sig_all)
        return;
    struct cq *cq = cq_of(qp_ibv(q)->send_cq);
    struct sh_cqe e = {
        .wr_id = w->wr_id,
        .status = st,
        .opcode = wc_opcode(w->opcode),
        .byte_len = w->length,
        .qp_num = qp_ibv(q)->qp_num,
        .sq_end = (uint32_t)(index + 1),
        .is_send = 1,
    };
    if (atomic_load_explicit(&cq->sh->stamped, memory_order_relaxed))
        e.stamp = now_ns();
    cq_push(proc.self, cq->idx, &e);
}

/* Every request after the failed one is flushed, signalled or not. */
void sq_flush(struct qp *q)
{
    for (; q->done != q->posted; q->done++)
        sq_complete(q, sq_at(q, q->done), q->done, IBV_WC_WR_FLUSH_ERR);
    q->next = q->done;
    q->wait_until = 0;
}

void sq_error(struct qp *q, enum ibv_wc_status st)
{
    sq_complete(q, sq_at(q, q->done), q->done, st);
    q->done++;
    if (qp_ibv(q)->qp_type == IBV_QPT_RC) {
        qp_to_error(q);
        return;
    }
    q->attr.qp_state = qp_ibv(q)->state = IBV_QPS_SQE;
    atomic_store(&q->sh->state, IBV_QPS_SQE);
    sq_flush(q);
}

static enum ibv_wc_status refused(enum answer a)
{
    switch (a) {
    case ANS_INVALID:
        return IBV_WC_REM_INV_REQ_ERR;
    case ANS_ACCESS:
        return IBV_WC_REM_ACCESS_ERR;
    case ANS_OP:
        return IBV_WC_REM_OP_ERR;
    case ANS_LENGTH:
        return IBV_WC_LOC_LEN_ERR;
    case ANS_REFUSED:
        return IBV_WC_LOC_QP_OP_ERR;
    default:
        return IBV_WC_LOC_PROT_ERR;
    }
}

/* RNR and silence of an RC peer: wait and try again, or give up. Returns the status to fail with, or SUCCESS.
 */
enum ibv_wc_status sq_retry(struct qp *q, enum answer a, uint32_t arg, uint64_t now)
{
    if (a == ANS_RNR) {
        if (q->attr.rnr_retry != 7 && !q->rnr_left--)
            return IBV_WC_RNR_RETRY_EXC_ERR;
        q->wait_until = now + rnr_timer_ns(arg);
    } else {
        uint64_t timeout = ack_timeout_ns(q->attr.timeout);
        if (timeout && !q->retry_left--)
            return IBV_WC_RETRY_EXC_ERR;
        q->wait_until = now + (timeout ? timeout : 100 * NS_MS); /* 0 is for ever, but look now and then */
    }
    port_count(q->linear, CNT_RETRIES, 1);
    return IBV_WC_SUCCESS;
}

/* Completes what was executed, in order, as far as its acknowledgements are back. */
static bool reap(struct qp *q, uint64_t now)
{
    while (q->done != q->next) {
        struct wqe *w = sq_at(q, q->done);
        if (w->ack_at > now) {
            engine_defer(q, w->ack_at);
            return false;
        }
        sq_complete(q, w, q->done++, IBV_WC_SUCCESS);
    }
    return true;
}

/* One request. False: stop here, the rest has to wait. */
static bool step(struct qp *q, uint64_t *now)
{
    struct wqe *w = sq_at(q, q->next);
    uint64_t due = max_u64(q->wait_until, w->due);
    if (UNLIKELY(due)) {
        *now = now_ns();
        if (due > *now) {
            engine_defer(q, due);
            return false;
        }
        q->wait_until = 0;
    }
    uint32_t arg = 0;
    bool rc = qp_ibv(q)->qp_type == IBV_QPT_RC;
    enum answer a = qp_ibv(q)->qp_type == IBV_QPT_UD ? ud_execute(q, w) : execute(q, w, &arg);
    bool local = a == ANS_LOCAL || a == ANS_LENGTH || a == ANS_REFUSED;
    if (LIKELY(a == ANS_OK || (!rc && !local))) {
        q->next++;
        q->rnr_left = q->attr.rnr_retry;
        q->retry_left = q->attr.retry_cnt;
        if (LIKELY(!w->ack_at && q->done + 1 == q->next)) {
            sq_complete(q, w, q->done++, IBV_WC_SUCCESS);
            return true;
        }
        return reap(q, *now) || true;
    }
    if (!*now)
        *now = now_ns();
    enum ibv_wc_status st = a == ANS_RNR || a == ANS_DROP ? sq_retry(q, a, arg, *now) : refused(a);
    if (st == IBV_WC_SUCCESS)
        return true;                      /* sees wait_until and defers */
    for (; q->done != q->next; q->done++) /* acknowledgements still under way: they would have come first */
        sq_complete(q, sq_at(q, q->done), q->done, IBV_WC_SUCCESS);
    sq_error(q, st);
    return false;
}

void sq_progress(struct qp *q, uint64_t now)
{
    if (q->remote) {
        remote_progress(q);
        return;
    }
    unsigned state = qp_ibv(q)->state;
    if (UNLIKELY(q->done != q->next) && !reap(q, now ? now : (now = now_ns())) && q->next == q->posted)
        return;
    while (q->next != q->posted && LIKELY(state == IBV_QPS_RTS) && step(q, &now))
        state = qp_ibv(q)->state;
    if (UNLIKELY(state == IBV_QPS_SQD && q->done == q->next))
        qp_drained(q);
}

/* Wire (b) has one lock for all its QPs, taken first; `remote` changes only while the QP is not in use. */
void sq_lock_both(struct qp *q)
{
    if (UNLIKELY(q->remote != NULL))
        wire_lock();
    lock_take(&q->lock);
}

void sq_unlock_both(struct qp *q)
{
    lock_drop(&q->lock);
    if (UNLIKELY(q->remote != NULL))
        wire_unlock();
}

void sq_run(struct qp *q)
{
    sq_lock_both(q);
    sq_progress(q, now_ns());
    sq_unlock_both(q);
}

/* Books time on a port's wire: one direction is a token bucket whose level is the time it will next be idle.
 */
static uint64_t book(_Atomic uint64_t *free_at, uint64_t rate, uint64_t bytes, uint64_t now)
{
    if (!rate)
        return now;
    uint64_t need = (uint64_t)((__uint128_t)bytes * NS_S / rate);
    uint64_t old = atomic_load(free_at), end;
    do
        end = max_u64(old, now) + need;
    while (!atomic_compare_exchange_weak(free_at, &old, end));
    return end;
}

/* One packet leaves our port and the switch makes the copies: one for each port that has members, whatever
 * their number. It is delivered when the last of them has it. Over wire (b) what the other nodes' ports are
 * busy with is not known here. */
static void reserve_multicast(struct qp *q, struct wqe *w)
{
    uint64_t now = now_ns(), bytes = w->length + 30ull;
    uint64_t end = book(&proc.reg->port[q->linear].tx_free, proc.fab.port[q->linear].rate, bytes, now);
    uint64_t latency = proc.fab.port[q->linear].latency;
    uint64_t seen[FAB_MAX_PORTS / 64] = {0};
    for (int g = 0; g < GROUPS; g++) {
        struct reg_group *grp = &proc.reg->group[g];
        if (!atomic_load(&grp->used) || memcmp(grp->gid, w->path.dgid.raw, 16))
            continue;
        for (int i = 0; i < GROUP_QPS; i++) {
            uint32_t port = atomic_load(&grp->port[i]);
            if (!atomic_load(&grp->qpn[i]) || port >= proc.fab.nports || seen[port / 64] >> port % 64 & 1)
                continue;
            seen[port / 64] |= 1ull << port % 64;
            latency = max_u64(latency, fabric_latency(&proc.fab, q->linear, port));
            end = max_u64(end, book(&proc.reg->port[port].rx_free, proc.fab.port[port].rate, bytes, now));
        }
    }
    w->due = end + latency;
}

void sq_reserve(struct qp *q, struct wqe *w)
{
    bool ud = qp_ibv(q)->qp_type == IBV_QPT_UD;
    uint16_t dlid = ud ? path_resolve(&w->path) : q->path.dlid;
    struct fab_place at;
    if (q->remote) { /* rates are kept where the bytes pass */
        remote_reserve(q, w);
        return;
    }
    if (ud && path_multicast(&w->path)) {
        reserve_multicast(q, w);
        return;
    }
    if (!fabric_locate(&proc.fab, dlid, &at))
        return;
    uint64_t now = now_ns();
    struct fab_port *mine = &proc.fab.port[q->linear], *theirs = &proc.fab.port[at.linear];
    struct reg_port *a = &proc.reg->port[q->linear], *b = &proc.reg->port[at.linear];
    uint64_t latency = fabric_latency(&proc.fab, q->linear, at.linear);
    bool read = w->opcode == IBV_WR_RDMA_READ;
    if (read) { /* a request goes there, the data comes back */
        struct fab_port *t = mine;
        struct reg_port *u = a;
        mine = theirs, theirs = t, a = b, b = u;
    }
    uint64_t bytes =
        w->length + 30ull * packets_of(w->length, (uint32_t)q->attr.path_mtu); /* headers and CRCs */
    uint64_t end =
        max_u64(book(&a->tx_free, mine->rate, bytes, now), book(&b->rx_free, theirs->rate, bytes, now));
    w->due = end + latency * (read ? 2 : 1);
    w->ack_at = read || qp_ibv(q)->qp_type != IBV_QPT_RC || !latency ? 0 : w->due + latency;
}

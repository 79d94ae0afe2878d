/* xrc.c: extended reliable connections: the XRC domain of the node, initiator and target queue pairs; see
 * xrc.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/queue/xrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/kill_point.h"
#include "boot/boot.h"
#include "net/ib/ib.h"
#include "net/lock.h"
#include "net/lost.h"

static COUNTER(initiators, "ib_xrc_initiators", "XRC initiator queue pairs that were created.");
static COUNTER(targets, "ib_xrc_targets", "XRC target queue pairs that were created.");

#define GENERATION_BITS 10 /* low bits of an immediate: generation; high bits: id of the endpoint */
#define LANE_DEPTH      64u
#define LANE_DEPTH_MIN  16u

/* A target queue pair, in memory that the processes of the node share. `target` is stored last: a row that a
 * dead process has written partly is free. The users of a dead process are never subtracted, so such a row
 * remains until its creator ends. */
struct ib_xrc_row {
    uint64_t job, port; /* job of the sender; hash of the port of this node */
    uint32_t from, qpn, psn;
    uint32_t target; /* number of the target queue pair; 0: the row is free */
    uint32_t creator, users;
    uint32_t serial; /* differs from those of the row's earlier targets */
};

struct table {
    struct shlock lock;
    uint32_t opened,
        finished;    /* processes of the node that use the table; those that need no target any more */
    uint32_t serial; /* number of targets that were created */
    struct ib_xrc_row row[];
};

struct target {
    struct list link;
    struct ibv_qp *qp;
    struct ib_xrc_row *row;
};

struct ib_initiator {
    struct list link;
    struct ibv_qp *qp;
    uint32_t psn, users;
    uint32_t target; /* 0: not connected */
    uint32_t node;
    struct ib_address address; /* of the port on that node */
    uint8_t adapter;
    bool failed, shared;
};

struct ib_xrc {
    struct ibv_xrcd *domain;
    struct table *table;
    uint32_t rows;
    bool own_table, finished;
    struct list initiators, targets;
};

/* ---- the domain and the table ---- */

static void table_lock(struct ib *ib)
{
    uint32_t dead;
    net_lock(ib->base.net, &ib->xrc->table->lock, "lock of the table of XRC target queue pairs", &dead);
    KILL_POINT(xrc_table_locked);
}

static void table_unlock(struct ib *ib)
{
    shlock_release(&ib->xrc->table->lock);
}

static int table_open(struct ib *ib, struct ib_xrc *x)
{
    struct net *net = ib->base.net;
    x->rows = 2 * net->size + 64;
    const size_t bytes = sizeof(struct table) + x->rows * sizeof(struct ib_xrc_row);
    uint64_t offset;
    int rc = 0;
    if (net->area) {
        rc = net_area_get_common(net, bytes, &offset);
        x->table = rc == 0 ? (struct table *)(void *)(net->area + offset) : NULL;
    } else {
        x->table = calloc(1, bytes);
        x->own_table = true;
    }
    if (!x->table)
        return err_set(MPI_ERR_NO_MEM, "out of memory for XRC target queue pairs");
    table_lock(ib);
    x->table->opened++;
    table_unlock(ib);
    return rc;
}

int ib_xrc_open(struct ib *ib)
{
    if (ib->receive != IB_RECEIVE_XRC)
        return 0;
    if (!(ib->device.attr.device_cap_flags & IBV_DEVICE_XRC))
        return err_set(MPI_ERR_OTHER,
                       "FISHPLATE_IB_RECEIVE=xrc, but %s has no extended reliable connections (XRC); "
                       "FISHPLATE_IB_RECEIVE=shared needs least memory there",
                       ib->device.name);
    struct ib_xrc *x = calloc(1, sizeof(*x));
    if (!x)
        return err_set(MPI_ERR_NO_MEM, "out of memory at start-up");
    ib->xrc = x;
    list_init(&x->initiators);
    list_init(&x->targets);
    const struct net *net = ib->base.net;
    struct ibv_xrcd_init_attr a = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                   .fd = net->area ? net->doorbell_fd : -1,
                                   .oflags = O_CREAT};
    x->domain = ibv_open_xrcd(ib->device.context, &a);
    if (!x->domain)
        return err_set(MPI_ERR_OTHER, "%s: cannot open an XRC domain: %s", ib->device.name,
                       err_reason(errno));
    return table_open(ib, x);
}

struct ibv_srq *ib_xrc_create_srq(struct ib *ib, const struct ib_adapter *a, void *context, uint32_t entries)
{
    const struct verbs_context *v = verbs_get_ctx_op(a->device->context, create_srq_ex);
    struct ibv_srq_init_attr_ex init = {.srq_context = context,
                                        .attr = {.max_wr = entries, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = a->device->pd,
                                        .xrcd = ib->xrc->domain,
                                        .cq = a->cq};
    errno = EOPNOTSUPP;
    return v ? v->create_srq_ex(a->device->context, &init) : NULL;
}

/* ---- targets: the ends of other processes' initiators ---- */

/* Destroys this process's target queue pairs without users, which requires the table's lock, or all. */
static void targets_sweep(struct ib *ib, bool all)
{
    list_foreach_safe(pos, after, &ib->xrc->targets)
    {
        struct target *t = list_entry(pos, struct target, link);
        if (t->row->users > 0 && !all)
            continue;
        t->row->target = 0;
        KILL_POINT(xrc_row_freed);
        ib->device.verbs.destroy_qp(t->qp);
        list_remove(pos);
        free(t);
    }
}

static uint64_t port_hash(const struct ib_device *d)
{
    uint64_t h = d->address.lid + ((uint64_t)d->path << 32);
    for (size_t i = 0; i < sizeof(d->address.gid); i++)
        h = h * 0x100000001b3u ^ d->address.gid[i];
    return h;
}

static bool row_is_free(const struct ib *ib, const struct ib_xrc_row *r)
{
    return r->target == 0 || net_is_lost(ib->base.net, r->creator);
}

static struct ib_xrc_row *row_find(const struct ib *ib, const struct ib_xrc_row *key,
                                   struct ib_xrc_row **empty)
{
    *empty = NULL;
    for (struct ib_xrc_row *r = ib->xrc->table->row; r < ib->xrc->table->row + ib->xrc->rows; r++) {
        if (row_is_free(ib, r))
            *empty = *empty ? *empty : r;
        else if (r->job == key->job && r->port == key->port && r->from == key->from && r->qpn == key->qpn &&
                 r->psn == key->psn)
            return r;
    }
    return NULL;
}

static struct ibv_qp *target_create(const struct ib *ib, const struct ib_device *d, const struct ib_hello *h)
{
    const struct verbs_context *v = verbs_get_ctx_op(d->context, create_qp_ex);
    struct ibv_qp_init_attr_ex a = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = ib->xrc->domain};
    errno = EOPNOTSUPP;
    struct ibv_qp *qp = v ? v->create_qp_ex(d->context, &a) : NULL;
    if (qp && (ib_qp_init(d, qp) != 0 || ib_qp_connect(d, qp, 0, &h->address, h->xrc.qpn, h->xrc.psn,
                                                       h->rd_atomic, IB_SERVICE_LEVEL_DEFAULT) != 0)) {
        const int why = errno;
        ib->device.verbs.destroy_qp(qp);
        errno = why;
        qp = NULL;
    }
    counter_add(&targets, qp != NULL);
    return qp;
}

static struct ib_xrc_row *target_add(struct ib *ib, const struct ib_device *d, const struct ib_hello *h,
                                     struct ib_xrc_row *empty)
{
    struct target *t = empty ? calloc(1, sizeof(*t)) : NULL;
    if (!t)
        return NULL;
    t->qp = target_create(ib, d, h);
    if (!t->qp) {
        free(t);
        return NULL;
    }
    t->row = empty;
    list_append(&ib->xrc->targets, &t->link);
    return empty;
}

static void target_release(struct ib_endpoint *ep)
{
    struct ib_xrc_row *r = ep->xrc_target.row;
    ep->xrc_target.row = NULL;
    if (!r)
        return;
    table_lock(ep->ib);
    if (r->serial == ep->xrc_target.serial) /* else its creator died, and the row has another target now */
        r->users--;
    KILL_POINT(xrc_target_released);
    targets_sweep(ep->ib, false);
    table_unlock(ep->ib);
}

int ib_xrc_accept(struct ib_endpoint *ep, const struct ib_hello *h)
{
    struct ib *ib = ep->ib;
    const struct ib_device *d = ep->lanes[0].rail->device;
    struct ib_xrc_row key = {.job = h->job,
                             .port = port_hash(d),
                             .from = h->from,
                             .qpn = h->xrc.qpn,
                             .psn = h->xrc.psn,
                             .creator = ib->base.net->rank};
    struct ib_xrc_row *empty;
    for (uint32_t i = 0; i < ib->lanes; i++) {
        ep->lanes[i].remote_number = h->qpn[i];
        ep->lanes[i].remote_srq = h->xrc.srq[i];
    }
    target_release(ep);
    table_lock(ib);
    targets_sweep(ib, false);
    struct ib_xrc_row *r = row_find(ib, &key, &empty);
    if (!r && (r = target_add(ib, d, h, empty)) != NULL) {
        KILL_POINT(xrc_target_created);
        key.serial = ++ib->xrc->table->serial;
        *r = key;
        atomic_signal_fence(memory_order_seq_cst);
        KILL_POINT(xrc_row_filled);
        r->target = list_entry(ib->xrc->targets.prev, struct target, link)->qp->qp_num;
        KILL_POINT(xrc_row_written);
    }
    const int why = errno;
    if (r) {
        r->users++;
        ep->xrc_target = (struct ib_xrc_target){.row = r, .serial = r->serial, .qpn = r->target};
    }
    table_unlock(ib);
    KILL_POINT(xrc_target_accepted);
    return r ? 0
             : err_set(MPI_ERR_OTHER, "%s: cannot create an XRC target queue pair for rank %u: %s", d->name,
                       ep->peer->rank,
                       empty ? err_reason(why) : "the table of such queue pairs of this node is full");
}

/* ---- initiators ---- */

static bool same_port(const struct ib_address *a, const struct ib_address *b)
{
    return a->lid == b->lid && memcmp(a->gid, b->gid, sizeof(a->gid)) == 0;
}

/* Returns the number of ranks on the peer's node; 1 for a process of another job, whose node is unknown. */
static uint32_t count_node_ranks(const struct ib_endpoint *ep)
{
    const struct net *net = ep->ib->base.net;
    uint32_t n = 0;
    for (uint32_t r = 0; r < net->size && !ep->peer->card; r++)
        n += net->boot->node_of[r] == net->boot->node_of[ep->peer->rank];
    return MAX(n, 1u);
}

/* Returns the number of lanes that may share an initiator, and 2 for closed connections whose requests may
 * still be in the send queue. */
static uint32_t count_lanes_per_initiator(const struct ib_endpoint *ep)
{
    return count_node_ranks(ep) * ep->ib->lanes + 2;
}

uint32_t ib_xrc_lane_depth(const struct ib_lane *lane)
{
    const uint32_t room =
        (uint32_t)lane->rail->device->attr.max_qp_wr / count_lanes_per_initiator(lane->endpoint);
    uint32_t depth = LANE_DEPTH;
    while (depth > room)
        depth /= 2;
    return depth >= LANE_DEPTH_MIN ? depth : 0;
}

static struct ib_initiator *initiator_find(const struct ib_lane *lane)
{
    const struct ib_endpoint *ep = lane->endpoint;
    list_foreach(pos, &ep->ib->xrc->initiators)
    {
        struct ib_initiator *i = list_entry(pos, struct ib_initiator, link);
        if (lane->index > 0 && ep->lanes[0].initiator == i)
            return i;
        if (!i->failed && i->shared && !ep->peer->card && lane->index == 0 && i->adapter == lane->adapter &&
            i->node == ep->ib->base.net->boot->node_of[ep->peer->rank] &&
            same_port(&i->address, &ep->address))
            return i;
    }
    return NULL;
}

static struct ib_initiator *initiator_create(struct ib_lane *lane)
{
    struct ib_endpoint *ep = lane->endpoint;
    struct ib *ib = ep->ib;
    const struct ib_device *d = lane->rail->device;
    struct ib_initiator *i = calloc(1, sizeof(*i));
    if (!i)
        return NULL;
    struct ibv_qp_init_attr a = {.send_cq = lane->rail->adapter->cq,
                                 .recv_cq = lane->rail->adapter->cq,
                                 .qp_type = IBV_QPT_XRC_SEND,
                                 .cap = {.max_send_wr = count_lanes_per_initiator(ep) * lane->depth,
                                         .max_send_sge = 1,
                                         .max_inline_data = ib->inline_max}};
    *i = (struct ib_initiator){.psn = (uint32_t)(clock_ns() >> 8) & 0xffffff,
                               .address = ep->address,
                               .adapter = lane->adapter,
                               .shared = !ep->peer->card};
    if (i->shared)
        i->node = ib->base.net->boot->node_of[ep->peer->rank];
    i->qp = ib->device.verbs.create_qp(d->pd, &a);
    if (!i->qp || ib_qp_init(d, i->qp) != 0) {
        const int why = errno;
        if (i->qp)
            ib->device.verbs.destroy_qp(i->qp);
        free(i);
        errno = why;
        return NULL;
    }
    counter_add(&initiators, 1);
    list_append(&ib->xrc->initiators, &i->link);
    return i;
}

int ib_xrc_lane_create(struct ib_lane *lane)
{
    struct ib_initiator *i = initiator_find(lane);
    if (!i && !(i = initiator_create(lane)))
        return err_set(MPI_ERR_OTHER, "%s: cannot create an XRC initiator queue pair for rank %u: %s",
                       lane->rail->device->name, lane->endpoint->peer->rank, err_reason(errno));
    i->users++;
    lane->initiator = i;
    lane->qp = i->qp;
    lane->psn = i->psn;
    return 0;
}

void ib_xrc_lane_destroy(struct ib_lane *lane)
{
    struct ib_initiator *i = lane->initiator;
    lane->initiator = NULL;
    if (lane->index == 0)
        target_release(lane->endpoint);
    if (--i->users > 0)
        return;
    lane->endpoint->ib->device.verbs.destroy_qp(i->qp);
    list_remove(&i->link);
    free(i);
}

static void initiator_set_error(struct ib *ib, struct ib_initiator *i)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    i->failed = true;
    ib->device.verbs.modify_qp(i->qp, &a, IBV_QP_STATE);
}

void ib_xrc_send_failed(struct ib *ib, uint32_t qpn)
{
    list_foreach(pos, &ib->xrc->initiators)
    {
        struct ib_initiator *i = list_entry(pos, struct ib_initiator, link);
        if (i->qp->qp_num == qpn && !i->failed)
            initiator_set_error(ib, i);
    }
}

/* ---- connections ---- */

static uint32_t endpoint_encode_immediate(const struct ib_endpoint *ep)
{
    return ep->id << GENERATION_BITS | (ep->conn.mine & ((1u << GENERATION_BITS) - 1));
}

void ib_xrc_fill_hello(const struct ib_endpoint *ep, struct ib_hello *h)
{
    const struct ib_lane *lane = &ep->lanes[0];
    h->xrc = (struct ib_hello_xrc){.qpn = lane->qp->qp_num,
                                   .psn = lane->initiator->psn,
                                   .target = ep->xrc_target.row ? ep->xrc_target.qpn : 0};
    for (uint32_t i = 0; i < ep->ib->lanes; i++) {
        h->qpn[i] = endpoint_encode_immediate(ep);
        ibv_get_srq_num(ep->lanes[i].shared->srq, &h->xrc.srq[i]);
    }
}

bool ib_xrc_connect(struct ib_endpoint *ep, const struct ib_hello *h, int *rc)
{
    struct ib_initiator *i = ep->lanes[0].initiator;
    const struct ib_device *d = ep->lanes[0].rail->device;
    *rc = 0;
    if (h->xrc.target == 0)
        *rc = err_set(MPI_ERR_OTHER, "it has no target for this process");
    if (i->target == 0 && !i->failed && *rc == 0) {
        if (ib_qp_connect(d, i->qp, i->psn, &h->address, h->xrc.target, 0, h->rd_atomic,
                          IB_SERVICE_LEVEL_DEFAULT) != 0)
            *rc = err_set(MPI_ERR_OTHER, "%s cannot connect to rank %u (LID %u): %s", d->name, ep->peer->rank,
                          h->address.lid, err_reason(errno));
        i->target = h->xrc.target;
    }
    if (i->target == h->xrc.target)
        return true;
    initiator_set_error(ep->ib, i);
    return false;
}

struct ib_endpoint *ib_xrc_find_endpoint(const struct ib *ib, uint32_t immediate, bool *late)
{
    const uint32_t id = immediate >> GENERATION_BITS;
    struct ib_endpoint *ep = id < ib->nendpoints ? ib->endpoints[id] : NULL;
    if (!ep || !ep->peer)
        return NULL;
    *late = immediate != endpoint_encode_immediate(ep) || !ep->lanes[0].qp;
    return ep;
}

/* ---- end ---- */

bool ib_xrc_is_finished(struct ib *ib)
{
    struct ib_xrc *x = ib->xrc;
    const struct net *net = ib->base.net;
    uint32_t lost = 0;
    if (!x)
        return true;
    table_lock(ib);
    x->table->finished += !x->finished;
    x->finished = true;
    KILL_POINT(xrc_finished);
    for (uint32_t i = 0; i < net->boot->nlocal; i++)
        lost += net_is_lost(net, net->boot->local_ranks[i]);
    const bool all = x->table->finished + lost >= x->table->opened;
    table_unlock(ib);
    return all;
}

void ib_xrc_close(struct ib *ib)
{
    struct ib_xrc *x = ib->xrc;
    if (!x)
        return;
    /* Without the lock, because a process that waits here is no longer notified of the owner's death; the users of
     * these targets have finished. */
    targets_sweep(ib, true);
    if (x->own_table)
        free(x->table);
    if (x->domain)
        ibv_close_xrcd(x->domain);
    free(x);
    ib->xrc = NULL;
}

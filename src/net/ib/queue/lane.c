/* lane.c: one queue pair of a connection: its creation, its receive buffers, and its send queue. Most send
 * requests are unsignalled; every Nth one requests a completion, which reports that all requests before it
 * are complete [Liu04 6.2.3].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/tunable.h"
#include "net/ib/ib.h"
#include "net/ib/policy/posted.h"
#include "net/ib/queue/xrc.h"

static LABORATORY_INT(send_depth, "IB_SEND_DEPTH", 256, 32, 16384,
                      "Number of requests that the send queue of a connection holds.");
static LABORATORY_INT(signal_every, "IB_SIGNAL_EVERY", 32, 1, 4096,
                      "Request a completion for every Nth send. Larger values save processor time and need a "
                      "deeper send queue.");
static LABORATORY_INT(
    control_service_level, "IB_CONTROL_SERVICE_LEVEL", -1, -1, 15,
    "InfiniBand service level of control messages and small frames with FISHPLATE_IB_RECEIVE=shared, which "
    "has a "
    "queue pair of their own for them; -1: FISHPLATE_IB_SERVICE_LEVEL, as for all other traffic.");
static COUNTER(control_lanes, "ib_control_lanes",
               "Queue pairs whose control messages and small frames have a service level of their own "
               "(FISHPLATE_LAB=IB_CONTROL_SERVICE_LEVEL).");
static COUNTER(queue_pairs, "ib_queue_pairs",
               "RC queue pairs of connections that were created; those of XRC are counted by themselves.");

#define INLINE_WISH 256

/* ---- the lane of a queue pair: completions of shared receive queues have only its number ---- */

static uint32_t index_slot(const struct ib *ib, uint32_t qpn)
{
    return (uint32_t)((qpn * 0x9e3779b97f4a7c15ull) >> 40) & (ib->by_qpn_size - 1);
}

/* Finds a lane by its queue pair number. Two adapters may assign equal numbers: `shared` must match too. */
struct ib_lane *ib_lane_find(struct ib *ib, uint32_t qpn, const struct ib_shared *shared)
{
    if (ib->by_qpn_size == 0)
        return NULL;
    uint32_t at = index_slot(ib, qpn);
    for (; ib->by_qpn[at]; at = (at + 1) & (ib->by_qpn_size - 1))
        if (ib->by_qpn[at]->qp && ib->by_qpn[at]->qp->qp_num == qpn && ib->by_qpn[at]->shared == shared)
            return ib->by_qpn[at];
    return NULL;
}

static void index_insert_lane(struct ib *ib, struct ib_lane *lane)
{
    uint32_t at = index_slot(ib, lane->qp->qp_num);
    while (ib->by_qpn[at])
        at = (at + 1) & (ib->by_qpn_size - 1);
    ib->by_qpn[at] = lane;
}

static void index_add_if_shared(struct ib *ib, struct ib_lane *lane)
{
    if (!lane->qp || !lane->shared)
        return;
    index_insert_lane(ib, lane);
    ib->by_qpn_used++;
}

/* Fills the table with all lanes that have queue pairs, after growth or a removal. */
static void index_refill(struct ib *ib)
{
    memset(ib->by_qpn, 0, ib->by_qpn_size * sizeof(struct ib_lane *));
    ib->by_qpn_used = 0;
    for (uint32_t i = 0; i < ib->nendpoints; i++)
        for (uint32_t k = 0; k < ib->lanes; k++)
            index_add_if_shared(ib, &ib->endpoints[i]->lanes[k]);
    for (uint32_t i = 0; i < ib->nendpoints; i++) {
        struct ib_pairs *j = ib->endpoints[i]->pairs;
        for (uint32_t k = 1; j && k < j->count; k++)
            index_add_if_shared(ib, &j->pair[k].lane);
    }
}

static int index_grow(struct ib *ib)
{
    const uint32_t size = MAX(2 * ib->by_qpn_size, 64);
    struct ib_lane **table = realloc(ib->by_qpn, size * sizeof(struct ib_lane *));
    if (!table)
        return err_set(MPI_ERR_NO_MEM, "out of memory for a connection");
    ib->by_qpn = table;
    ib->by_qpn_size = size;
    index_refill(ib);
    return 0;
}

static int index_add(struct ib *ib, struct ib_lane *lane)
{
    if (2 * (ib->by_qpn_used + 1) > ib->by_qpn_size)
        return index_grow(ib); /* inserts this lane, too */
    index_insert_lane(ib, lane);
    ib->by_qpn_used++;
    return 0;
}

/* ---- making and dropping ---- */

static uint32_t receive_depth(const struct ib_lane *lane)
{
    return lane->shared || lane->bare ? 0 : posted_connection_buffers(lane->endpoint->ib->rules.buffers_max);
}

static struct ibv_qp *create_qp(struct ib_lane *lane)
{
    struct ib *ib = lane->endpoint->ib;
    struct ibv_cq *cq = lane->rail->adapter->cq;
    struct ibv_qp_init_attr a = {.qp_context = lane,
                                 .send_cq = cq,
                                 .recv_cq = cq,
                                 .srq = lane->shared ? lane->shared->srq : NULL,
                                 .qp_type = IBV_QPT_RC,
                                 .cap = {.max_send_wr = lane->depth,
                                         .max_recv_wr = receive_depth(lane),
                                         .max_send_sge = 1,
                                         .max_recv_sge = 1,
                                         .max_inline_data = lane->bare ? 0 : ib->inline_max}};
    return ib->device.verbs.create_qp(lane->rail->device->pd, &a);
}

/* Determines properties that only a queue pair reports, before the first peer queries the transport's
 * capabilities. The inline limit cannot be queried: smaller values are tried until one works. */
int ib_lane_probe_device(struct ib *ib)
{
    const struct verbs *v = &ib->device.verbs;
    struct ibv_qp *qp = NULL;
    for (uint32_t wish = INLINE_WISH; !qp; wish /= 2) {
        struct ibv_qp_init_attr a = {.send_cq = ib->adapters[0].cq,
                                     .recv_cq = ib->adapters[0].cq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = 1,
                                             .max_recv_wr = 1,
                                             .max_send_sge = 1,
                                             .max_recv_sge = 1,
                                             .max_inline_data = wish}};
        qp = v->create_qp(ib->device.pd, &a);
        if (qp)
            ib->inline_max = MIN(a.cap.max_inline_data, wish);
        else if (wish == 0)
            return err_set(MPI_ERR_OTHER, "%s: cannot create a queue pair: %s", ib->device.name,
                           err_reason(errno));
    }
    ib_device_query_order(&ib->device, qp);
    v->destroy_qp(qp);
    return 0;
}

static uint32_t power_of_two_below(uint32_t n)
{
    uint32_t p = 1;
    while (2 * p <= n)
        p *= 2;
    return p;
}

void ib_lane_use_primary(struct ib_lane *lane)
{
    struct ib *ib = lane->endpoint->ib;
    lane->rail = &ib->rails[lane->endpoint->primary];
    lane->adapter = lane->rail->adapter->index;
    lane->shared = ib->lanes > 1 ? &ib->shared[lane->adapter][lane->index] : NULL;
}

/* Allocates the records of the send queue and, if the connection can be reopened, copies for repetition. */
static int lane_allocate_records(struct ib_lane *lane)
{
    bool moves = lane->endpoint->paths && !lane->bare;
    if (!lane->work) {
        const uint32_t most =
            lane->endpoint->ib->xrc ? ib_xrc_lane_depth(lane) : (uint32_t)lane->rail->device->attr.max_qp_wr;
        if (most == 0)
            return err_set(MPI_ERR_OTHER,
                           "%s: a send queue holds %d requests, too few for connections to all ranks on the "
                           "node of rank %u, which share it with FISHPLATE_IB_RECEIVE=xrc; set "
                           "FISHPLATE_IB_RECEIVE=shared",
                           lane->rail->device->name, lane->rail->device->attr.max_qp_wr,
                           lane->endpoint->peer->rank);
        lane->depth = power_of_two_below((uint32_t)MIN(send_depth.value, (int64_t)most));
        lane->work = calloc(lane->depth, sizeof(*lane->work));
    }
    if (moves && !lane->copies)
        lane->copies = malloc((size_t)lane->depth * IB_COPY);
    if (moves && !lane->rdma)
        lane->rdma = malloc(lane->depth * sizeof(*lane->rdma)); /* unused until the first put or get */
    if (!lane->work || (moves && (!lane->copies || !lane->rdma)))
        return err_set(MPI_ERR_NO_MEM, "out of memory for a connection to rank %u",
                       lane->endpoint->peer->rank);
    return 0;
}

/* Creates the queue pair in state INIT. */
static int create_ready_queue_pair(struct ib_lane *lane)
{
    const struct ib_device *d = lane->rail->device;
    if (lane->endpoint->ib->xrc)
        return ib_xrc_lane_create(lane);
    struct ibv_qp *qp = create_qp(lane);
    if (qp && ib_qp_init(d, qp) == 0) {
        lane->qp = qp;
        counter_add(&queue_pairs, 1);
        return 0;
    }
    const int why = errno;
    if (qp)
        d->verbs.destroy_qp(qp);
    return err_set(MPI_ERR_OTHER,
                   "%s: cannot create a queue pair for rank %u (%s): %u connections are open, the device has "
                   "%d queue pairs; set FISHPLATE_IB_MAX_CONNECTIONS to use fewer",
                   d->name, lane->endpoint->peer->rank, err_reason(why), lane->endpoint->ib->open,
                   d->attr.max_qp);
}

int ib_lane_create(struct ib_lane *lane)
{
    struct ib *ib = lane->endpoint->ib;
    int rc = lane_allocate_records(lane);
    const int completions = (int)(lane->depth + receive_depth(lane));
    rc = rc ? rc : ib_adapter_reserve_completions(lane->rail->adapter, completions);
    if (rc != 0)
        return rc;
    lane->quiet = 0;
    if (!ib->xrc) /* otherwise late completions of the previous generation could match requests of this one */
        lane->head = lane->tail = 0;
    lane->started = lane->tail;
    lane->id = ib_send_id(lane->endpoint->id, lane->index);
    lane->signal_every = MIN((uint32_t)signal_every.value, lane->depth / 4);
    lane->failed = lane->given_up = false;
    lane->psn = (uint32_t)(clock_ns() >> 8) & 0xffffff;
    rc = create_ready_queue_pair(lane);
    if (rc != 0) {
        lane->rail->adapter->cq_used -= completions;
        return rc;
    }
    if (lane->bare)
        return 0;
    ib_adapter_count_users(lane->rail->adapter, ib, 1);
    if (!lane->shared) {
        ib_lane_post_receives(lane, posted_connection_buffers(ib->rules.first));
        return 0;
    }
    rc = ib->xrc ? 0 : index_add(ib, lane);
    if (rc != 0)
        ib_lane_destroy(lane);
    return rc;
}

static int lane_service_level(const struct ib_lane *lane)
{
    return lane == &lane->endpoint->lanes[0] && lane->endpoint->ib->lanes > 1
               ? (int)control_service_level.value
               : IB_SERVICE_LEVEL_DEFAULT;
}

int ib_lane_connect(struct ib_lane *lane, const struct ib_address *to, uint32_t qpn, uint32_t psn,
                    uint32_t rd_atomic)
{
    const struct ib_device *d = lane->rail->device;
    const int level = lane_service_level(lane);
    int rc = ib_qp_connect(d, lane->qp, lane->psn, to, qpn, psn, rd_atomic, level);
    counter_add(&control_lanes, rc == 0 && level != IB_SERVICE_LEVEL_DEFAULT);
    return rc == 0 ? 0
                   : err_set(MPI_ERR_OTHER, "%s cannot connect to rank %u (LID %u): %s", d->name,
                             lane->endpoint->peer->rank, to->lid, err_reason(errno));
}

void ib_lane_destroy(struct ib_lane *lane)
{
    struct ib *ib = lane->endpoint->ib;
    if (!lane->qp)
        return;
    if (lane->initiator)
        ib_xrc_lane_destroy(lane);
    else
        ib->device.verbs.destroy_qp(lane->qp);
    lane->qp = NULL;
    if (!lane->bare)
        ib_adapter_count_users(lane->rail->adapter, ib, -1);
    lane->rail->adapter->cq_used -= (int)(lane->depth + receive_depth(lane));
    if (lane->shared && !ib->xrc && !ib->closing && ib->by_qpn_size > 0)
        index_refill(ib);
    for (; lane->tail != lane->head; lane->tail++) {
        struct ib_work *w = &lane->work[lane->tail & (lane->depth - 1)];
        if (w->buffer)
            ib_buffer_put(lane->pool, w->buffer);
        *w = (struct ib_work){0};
    }
    list_foreach_safe(pos, after, &lane->posted)
    {
        struct ib_buffer *b = list_entry(pos, struct ib_buffer, link);
        list_remove(pos);
        b->lane = NULL; /* the lane of a further rail may be freed */
        ib_buffer_put(lane->pool, b);
    }
}

/* Destroys the queue pair, then fails its transfers: no data can arrive any more. */
void ib_lane_destroy_queue_pair(struct ib_lane *lane)
{
    struct ib_endpoint *ep = lane->endpoint;
    uint32_t tail = lane->tail, head = lane->head;
    if (!lane->qp)
        return;
    for (uint32_t at = tail; at != head; at++) {
        struct ib_work *w = &lane->work[at & (lane->depth - 1)];
        if (w->buffer)
            ib_buffer_put(lane->pool, w->buffer);
        w->buffer = NULL;
    }
    lane->tail = head;
    ib_lane_destroy(lane);
    for (; tail != head; tail++) {
        struct ib_work w = lane->work[tail & (lane->depth - 1)];
        ep->final_markers -= w.last;
        if (w.op) {
            ep->ops--;
            w.op->done(w.op, MPI_ERR_OTHER);
        }
    }
}

void ib_lane_set_error(struct ib_lane *lane)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    if (!lane->qp)
        return;
    lane->given_up = true;
    if (lane->initiator) /* other connections share the initiator; late frames are put in order (xrc.h) */
        return;
    lane->endpoint->ib->device.verbs.modify_qp(lane->qp, &a, IBV_QP_STATE);
}

/* ---- receive buffers ---- */

void ib_lane_post_receive(struct ib_lane *lane, struct ib_buffer *b)
{
    struct ib *ib = lane->endpoint->ib;
    struct ibv_sge piece = {
        .addr = (uintptr_t)b->data, .length = (uint32_t)lane->pool->size, .lkey = b->lkey[lane->adapter]};
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)b, .sg_list = &piece, .num_sge = 1}, *bad;
    b->lane = lane;
    list_append(&lane->posted, &b->link);
    int rc = ibv_post_recv(lane->qp, &wr, &bad);
    if (unlikely(rc != 0) && !ib->events->failed(lane->endpoint, "a receive buffer was refused"))
        ib_fatal(ib, lane->endpoint, "a receive buffer was refused (%s)", err_reason(rc));
}

void ib_lane_post_receives(struct ib_lane *lane, uint32_t n)
{
    while (n-- > 0) {
        struct ib_buffer *b = ib_buffer_get(lane->pool);
        if (unlikely(!b))
            ib_fatal(lane->endpoint->ib, NULL, "%s", err_detail(MPI_ERR_NO_MEM));
        ib_lane_post_receive(lane, b);
    }
}

/* ---- the send queue ---- */

__attribute__((noinline, cold)) void ib_lane_report_refusal(struct ib_lane *lane, int rc)
{
    struct ib *ib = lane->endpoint->ib;
    if (!lane->bare && ib->events->failed(lane->endpoint, "a send request was refused"))
        return; /* the record remains, and the request is repeated */
    ib_fatal(ib, lane->endpoint, "a send request was refused (%s)", err_reason(rc));
}

/* Posts a write of 0 bytes, which completes after all earlier requests. */
void ib_lane_post_marker(struct ib_lane *lane, bool last)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    ib_lane_prepare_work(lane, &wr, true)->last = last;
    ib_lane_post_send(lane, &wr);
}

void ib_lane_request_completion(struct ib_lane *lane)
{
    if (lane->quiet > 0 && ib_lane_has_room(lane, 1, true))
        ib_lane_post_marker(lane, false);
}

/* True if all unacknowledged messages carry only credits: nothing is lost if the peer has ended. Other lanes
 * are not considered. */
bool ib_lane_has_only_credits(const struct ib_lane *lane)
{
    for (uint32_t at = lane->tail; at != lane->head; at++)
        if (lane->work[at & (lane->depth - 1)].frame)
            return false;
    return true;
}

bool ib_lane_carries_frames(const struct ib_lane *lane)
{
    if (lane->bare || !lane->qp)
        return false;
    for (uint32_t at = lane->tail; at != lane->head; at++) {
        const struct ib_work *w = &lane->work[at & (lane->depth - 1)];
        if (w->frame && !w->op)
            return true;
    }
    return false;
}

/* Retires sends up to `place`: requests complete in order, so one completion covers all earlier ones. */
void ib_lane_retire_sends(struct ib_lane *lane, uint32_t place)
{
    struct ib_endpoint *ep = lane->endpoint;
    uint32_t n = ((place - lane->tail) & 0xffffff) + 1;
    if (unlikely(n > lane->head - lane->tail)) /* the completion is of an earlier generation */
        return;
    while (n-- > 0 && lane->tail != lane->head) {
        struct ib_work w = lane->work[lane->tail++ & (lane->depth - 1)];
        if (w.buffer)
            ib_buffer_put(lane->pool, w.buffer);
        if (w.op) {
            ep->ops--;
            w.op->done(w.op, 0);
        }
        if (w.last) {
            ep->final_markers--;
            ep->ib->events->last_sent(ep);
            return;
        }
    }
}

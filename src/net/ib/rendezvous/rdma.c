/* rdma.c: RDMA writes and reads of one queue pair.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "net/ib/channel/channel.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"

#define PIECE_MAX (1u << 30) /* largest number of bytes of one RDMA request */

/* Records a request that may have to be repeated. The record of a silent put includes its data. */
static void work_store_request(struct ib_lane *lane, struct ib_work *w, const struct ib_rdma *whole,
                               bool silent)
{
    uint32_t place = lane->head & (lane->depth - 1);
    lane->rdma[place] = *whole;
    w->rdma = true;
    if (silent)
        memcpy(lane->copies + (size_t)place * IB_COPY, (const void *)whole->local, MIN(whole->len, IB_COPY));
}

/* Posts one transfer as one or more requests. The last one completes op (NULL: a silent put). */
int ib_rdma_post(struct ib_lane *lane, const struct ib_transfer *t, size_t len, struct net_op *op)
{
    struct ib_endpoint *ep = lane->endpoint;
    size_t most = MIN(PIECE_MAX, lane->rail->device->port_attr.max_msg_sz);
    size_t pieces = likely(len <= most) ? 1 : (len + most - 1) / most; /* avoids the division */
    if (unlikely(pieces > lane->depth - IB_CONTROL_ROOM))
        return err_set(MPI_ERR_OTHER,
                       "a transfer of %zu bytes takes %zu requests, and a send queue holds %u: raise "
                       "FISHPLATE_LAB=IB_SEND_DEPTH",
                       len, pieces, lane->depth);
    if (unlikely(!ib_lane_has_room(lane, (uint32_t)pieces, false)))
        return ib_lane_refuse_full();
    ep->used = ep->ib->tick;
    ep->ops += op != NULL;
    for (size_t done = 0; done < len; done += most) {
        struct ibv_sge piece = {
            .addr = t->local + done, .length = (uint32_t)MIN(most, len - done), .lkey = t->lkey};
        struct ibv_send_wr wr = {.sg_list = &piece,
                                 .num_sge = 1,
                                 .opcode = t->opcode,
                                 .wr.rdma = {.remote_addr = t->remote + done, .rkey = t->rkey}};
        bool end = done + most >= len;
        wr.send_flags = op ? 0 : IBV_SEND_INLINE;
        struct ib_work *w = ib_lane_prepare_work(lane, &wr, end && op);
        w->op = end ? op : NULL;
        w->frame = true;
        if (unlikely(lane->rdma != NULL) && end && t->whole)
            work_store_request(lane, w, t->whole, op == NULL);
        ib_lane_post_send(lane, &wr);
    }
    return 0;
}

/* Posts over the primary rail. */
int ib_rdma_post_primary(struct ib_endpoint *ep, const struct ib_rdma *r, struct net_op *op)
{
    struct ib_lane *lane = &ep->lanes[ep->ib->lanes - 1];
    struct ib_transfer t = {.opcode = r->opcode,
                            .local = r->local,
                            .remote = r->remote,
                            .lkey = r->mem.handle ? ib_lkey(&r->mem, lane->adapter) : 0,
                            .rkey = ib_rkey(&r->key, ep->peer_adapter),
                            .whole = r};
    return ib_rdma_post(lane, &t, r->len, op);
}

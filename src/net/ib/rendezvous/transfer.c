/* transfer.c: puts, gets and atomic operations: over the primary rail, or as stripes over several rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/counter.h"
#include "net/ib/channel/channel.h"
#include "net/ib/rails/rails.h"
#include "net/ib/rendezvous/transfer.h"

static COUNTER(put_bytes, "ib_put_bytes", "Bytes written into memory of peers by RDMA.");
static COUNTER(get_bytes, "ib_get_bytes", "Bytes read from memory of peers by RDMA.");
static COUNTER(additions, "ib_atomics",
               "Words in the memory of peers changed by atomic operations of the adapter (add, swap).");

static int post_rdma_transfer(struct ib_endpoint *ep, enum ibv_wr_opcode opcode, uintptr_t local,
                              const struct net_mem *mem, uint64_t remote, const struct net_key *key,
                              size_t len, struct net_op *op)
{
    if (unlikely(!frame_route_is_ready(&ep->route)))
        return ib_frame_open_connection(ep);
    if (ib_may_stripe(ep->ib, ep, len) && op)
        return ib_stripe_transfer(ep, opcode, local, mem, remote, key, len, op);
    struct ib_rdma r = {.opcode = opcode,
                        .local = local,
                        .remote = remote,
                        .len = len,
                        .mem = mem ? *mem : (struct net_mem){0},
                        .key = *key,
                        .seq = ep->next_seq};
    return ib_rdma_post_primary(ep, &r, op);
}

/* Posts a silent put as one request without a record: the fast path for the flags of barriers. */
static bool put_inline_silent(struct ib_endpoint *ep, const void *local, uint64_t remote,
                              const struct net_key *key, size_t len)
{
    struct ib_lane *lane = &ep->lanes[ep->ib->lanes - 1];
    if (unlikely(!frame_route_is_ready(&ep->route) || lane->rdma || !ib_lane_has_room(lane, 1, false)))
        return false;
    struct ibv_sge all = {.addr = (uintptr_t)local, .length = (uint32_t)len};
    struct ibv_send_wr wr;
    wr.next = NULL;
    wr.sg_list = &all;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_INLINE;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = ib_rkey(key, ep->peer_adapter);
    ep->used = ep->ib->tick;
    ib_lane_prepare_work(lane, &wr, false)->frame = true;
    ib_lane_post_send(lane, &wr);
    return true;
}

int ib_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op)
{
    if (!op && likely(put_inline_silent(peer->endpoint, local, remote, key, len))) {
        counter_add(&put_bytes, len);
        return 0;
    }
    int rc =
        post_rdma_transfer(peer->endpoint, IBV_WR_RDMA_WRITE, (uintptr_t)local, mem, remote, key, len, op);
    counter_add(&put_bytes, rc == 0 ? len : 0);
    return rc;
}

int ib_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op)
{
    int rc =
        post_rdma_transfer(peer->endpoint, IBV_WR_RDMA_READ, (uintptr_t)local, mem, remote, key, len, op);
    counter_add(&get_bytes, rc == 0 ? len : 0);
    return rc;
}

int ib_atomic(struct peer *peer, const struct net_atomic *change, uint64_t *old, const struct net_mem *mem,
              uint64_t remote, const struct net_key *key, struct net_op *op)
{
    struct ib_endpoint *ep = peer->endpoint;
    if (unlikely(!frame_route_is_ready(&ep->route)))
        return ib_frame_open_connection(ep);
    struct ib_lane *lane =
        &ep->lanes[ep->ib->lanes - 1]; /* the queue pair of post_rdma_transfer: requests keep their order */
    if (unlikely(!ib_lane_has_room(lane, 1, false)))
        return ib_lane_refuse_full();
    struct ibv_sge piece = {
        .addr = (uintptr_t)old, .length = sizeof(*old), .lkey = ib_lkey(mem, lane->adapter)};
    struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1};
    ib_lane_fill_atomic(change, remote, ib_rkey(key, ep->peer_adapter), &wr);
    ep->used = ep->ib->tick;
    ep->ops++;
    struct ib_work *w = ib_lane_prepare_work(lane, &wr, true);
    w->op = op;
    w->frame = true;
    ib_lane_post_send(lane, &wr);
    counter_add(&additions, 1);
    return 0;
}

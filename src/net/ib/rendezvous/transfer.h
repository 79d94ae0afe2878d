/* transfer.h: RDMA writes and reads of the user's memory: one queue pair (rdma.c), stripes over several rails (striped_transfer.c), and the
 * choice between them (transfer.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_TRANSFER_H
#define FP_NET_IB_TRANSFER_H

#include "net/ib/ib.h"

/* A put or get as requested from one queue pair. */
struct ib_transfer {
    enum ibv_wr_opcode opcode;
    uintptr_t local;
    uint64_t remote;
    uint32_t lkey, rkey;
    const struct ib_rdma *whole; /* record for repetition; NULL: the caller repeats the transfer */
};

/* rdma.c */
int ib_rdma_post(struct ib_lane *lane, const struct ib_transfer *t, size_t len, struct net_op *op);
int ib_rdma_post_primary(struct ib_endpoint *ep, const struct ib_rdma *r, struct net_op *op);

/* transfer.c */
int ib_put(struct peer *peer, const void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op);
int ib_get(struct peer *peer, void *local, const struct net_mem *mem, uint64_t remote,
           const struct net_key *key, size_t len, struct net_op *op);
int ib_atomic(struct peer *peer, const struct net_atomic *change, uint64_t *old, const struct net_mem *mem,
              uint64_t remote, const struct net_key *key, struct net_op *op);

/* striped_transfer.c */
int ib_stripe_open(struct ib *ib);
void ib_stripe_close(struct ib *ib);
int ib_stripe_transfer(struct ib_endpoint *ep, enum ibv_wr_opcode opcode, uintptr_t local,
                       const struct net_mem *mem, uint64_t remote, const struct net_key *key, size_t len,
                       struct net_op *op);
void ib_stripes_retry(struct ib *ib); /* posts stripes that waited for room in a send queue */
void ib_stripes_repeat(struct ib_endpoint *ep,
                       unsigned pair); /* posts stripes again that failed on the pair */
void ib_stripes_set_pair(struct ib_endpoint *ep, unsigned pair, bool up);
void ib_stripes_set_weights(struct ib_endpoint *ep);
void ib_stripes_forget(struct ib_endpoint *ep); /* frees transfers whose callers no longer wait */
void ib_stripes_fail(struct ib_endpoint *ep);   /* the peer has died: all transfers end with an error */
bool ib_is_stripe(
    const struct net_op *op); /* one stripe of a transfer; striped_transfer.c repeats it after a failure */

/* True if the transfer is large enough to be striped and more than one rail may reach the peer. */
static inline bool ib_may_stripe(const struct ib *ib, const struct ib_endpoint *ep, size_t len)
{
    return unlikely(ep->has_several_rails) && len >= ib->stripe_from;
}

#endif

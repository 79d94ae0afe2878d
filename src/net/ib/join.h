/* join.h: the subchannels of a connection [Liu04 8.2.2]: one queue pair for each pair of rails, in addition to the queue
 * pairs on rail 0 of both processes. They are created when the first large transfer needs them, so that an idle peer
 * costs nothing, and carry RDMA writes and reads only. The two ends exchange what they need to know through the
 * connection itself (struct ib_rails_said).
 *
 * Pair 0 is the lane of the connection that carries RDMA writes and reads without additional rails.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_JOIN_H
#define FP_NET_IB_JOIN_H

#include "base/list.h"
#include "net/ib/lane.h"
#include "net/ib/spread.h"
#include "net/ib/wire.h"
#include "net/rails/adapt.h"
#include "net/rails/joint.h"
#include "net/rails/least.h"
#include "net/rails/mux.h"

struct ib_endpoint;
struct ib_reserve_out;

struct ib_subchannel {
    struct ib_lane lane;
    struct joint joint;
    uint8_t mine, yours; /* rails */
    bool tired;          /* it has failed: rest until the next pulse, or until a port is up again */
};

struct ib_join {
    uint32_t count; /* pairs; 0: the peer has not spoken yet */
    uint32_t up;    /* pairs that transfers may take */
    uint32_t theirs;
    struct ib_rail_said peer[IB_RAILS_MAX];
    struct ib_subchannel pairs[RAILS_MAX]; /* 0: only mine and yours */
    double weight[RAILS_MAX];              /* even and weighted striping */
    struct adapt adapt;
    struct least least;       /* how finely messages are divided, where that is measured */
    struct mux mux;           /* which pair the next whole message takes */
    struct ib_spread *spread; /* NULL: frames stay on the home */
    bool anew;                /* pairs are dropped because the connection is opened again */
    bool rings;               /* slots of its ring may be written over any pair */
    uint16_t frames;          /* receive buffers of each pair at the peer; 0: it takes no frames there */
    struct list under_way;    /* struct ib_striped */
    struct ib_reserve_out *reserve; /* NULL: nothing was ever reserved (allot.h) */
};

void ib_join_want(struct ib_endpoint *ep); /* a large transfer would like more rails */
size_t ib_join_say(const struct ib_endpoint *ep, struct ib_rails_said *out); /* its length */
void ib_join_heard(struct ib_endpoint *ep, const struct ib_rails_said *said);
void ib_join_failed(struct ib_lane *lane, const char *why);
void ib_join_drops(struct ib *ib); /* pairs that failed */
void ib_join_again(struct ib_endpoint *ep,
                   unsigned pair); /* drops the pair, though it works; both ends join it anew */
void ib_join_ports(struct ib *ib,
                   bool rested);           /* ports went down or came up; rested: try again what failed */
void ib_join_free(struct ib_endpoint *ep); /* the connection closes */

/* stripe.c: what happens to the transfers. */
void ib_stripe_settled(struct ib_endpoint *ep, unsigned pair); /* those that failed there can be repeated */
void ib_stripe_rail(struct ib_endpoint *ep, unsigned pair, bool up);
bool ib_stripe_is(const struct net_op *op); /* a part of a larger transfer, which sends it again itself */
void ib_stripe_weights(struct ib_endpoint *ep);
void ib_stripe_forget(struct ib_endpoint *ep);
void ib_stripe_lost(struct ib_endpoint *ep); /* the peer has died: all its transfers end with an error */

#endif

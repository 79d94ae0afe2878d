/* rails.h: queue pairs of a connection on further rails [Liu04 8.2]: joined when the first large transfer or a few larger frames
 * need them (pairs.c), frames over them (spread.c), and rails that are reserved for one transfer at a time (allot.c).
 * net/rails has the policies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_RAILS_H
#define FP_NET_IB_RAILS_H

#include "net/ib/ib.h"
#include "net/rails/alloc.h"
#include "net/rails/frame.h"

/* ---- pairs.c: the two ends exchange what they need through the connection (IB_RAILS) ---- */

enum ib_frames_policy { IB_FRAMES_AUTO, IB_FRAMES_BINDING }; /* then as enum mux_policy */
enum ib_frames_policy ib_frames_policy(void);
bool ib_frames_may_spread(const struct ib_endpoint *ep); /* frames may take several rails */

void ib_pairs_request(struct ib_endpoint *ep); /* further rails would be used */
size_t ib_pairs_fill_message(struct ib_endpoint *ep, void *body);
void ib_pairs_take_message(struct ib_endpoint *ep, const struct ib_rails_message *message);
void ib_pair_report_failure(struct ib_lane *lane, const char *why);
void ib_pairs_drop_failed(struct ib *ib);
void ib_pair_rejoin(struct ib_endpoint *ep, unsigned pair); /* drops the pair, though it works */
void ib_pairs_check_ports(struct ib *ib, bool rested);      /* rested: try again what failed */
void ib_pairs_flush_credits(struct ib_endpoint *ep);        /* that found no room */
void ib_pairs_free(struct ib_endpoint *ep);                 /* the connection closes */

/* ---- spread.c: each pair that carries frames has receive buffers and credits of its own. The sequence number puts in order what
 * arrives over several pairs. A pair that fails with frames under way takes the connection with it: its queue pairs on all rails
 * are destroyed at both ends, and what is missing is sent again (docs/failover.md) ---- */

/* What the frames of a connection have on its pairs. */
struct ib_spread {
    struct mux mux;
    uint32_t seen[RAILS_MAX];  /* requests of the pair whose end mux knows */
    uint64_t quiet[RAILS_MAX]; /* bytes since the last request that reports */
    uint32_t
        *bytes[RAILS_MAX]; /* of the frame at each place of the send queue, as mux counts it; NULL: unused */
};

int ib_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len);
int ib_reserve(struct peer *peer, size_t len, void **payload);
void ib_commit(struct peer *peer, const struct frame_header *header, size_t len);
void ib_spread_start(
    struct ib_endpoint *ep); /* the connection is open: several rails are wanted, or watched for */
void ib_spread_open(struct ib_endpoint *ep); /* its pairs are known */
void ib_spread_close(struct ib_endpoint *ep);
void ib_spread_update_route(struct ib_endpoint *ep);  /* pairs came or went */
void ib_spread_reset_primary(struct ib_endpoint *ep); /* its primary rail is open again */
void ib_spread_reset_pair(struct ib_lane *lane);
void ib_spread_fail_pairs(struct ib_endpoint *ep); /* nothing arrives on its pairs any more */
void ib_spread_rejoin_pairs(
    struct ib_endpoint *ep); /* what was under way is collected; the pairs are joined anew */
bool ib_spread_is_quiet(
    struct ib_endpoint *ep); /* no frame is under way on pairs; else requests completions */
void ib_spread_post_markers(
    struct ib_endpoint *ep); /* CLOSE or AGREE was sent: the ends of pairs count too */
bool ib_spread_has_room(const struct ib_endpoint *ep); /* for that */

/* ---- allot.c: FISHPLATE_IB_STRIPE=basic, local, dynamic or hybrid, for adapters that cannot send and receive at full speed at
 * once [Coll01]. A process stands for a node of the paper; a put and a get reserve alike ---- */

/* Frames that wait for a message to the peer. */
#define IB_RESERVE_WAIT 64
struct ib_reserve_out {
    uint32_t count;
    struct frame frame[IB_RESERVE_WAIT];
    uint32_t transfers[RAILS_MAX]; /* of this process with the peer, by rail; local only */
    uint32_t peer_uses;            /* rails that carry transfers of the peer with this process */
    bool in_use_changed;           /* the peer has not been notified yet */
};

int ib_allot_open(struct ib *ib, enum alloc_policy policy);
void ib_allot_close(struct ib *ib);
int ib_allot_rails(
    struct ib_endpoint *ep, uint64_t bytes,
    uint32_t *set); /* 0: the transfer may go over the pairs in *set, all up. ERR_AGAIN: not now */
uint32_t ib_allot_start(struct ib_endpoint *ep,
                        uint32_t set); /* it goes; those of them that are reserved for it */
void ib_allot_cancel(
    struct ib_endpoint *ep); /* it goes over the primary rail: what it was granted is for others */
void ib_allot_release(struct ib_endpoint *ep, uint32_t set, uint32_t reserved); /* it is over */
size_t ib_allot_fill_message(struct ib_endpoint *ep, void *body);
bool ib_allot_has_frames(const struct ib_endpoint *ep);
void ib_allot_take_message(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
bool ib_allot_is_busy(const struct ib_endpoint *ep); /* something is reserved or requested: do not close */
void ib_allot_forget_peer(struct ib_endpoint *ep);   /* the peer has died */
void ib_allot_close_peer(struct ib_endpoint *ep);    /* the connection closes */

#endif

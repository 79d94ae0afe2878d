/* rails.h: queue pairs of a connection on further rails [Liu04 8.2]: connected when the first large transfer
 * or a few larger frames need them (pairs.c), and frames over them (spread.c). src/net/rails has the
 * policies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_RAILS_H
#define FP_NET_IB_RAILS_H

#include "net/ib/ib.h"

/* ---- pairs.c: the two ends exchange what they need through the connection (IB_RAILS) ---- */

enum ib_frames_policy { IB_FRAMES_AUTO, IB_FRAMES_BINDING }; /* then those of enum mux_policy */
enum ib_frames_policy ib_frames_get_policy(void);
bool ib_frames_can_spread(const struct ib_endpoint *ep); /* true if frames may use several rails */

void ib_pairs_request(struct ib_endpoint *ep); /* starts to connect further rails */
size_t ib_pairs_fill_message(struct ib_endpoint *ep, void *body);
void ib_pairs_take_message(struct ib_endpoint *ep, const struct ib_rails_message *message);
void ib_pair_report_failure(struct ib_lane *lane, const char *why);
void ib_pairs_drop_failed(struct ib *ib);
void ib_pair_rejoin(struct ib_endpoint *ep, unsigned pair); /* drops a working pair and connects it again */
void ib_pairs_check_ports(struct ib *ib, bool rested);      /* rested: also connects failed pairs again */
void ib_pairs_free(struct ib_endpoint *ep);

/* ---- spread.c: each pair that carries frames has receive buffers and credits of its own. The sequence number puts in order what
 * arrives over several pairs. A pair that fails with frames under way takes the connection with it: its queue pairs on all rails
 * are destroyed at both ends, and what is missing is sent again (docs/failover.md) ---- */

/* The state of frames spread over the rails of a connection. */
struct ib_spread {
    struct mux mux;
    uint32_t seen[RAILS_MAX];   /* requests of the pair whose completion was reported to mux */
    uint64_t quiet[RAILS_MAX];  /* bytes posted since the last signalled request */
    uint32_t *bytes[RAILS_MAX]; /* bytes of each frame in the send queue, as mux counts them; NULL: unused */
};

int ib_send(struct peer *peer, uint64_t head, uint64_t from, uint64_t word, const void *payload, size_t len);
int ib_reserve(struct peer *peer, size_t len, void **payload);
void ib_commit(struct peer *peer, const struct frame_header *header, size_t len);
void ib_spread_start(struct ib_endpoint *ep); /* called when the connection has opened */
void ib_spread_open(struct ib_endpoint *ep);  /* called when the pairs of rails are known */
void ib_spread_close(struct ib_endpoint *ep);
void ib_spread_update_route(struct ib_endpoint *ep);  /* called when pairs were connected or dropped */
void ib_spread_reset_primary(struct ib_endpoint *ep); /* called when the connection was reopened */
void ib_spread_reset_pair(struct ib_lane *lane);
void ib_spread_fail_pairs(struct ib_endpoint *ep); /* no message arrives over the pairs afterwards */
void ib_spread_rejoin_pairs(
    struct ib_endpoint *ep); /* records unacknowledged messages, and connects the pairs again */
bool ib_spread_all_sends_done(
    struct ib_endpoint *ep); /* if false, completions of frames over pairs were requested */
/* After CLOSE or AGREE: posts the last message (marker) of each pair's queue pair. */
void ib_spread_post_markers(struct ib_endpoint *ep);
bool ib_spread_has_room(
    const struct ib_endpoint *ep); /* true if the send queues of all pairs have room for markers */

/* ---- Allotment: a policy that decides which rails a large transfer takes as a whole, and when. NULL in struct ib: a transfer is divided
 * among all rails that are up, at once. Only the laboratory has such policies (lab/mechanisms/rails) ---- */

struct ib_allotment {
    void (*close)(struct ib *ib);
    /* 0: the transfer may use the pairs in *set, which are all up. ERR_AGAIN: not yet. */
    int (*choose)(struct ib_endpoint *ep, uint64_t bytes, uint32_t *set);
    void (*decline)(struct ib_endpoint *ep, uint32_t set, uint64_t bytes); /* the send queues had no room */
    uint32_t (*start)(struct ib_endpoint *ep,
                      uint32_t set);        /* returns the pairs that are reserved for the transfer */
    void (*cancel)(struct ib_endpoint *ep); /* the transfer uses the primary rail without a choice */
    void (*release)(struct ib_endpoint *ep, uint32_t set, uint32_t reserved, uint64_t bytes);
    /* The body and the handler of IB_RESERVE messages. */
    size_t (*fill_message)(struct ib_endpoint *ep, void *body);
    void (*take_message)(struct ib_endpoint *ep, const struct ib_head *h, size_t len);
    bool (*has_messages)(const struct ib_endpoint *ep);
    bool (*is_busy)(const struct ib_endpoint *ep); /* rails are reserved or requested: must not close */
    void (*forget_peer)(struct ib_endpoint *ep);   /* the peer has died */
    void (*close_peer)(struct ib_endpoint *ep);    /* the connection closes: frees ib_pairs.allot_peer */
};

enum ib_allot_policy {
    IB_ALLOT_TURNS,
    IB_ALLOT_SHARES,
    IB_ALLOT_WINDOW,
    IB_ALLOT_ROOM,
    IB_ALLOT_STAGES,
    IB_ALLOT_BASIC,
    IB_ALLOT_LOCAL,
    IB_ALLOT_DYNAMIC,
    IB_ALLOT_HYBRID,
    IB_ALLOT_STATIC
};

/* Sets ib->allot and ib->allot_state. Weak: NULL if the library was built without the laboratory. */
int ib_laboratory_allot_open(struct ib *ib, enum ib_allot_policy policy) __attribute__((weak));

#endif

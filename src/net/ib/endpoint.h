/* endpoint.h: a connection to one peer: its queue pairs, its rings, and the control messages that wait to be
 * sent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_IB_ENDPOINT_H
#define FP_NET_IB_ENDPOINT_H

#include "net/ib/lane.h"
#include "net/ib/join.h"
#include "net/ib/policy/conn.h"
#include "net/ib/policy/ring.h"
#include "net/ib/wire.h"
#include "net/peer.h"
#include "net/rails/pair.h"

/* The ways that a connection may take, where there are several rails. */
struct ib_ways {
    uint32_t theirs_up;             /* rails of the peer whose ports are up, as it said last */
    uint8_t count, theirs, at;      /* at: the way of now */
    uint8_t next;                   /* to take when it moves; RAIL_NONE: choose */
    struct pair way[PAIR_WAYS_MAX]; /* a: my rail, b: that of the peer */
    struct ib_rail_said peer[IB_RAILS_MAX];
};

enum ib_ring_state { IB_RING_NONE, IB_RING_USED, IB_RING_LEAVING };

struct ib_endpoint {
    struct ib *ib;
    struct peer *peer; /* NULL: a guest who has gone; the next peer takes its place */
    struct conn conn;
    bool ready;      /* open, and nothing of before it broke is left to be sent: frames may go */
    bool plain;      /* and they go over the home alone */
    bool spread;     /* they go over several rails */
    uint8_t watched; /* so many larger ones more, and they shall (spread.c) */
    bool breaking;   /* its queue pairs have failed: it moves at the next look (move.c) */
    uint8_t home;    /* my rail that carries it */
    uint8_t yours;   /* the peer's */
    uint8_t their_adapter;
    uint16_t next_seq; /* of what I send */
    uint16_t expected; /* the paper's ESN */
    uint32_t id;       /* index in ib->endpoints */

    /* The ring I write to, when the peer polls me. */
    bool tx_on;
    bool tx_by_imm; /* its adapter may show a frame's end before the rest: announce by an immediate */
    struct ring_tx tx;
    struct ib_buffer *tx_mirror;
    uint64_t tx_address;
    uint32_t tx_rkey[IB_ADAPTERS_MAX]; /* by the peer's adapter */
    size_t tx_frame_max;               /* payload */
    struct ibv_send_wr tx_work;        /* prefilled: only addresses and length change */
    struct ibv_sge tx_piece;
    /* The ring I poll. */
    enum ib_ring_state rx_state;
    struct ring_rx rx;
    struct ib_buffer *rx_memory;
    uint32_t rx_traffic;   /* pollset's */
    uint32_t rx_announced; /* frames whose immediate came, where that is how they are found */
    bool bell_rung;        /* I set the peer's word, and nothing has come from it since: it is still set */
    struct list held;      /* arrived through a lane before their turn; by seq */
    uint64_t used;         /* ib->tick of its last frame: who is idle longest */
    /* A word the peer sets before it sleeps: what is written into its ring then needs a knock. */
    struct ib_buffer *bell;
    struct ib_lane lanes[IB_LANES];

    struct ib_ways *ways;         /* NULL: a guest, and what fails ends the job */
    struct list kept;             /* frames that may not have arrived when it broke; by seq */
    struct list kept_rdma;        /* and transfers: struct ib_kept */
    struct ib_fate asks, answers; /* what IB_ASK and IB_SAW say */
    uint64_t broken;              /* since when, in ns; 0: it is not */
    bool fled;                    /* because my own port went down */
    uint8_t vain;                 /* connections in a row on which nothing was sent before they failed */
    struct ib_join *join;         /* further rails; NULL: nobody has wanted any */
    bool several;                 /* one of us has more than one rail */
    uint32_t unsaid;              /* control messages to send, a bit each: 1 << enum ib_type */
    struct list unsaid_link;      /* ib->unsaid: they found no room */
    uint32_t last_words;          /* ends of lanes that are on their way since my CLOSE or AGREE */
    bool left;                    /* the peer has said LEAVE */
    bool leaving;                 /* I have, and begin nothing more */
    bool accused;                 /* the launcher was told that it does not answer (lost.c) */
    enum ibv_wc_status why;       /* CONN_FAILED: what the adapter said; success: the peer never answered */

    uint64_t peer_bell; /* the word that I set at the peer */
    uint32_t peer_bell_key;
    bool again; /* the place of a guest who has gone */

    uint32_t ops;       /* puts and gets in flight */
    struct list asking; /* ib->asking: waiting for an answer */
    uint64_t deadline;
    uint64_t asked;            /* since when HELLOs are repeated */
    struct ib_address address; /* of the peer */
    struct ib_address alternate;
    struct ibv_ah *ah;

    /* Between reserve and commit. */
    struct ib_lane *reserved_lane; /* over which it goes */
    struct ib_buffer *reserved;    /* NULL: the ring */
    char *reserved_room;
    bool reserved_waited;
};

int ib_connect(struct transport *t, struct peer *peer);
void ib_disconnect(struct transport *t, struct peer *peer);
void ib_part(struct transport *t, struct peer *peer, bool begin);

/* lost.c. The peer has died. */
void ib_lost(struct transport *t, struct peer *peer);
/* The adapter gives the peer up. False: the job cannot go on without it. True: the launcher was told, and says so to all. */
bool ib_accuse(struct ib_endpoint *ep);
void ib_endpoint_do(struct ib_endpoint *ep, unsigned actions);
void ib_endpoint_hello(struct ib_endpoint *ep, const struct ib_hello *h);
void ib_endpoint_again(struct ib_endpoint *ep); /* drops its queue pairs and asks anew */
void ib_endpoint_want(struct ib_endpoint *ep);
bool ib_endpoint_busy(const struct ib_endpoint *ep);
void ib_endpoints_free(struct ib *ib); /* the memory of all, when the transport closes */

static inline void ib_set_ready(struct ib_endpoint *ep, bool ready)
{
    ep->ready = ready;
    ep->plain = ready && !ep->spread && ep->watched == 0;
}

void ib_endpoints_pulse(struct ib *ib);

#endif

/* written_part.h: what the files of the barrier between nodes share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_WRITTEN_PART_H
#define FP_COLL_WRITTEN_PART_H

#include <stdalign.h>

#include "base/cpu.h"
#include "base/mapping.h"
#include "coll/meeting.h"
#include "coll/written.h"

#define WRITTEN_PARTNERS 64 /* of all rounds */
#define WRITTEN_LANES    64

/* A byte a lane. Barriers that may be under way at the same time, in any order, need flags of their own: each persistent
 * request has a lane, all other barriers share the first one, where they take turns. */
struct written_line {
    alignas(CACHE_LINE) _Atomic uint8_t turn[WRITTEN_LANES];
};
/* In the node's shared memory. Every line has one writer: the leader's is `release`, the others' are report[1] and so on. */
struct written_block {
    alignas(CACHE_LINE) _Atomic uint32_t users;
    struct written_line release;
    struct written_line report[];
};

/* How leaders meet. */
enum written_way {
    WAY_INVITE,  /* the first barrier: messages that carry where to write */
    WAY_WRITE,   /* RDMA writes into flags */
    WAY_MESSAGE, /* the schedule of an algorithm */
    WAY_SWITCH,  /* the network does it */
    WAY_TREE,    /* messages up a tree of leaders, and one multicast of the first one */
    WAYS
};

/* What a leader tells those who will write to it. */
struct written_invitation {
    uint64_t address;
    struct net_key key;
    uint32_t all_write, all_switch; /* the leaders heard of so far can do it by writes, by the switch */
    uint32_t group;                 /* of the switch; WRITTEN_NO_GROUP until leader 0 is heard of */
};
#define WRITTEN_NO_GROUP UINT32_MAX

/* What a leader tells its node at the end of the first barrier. */
struct written_note {
    uint64_t block; /* offset, or UINT64_MAX */
    uint32_t way, switched;
};

struct written_partner {
    struct peer *to;
    uint64_t address; /* of the flag of lane 0 */
    struct net_key key;
};

struct written_lane {
    struct meeting meeting;
    struct list runs; /* the first one is under way */
};

struct written {
    struct comm *comm;         /* may be gone when the last request is freed */
    struct coll_choice choice; /* that it was opened for */
    struct net *net;
    bool busy;            /* making room for a write: nothing else may go on */
    enum written_way way; /* of barriers that begin now, but for those that the switch does */
    bool switched;        /* barriers of the first lane are done by the switch */
    int rounds[WAYS];
    uint32_t refs;   /* the communicator, and requests */
    int lanes;       /* in use */
    bool may_write;  /* this choice of algorithm means RDMA writes, ... */
    bool may_switch; /* ... and the switch, where it can */
    bool may_wire;   /* ... or, instead of the switch, the wires of a barrier network */
    bool may_multicast;
    uint64_t calls; /* barriers of the first lane so far */
    /* The node. */
    bool leads;
    int nlocal;
    int *local;                  /* its ranks; the first leads */
    int place;                   /* mine among them */
    struct written_block *block; /* NULL: messages */
    uint64_t block_offset;
    /* The leaders. */
    int leaders, leader; /* how many; mine */
    int *leader_rank;
    struct meeting_partner meets[WRITTEN_PARTNERS];
    struct written_partner partner[WRITTEN_PARTNERS];
    int partners;
    /* WAY_INVITE */
    struct written_invitation *inbox; /* by place */
    struct written_invitation mine;
    struct written_note note;
    /* WAY_WRITE */
    struct transport *transport;
    struct mapping memory;
    _Atomic uint8_t *flags; /* [partner][lane], in it */
    struct net_mem mem;
    struct net_key key;
    /* WAY_SWITCH */
    const struct transport_barrier *unit; /* of the transport; NULL: it has none */
    void *member;                         /* NULL: not joined */
    /* WAY_TREE */
    struct multicast *multicast; /* NULL: not opened, or the network has none */
    bool opened_multicast;       /* ... has been tried */
    int fan;
    /* WAY_MESSAGE */
    struct sched sched;
    uint32_t *round_at; /* its steps by round; one more for the end */
    struct written_lane lane[WRITTEN_LANES];
};

/* Everything but the agreement with the others. */
int written_open(struct coll_state *state, const struct coll_choice *choice, struct written **out);
void written_drop(struct written *w);

/* All leaders have been heard of. Returns before the others have done the same. */
void written_join(struct written *w);
/* The first barrier is over at this rank: all ranks have the same answer. */
void written_settle(struct written *w);

/* Tells partner i, in that lane, the number of the barrier that is under way there. */
int written_flag(struct written *w, int i, int lane);
/* A run that is in its lane; returns when it is over. */
void written_wait(struct written_run *r);
/* A barrier is over that was done this way. */
void written_count(const struct written *w, enum written_way way);

/* Messages of a run, which is not over before they are. */
void written_send(struct written_run *r, int rank, const void *data, size_t bytes);
void written_recv(struct written_run *r, int rank, void *data, size_t bytes);

/* ---- WAY_TREE: written_multicast.c ---- */

bool written_is_multicast(const struct coll_choice *choice);
/* Collective and blocking, so only MPI_Barrier does it. */
int written_open_multicast(struct written *w);
void written_close_multicast(struct written *w);
/* In round 0 a leader waits for its children; in round 1 it tells its parent, and the first leader sends. */
void written_tree_round(struct written_run *r, int round);
bool written_tree_over(struct written_run *r, int round);

#endif

/* barrier_internal.h: what the files of the barrier between nodes share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_BARRIER_BARRIER_INTERNAL_H
#define FP_COLL_BARRIER_BARRIER_INTERNAL_H

#include <stdalign.h>

#include "base/cpu.h"
#include "base/mapping.h"
#include "coll/barrier/barrier_machine.h"
#include "coll/barrier/hbarrier.h"

#define HBARRIER_PARTNERS 128 /* of all rounds */
#define HBARRIER_SETUPS   32  /* of all rounds of the agreement */
#define HBARRIER_LANES    64

/* A byte a lane. Barriers that may be under way at the same time, in any order, need flags of their own: each persistent
 * request has a lane, all other barriers share the first one, where they take turns. */
struct hbarrier_line {
    alignas(CACHE_LINE) _Atomic uint8_t turn[HBARRIER_LANES];
};
/* In the node's shared memory. Every line has one writer: the leader's is `release`, the others' are report[1] and so on. */
struct hbarrier_block {
    alignas(CACHE_LINE) _Atomic uint32_t users;
    struct hbarrier_line release;
    struct hbarrier_line report[];
};

/* How leaders meet. */
enum hbarrier_method {
    METHOD_SETUP,     /* the first barrier: messages that carry where to write */
    METHOD_WRITE,     /* RDMA writes into flags */
    METHOD_MESSAGE,   /* the schedule of an algorithm */
    METHOD_SWITCH,    /* the network does it */
    METHOD_MULTICAST, /* RDMA writes or messages up a tree of leaders, and one multicast of the first one */
    METHOD_COUNTER,   /* adapters add to a counter of the first leader, which then writes to all */
    HBARRIER_METHODS
};

/* A leader sends to each leader that will set a flag of it: */
struct hbarrier_address {
    uint64_t address; /* of the flag of lane 0 */
    struct net_key key;
};

/* Properties on which leaders agree, by dissemination: */
struct hbarrier_setup {
    struct hbarrier_address counter; /* of the first leader; address 0 until its message has arrived */
    uint32_t all_write, all_add,
        all_switch; /* all leaders known so far can use RDMA writes, atomics, the switch */
    uint32_t group; /* of the switch; HBARRIER_NO_GROUP until the message of leader 0 has arrived */
};
#define HBARRIER_NO_GROUP UINT32_MAX

/* Message of a leader to its node at the end of the first barrier. */
struct hbarrier_result {
    uint64_t block; /* offset, or UINT64_MAX */
    uint32_t method, switched;
};

struct hbarrier_partner {
    struct peer *to;
    struct hbarrier_address flag;  /* of `to` */
    struct hbarrier_address offer; /* of this leader's own flag, for `from` */
};

struct hbarrier_lane {
    struct barrier_machine machine;
    struct list runs;  /* the first one is under way */
    uint64_t arrivals; /* METHOD_COUNTER, first leader: additions when the barrier is complete */
};

struct hbarrier {
    struct comm *comm;         /* may be gone when the last request is freed */
    struct coll_choice choice; /* that it was opened for */
    struct net *net;
    bool busy;                   /* making room for a write: nothing else may go on */
    enum hbarrier_method method; /* of barriers that begin now, but for those that the switch does */
    bool switched;               /* barriers of the first lane are done by the switch */
    int rounds[HBARRIER_METHODS];
    uint32_t refs;   /* the communicator, and requests */
    int lanes;       /* in use */
    bool may_write;  /* this choice of algorithm means RDMA writes, ... */
    bool may_switch; /* ... and the switch, where it can */
    bool may_wire;   /* ... or, instead of the switch, the wires of a barrier network */
    bool may_multicast;
    bool may_count;
    uint64_t calls; /* barriers of the first lane so far */
    /* The node. */
    bool leads;
    int nlocal;
    int *local;                   /* its ranks; the first leads */
    int place;                    /* mine among them */
    struct hbarrier_block *block; /* NULL: messages */
    uint64_t block_offset;
    /* The leaders. */
    int leaders, leader; /* how many; mine */
    int *leader_rank;
    struct barrier_partner partner_at[HBARRIER_PARTNERS];
    struct hbarrier_partner partner[HBARRIER_PARTNERS];
    int partners;
    /* METHOD_SETUP */
    struct barrier_partner setup_at[HBARRIER_SETUPS];
    int setups, setup_rounds;
    struct hbarrier_setup *inbox; /* by place of setup_at */
    struct hbarrier_setup mine;
    struct hbarrier_result result;
    /* METHOD_WRITE */
    struct transport *transport;
    struct mapping memory;
    _Atomic uint8_t *flags; /* [partner][lane], in it */
    _Atomic uint64_t
        *counters; /* [lane], in it: METHOD_COUNTER; of other leaders than the first: previous values */
    struct net_mem mem;
    struct net_key key;
    /* METHOD_SWITCH */
    const struct transport_barrier *unit; /* of the transport; NULL: it has none */
    void *member;                         /* NULL: not joined */
    /* METHOD_MULTICAST */
    struct multicast *multicast; /* NULL: not opened, or the network has none */
    bool opened_multicast;       /* ... has been tried */
    int fan;
    /* METHOD_MESSAGE */
    struct sched sched;
    uint32_t *round_at; /* its steps by round; one more for the end */
    struct hbarrier_lane lane[HBARRIER_LANES];
};

/* Prepares the barrier except for the agreement with the other ranks. */
int hbarrier_open(struct coll_state *state, const struct coll_choice *choice, struct hbarrier **out);
void hbarrier_release(struct hbarrier *w);

/* The messages of all leaders have arrived. Returns before the other leaders have received theirs. */
void hbarrier_join(struct hbarrier *w);
/* The first barrier is complete at this rank: adopts the result, which is the same at all ranks. */
void hbarrier_adopt_result(struct hbarrier *w);

static inline struct hbarrier_lane *hbarrier_lane_of(const struct hbarrier_run *r)
{
    return &r->w->lane[r->lane];
}

/* Advances the barrier as far as possible without waiting. */
void hbarrier_advance(struct hbarrier_run *r);
/* True if `run` (a struct hbarrier_run) can advance. */
bool hbarrier_can_advance(void *run);
/* Writes the number of the barrier that is under way in that lane to the flag of partner i. */
int hbarrier_set_partner_flag(struct hbarrier *w, int i, int lane);
/* Sets the flags of this leader's partners of a round, or checks its own. */
void hbarrier_write_round(struct hbarrier_run *r, int round);
bool hbarrier_round_written(const struct hbarrier_run *r, int round);
/* Waits until a run that has its lane is complete. */
void hbarrier_wait(struct hbarrier_run *r);
/* Counts a complete barrier by its method. */
void hbarrier_count(const struct hbarrier *w, enum hbarrier_method method);

/* Keeps the first error of a run. */
void hbarrier_record_error(struct hbarrier_run *r, int rc);
/* Messages of a run, which is not over before they are. */
void hbarrier_send(struct hbarrier_run *r, int rank, const void *data, size_t bytes);
void hbarrier_recv(struct hbarrier_run *r, int rank, void *data, size_t bytes);

/* Runs a blocking barrier by RDMA writes if that is possible without waiting in rounds: a cached selection (state.h). */
bool hbarrier_run_fast(const struct coll_args *args, struct coll_state *state, int *rc);
bool hbarrier_can_run_fast(const struct hbarrier *w);

/* ---- METHOD_MULTICAST: release_multicast.c ---- */

bool hbarrier_is_multicast(const struct coll_choice *choice);
int hbarrier_tree_fan(const struct hbarrier *w);
/* Collective and blocking; called by MPI_Barrier only. */
int hbarrier_open_multicast(struct hbarrier *w);
void hbarrier_close_multicast(struct hbarrier *w);
/* The release by multicast: in round 0 a leader waits for its children; in round 1 it reports to its parent, and the
 * first leader sends. */
void hbarrier_tree_round(struct hbarrier_run *r, int round);
bool hbarrier_tree_over(struct hbarrier_run *r, int round);

#endif

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

#define HBARRIER_PARTNERS 128 /* partners of a leader in all rounds */
#define HBARRIER_SETUPS   32  /* partners of a leader in all rounds of the agreement of METHOD_SETUP */
#define HBARRIER_LANES    64

/* One byte for each lane. Barriers that may be in progress at the same time, in any order, need different
 * flags: each persistent request has its own lane; all other barriers share the first lane and run one after
 * the other. */
struct hbarrier_line {
    alignas(CACHE_LINE) _Atomic uint8_t turn[HBARRIER_LANES];
};
/* In the node's shared memory. Every line has one writer: the leader's is `release`, the others' are
 * report[1] and so on. */
struct hbarrier_block {
    alignas(CACHE_LINE) _Atomic uint32_t users;
    struct hbarrier_line release;
    struct hbarrier_line report[];
};

/* How leaders synchronise. */
enum hbarrier_method {
    METHOD_SETUP,   /* the first barrier: messages that carry the addresses of flags */
    METHOD_WRITE,   /* RDMA writes into flags */
    METHOD_MESSAGE, /* the schedule of an algorithm */
    METHOD_SWITCH,  /* the barrier unit of the switch, or the wires of a barrier network */
    /* RDMA writes or messages up a tree of leaders, then one multicast from the first leader */
    METHOD_MULTICAST,
    METHOD_COUNTER, /* adapters add to a counter of the first leader, which then writes to all */
    HBARRIER_METHODS
};

/* The address of a flag, which its owner sends to the leader that will set the flag. */
struct hbarrier_address {
    uint64_t address; /* of the flag's byte for lane 0 */
    struct net_key key;
};

/* Properties on which leaders agree by dissemination. */
struct hbarrier_setup {
    struct hbarrier_address counter; /* of the first leader; address 0 until its message has arrived */
    /* all leaders known so far can use RDMA writes, atomics, the switch */
    uint32_t all_write, all_add, all_switch;
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
    struct hbarrier_address flag;  /* flag of `to` that this leader sets */
    struct hbarrier_address offer; /* this leader's flag that barrier_partner.from sets */
};

struct hbarrier_lane {
    struct barrier_machine machine;
    struct list runs; /* struct hbarrier_run; the first one is in progress */
    /* METHOD_COUNTER at the first leader: value of the counter when the barrier is complete */
    uint64_t arrivals;
};

struct hbarrier {
    struct comm *comm;         /* may be freed before the last request is */
    struct coll_choice choice; /* the choice that this barrier was opened for */
    struct net *net;
    bool busy;                   /* waits for room in a send queue: no run may advance */
    enum hbarrier_method method; /* of barriers that begin now, unless `switched` */
    bool switched;               /* barriers of the first lane use METHOD_SWITCH */
    int rounds[HBARRIER_METHODS];
    uint32_t refs;      /* references of the communicator and of requests */
    int lanes;          /* lanes in use */
    bool may_write;     /* the chosen algorithm permits RDMA writes */
    bool may_switch;    /* the chosen algorithm permits the barrier unit of the switch */
    bool may_wire;      /* the unit is the wires of a barrier network instead of the switch's */
    bool may_multicast; /* the chosen algorithm is "multicast" */
    bool may_count;     /* the chosen algorithm is "rdma_counter" */
    uint64_t calls;     /* barriers of the first lane so far */
    /* The node. */
    bool leads;                   /* this rank is its node's leader */
    int nlocal;                   /* ranks of this node */
    int *local;                   /* the ranks of this node; the first one leads */
    int place;                    /* index of this rank in `local` */
    struct hbarrier_block *block; /* NULL: the ranks of the node use messages */
    uint64_t block_offset;
    /* The leaders. */
    int leaders, leader; /* number of leaders; index of this node's leader */
    int *leader_rank;    /* rank of each leader */
    struct barrier_partner partner_at[HBARRIER_PARTNERS];
    struct hbarrier_partner partner[HBARRIER_PARTNERS];
    int partners;
    /* METHOD_SETUP */
    struct barrier_partner setup_at[HBARRIER_SETUPS];
    int setups, setup_rounds;
    struct hbarrier_setup *inbox; /* received messages, by index of setup_at */
    struct hbarrier_setup mine;   /* this leader's message, merged with those received so far */
    struct hbarrier_result result;
    /* METHOD_WRITE */
    struct transport *transport;
    struct mapping memory;
    _Atomic uint8_t *flags; /* [partner][lane], in `memory` */
    /* [lane], in `memory`. METHOD_COUNTER: the counter at the first leader; at other leaders the previous
     * value that their fetch-and-add returns. */
    _Atomic uint64_t *counters;
    struct net_mem mem;
    struct net_key key;
    /* METHOD_SWITCH */
    const struct transport_barrier *unit; /* barrier unit of the transport; NULL: none */
    void *member;                         /* NULL: not joined */
    /* METHOD_MULTICAST */
    struct multicast *multicast; /* NULL: not opened, or the network has no multicast */
    bool opened_multicast;       /* opening `multicast` was tried */
    int fan;                     /* children of a leader in the tree */
    /* METHOD_MESSAGE */
    struct sched sched;
    uint32_t *round_at; /* index of the first step of each round of `sched`; one more entry for the end */
    struct hbarrier_lane lane[HBARRIER_LANES];
};

/* Prepares the barrier except for the agreement with the other ranks. */
int hbarrier_open(struct coll_state *state, const struct coll_choice *choice, struct hbarrier **out);
void hbarrier_release(struct hbarrier *w);

/* Joins the group of the switch, or gives it back. Called when the messages of all leaders have arrived
 * here. */
void hbarrier_join(struct hbarrier *w);
/* The first barrier is complete at this rank: adopts the result, which is the same at all ranks. */
void hbarrier_adopt_result(struct hbarrier *w);

static inline struct hbarrier_lane *hbarrier_get_lane(const struct hbarrier_run *r)
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
/* Waits until the run, which is in the list of its lane, is complete. */
void hbarrier_wait(struct hbarrier_run *r);
/* Counts a complete barrier by its method. */
void hbarrier_count(const struct hbarrier *w, enum hbarrier_method method);

/* Keeps the first error of a run. */
void hbarrier_record_error(struct hbarrier_run *r, int rc);
/* Messages of a run, which is not over before they are. */
void hbarrier_send(struct hbarrier_run *r, int rank, const void *data, size_t bytes);
void hbarrier_recv(struct hbarrier_run *r, int rank, void *data, size_t bytes);

/* Runs a blocking barrier by RDMA writes if that is possible without waiting in rounds: a cached selection
 * (comm_state.h). */
bool hbarrier_run_fast(const struct coll_args *args, struct coll_state *state, int *rc);
bool hbarrier_can_run_fast(const struct hbarrier *w);

/* ---- METHOD_MULTICAST: release_multicast.c ---- */

bool hbarrier_is_multicast(const struct coll_choice *choice);
int hbarrier_tree_fan(const struct hbarrier *w);
/* Collective and blocking; called by MPI_Barrier only. */
int hbarrier_open_multicast(struct hbarrier *w);
void hbarrier_close_multicast(struct hbarrier *w);
/* The release by multicast: in round 0 a leader waits for its children; in round 1 it reports to its parent,
 * and the first leader sends. */
void hbarrier_tree_round(struct hbarrier_run *r, int round);
bool hbarrier_tree_over(struct hbarrier_run *r, int round);

#endif

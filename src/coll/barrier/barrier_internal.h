/* barrier_internal.h: internal declarations of the inter-node barrier.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_BARRIER_BARRIER_INTERNAL_H
#define FP_COLL_BARRIER_BARRIER_INTERNAL_H

#include <stdalign.h>

#include "base/cpu.h"
#include "base/mapping.h"
#include "coll/barrier/barrier_machine.h"
#include "coll/barrier/hbarrier.h"

#define HBARRIER_PARTNERS 128 /* limit of partners of a leader, summed over all rounds */
#define HBARRIER_SETUPS   32  /* limit of partners of a leader, summed over all rounds of METHOD_SETUP */
#define HBARRIER_LANES    64

/* Flags of one writer, one byte for each lane. Barriers that may be in progress at the same time, in any
 * order, need different flags: each persistent request has its own lane; all other barriers share lane 0
 * and run one after the other. */
struct hbarrier_line {
    alignas(CACHE_LINE) _Atomic uint8_t turn[HBARRIER_LANES];
};
/* Flags of a node, in its shared memory. Every line has one writer: the leader writes `release`, the rank
 * with place i in its node writes report[i]. */
struct hbarrier_block {
    alignas(CACHE_LINE) _Atomic uint32_t users;
    struct hbarrier_line release;
    struct hbarrier_line report[];
};

/* Methods by which the leaders of the nodes synchronise. */
enum hbarrier_method {
    METHOD_SETUP,   /* the first barrier: messages that carry the addresses of flags */
    METHOD_WRITE,   /* RDMA writes into flags */
    METHOD_MESSAGE, /* the schedule of an algorithm */
    METHOD_SWITCH,  /* the barrier unit of the switch, or a dedicated barrier network */
    /* RDMA writes or messages up a tree of leaders, then one multicast from the first leader */
    METHOD_MULTICAST,
    METHOD_COUNTER, /* leaders add 1 to a counter at the first leader, which then writes to all */
    HBARRIER_METHODS
};

/* The address of a flag, which its owner sends to the leader that will set the flag. */
struct hbarrier_address {
    uint64_t address; /* of the flag's byte for lane 0 */
    struct net_key key;
};

/* Properties on which leaders agree by dissemination. */
struct hbarrier_setup {
    struct hbarrier_address counter; /* at the first leader; address 0: not known yet */
    /* true if all leaders known so far can use RDMA writes, atomics, the barrier unit of the switch */
    uint32_t all_write, all_add, all_switch;
    uint32_t group; /* barrier group of the switch; HBARRIER_NO_GROUP: not known yet */
};
#define HBARRIER_NO_GROUP UINT32_MAX

/* Message of a leader to the ranks of its node at the end of the first barrier. */
struct hbarrier_result {
    uint64_t block; /* offset of struct hbarrier_block in the shared area; UINT64_MAX: none */
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
    struct comm *comm;         /* may be freed before the last request of this barrier */
    struct coll_choice choice; /* the choice that this barrier was opened for */
    struct net *net;
    bool busy;                   /* a send queue is full: no run may advance */
    enum hbarrier_method method; /* method of barriers that begin now, unless `switched` */
    bool switched;               /* barriers of the first lane use METHOD_SWITCH */
    int rounds[HBARRIER_METHODS];
    uint32_t refs;      /* references of the communicator and of requests */
    int lanes;          /* lanes in use */
    bool may_write;     /* the chosen algorithm permits RDMA writes */
    bool may_switch;    /* the chosen algorithm permits the barrier unit of the switch */
    bool may_wire;      /* `unit` is a dedicated barrier network, not the switch */
    bool may_multicast; /* the chosen algorithm is "multicast" */
    bool may_count;     /* the chosen algorithm is "rdma_counter" */
    uint64_t calls;     /* barriers of the first lane so far */
    /* The ranks of this node. */
    bool leads;                   /* this rank is its node's leader */
    int nlocal;                   /* ranks of this node */
    int *local;                   /* the ranks of this node; the first one leads */
    int place;                    /* index of this rank in `local` */
    struct hbarrier_block *block; /* NULL: the ranks of the node use messages */
    uint64_t block_offset;
    /* The leaders of all nodes. */
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
    /* By lane, in `memory`. METHOD_COUNTER: at the first leader the counter, at other leaders the result
     * of their fetch-and-add. */
    _Atomic uint64_t *counters;
    struct net_mem mem;
    struct net_key key;
    /* METHOD_SWITCH */
    const struct transport_barrier *unit; /* barrier unit of the transport; NULL: none */
    void *member;                         /* membership in the barrier group; NULL: not joined */
    /* METHOD_MULTICAST */
    struct multicast *multicast; /* NULL: not opened, or the network has no multicast */
    bool opened_multicast;       /* hbarrier_open_multicast() was called */
    int fan;                     /* children of a leader in the tree */
    /* METHOD_MESSAGE */
    struct sched sched;
    uint32_t *round_at; /* index of the first step of each round of `sched`; one more entry for the end */
    struct hbarrier_lane lane[HBARRIER_LANES];
};

/* Creates the inter-node barrier of a communicator. The first barrier agrees on the method. */
int hbarrier_open(struct coll_state *state, const struct coll_choice *choice, struct hbarrier **out);
void hbarrier_release(struct hbarrier *w);

/* Joins the barrier group of the switch if all leaders can use it, else frees the group. Called when the
 * setup messages of all leaders have arrived. */
void hbarrier_join(struct hbarrier *w);
/* Called at the end of the first barrier: adopts the method, which is the same at all ranks. */
void hbarrier_adopt_result(struct hbarrier *w);

static inline struct hbarrier_lane *hbarrier_get_lane(const struct hbarrier_run *r)
{
    return &r->w->lane[r->lane];
}

/* Advances the barrier as far as possible without waiting. */
void hbarrier_advance(struct hbarrier_run *r);
/* True if `run` (a struct hbarrier_run) can advance. */
bool hbarrier_can_advance(void *run);
/* Writes the number of the current barrier of the lane to the flag of partner i. */
int hbarrier_set_partner_flag(struct hbarrier *w, int i, int lane);
/* hbarrier_write_round() sets the flags of the partners of a round; hbarrier_round_written() checks the
 * flags that partners set. */
void hbarrier_write_round(struct hbarrier_run *r, int round);
bool hbarrier_round_written(const struct hbarrier_run *r, int round);
/* Waits until the run, which is in the list of its lane, is complete. */
void hbarrier_wait(struct hbarrier_run *r);
/* Increments the counter of completed barriers by this method. */
void hbarrier_update_counters(const struct hbarrier *w, enum hbarrier_method method);

/* Records the first error of a run. */
void hbarrier_record_error(struct hbarrier_run *r, int rc);
/* Post messages of a run, which completes only after all its messages have completed. */
void hbarrier_send(struct hbarrier_run *r, int rank, const void *data, size_t bytes);
void hbarrier_recv(struct hbarrier_run *r, int rank, void *data, size_t bytes);

/* Fast path of a blocking barrier by RDMA writes, cached by the communicator (coll_cached in
 * comm_state.h). Returns false if the general path must run. */
bool hbarrier_run_fast(const struct coll_args *args, struct coll_state *state, int *rc);
bool hbarrier_can_run_fast(const struct hbarrier *w);

/* ---- METHOD_MULTICAST: release_multicast.c ---- */

bool hbarrier_is_multicast(const struct coll_choice *choice);
int hbarrier_tree_fan(const struct hbarrier *w);
/* Opens the multicast group. Collective and blocking; called only by MPI_Barrier. */
int hbarrier_open_multicast(struct hbarrier *w);
void hbarrier_close_multicast(struct hbarrier *w);
/* Starts a round of METHOD_MULTICAST. Round 0: a leader waits for its children. Round 1: it reports to its
 * parent, or, at the first leader, sends the multicast. */
void hbarrier_tree_round(struct hbarrier_run *r, int round);
bool hbarrier_is_tree_round_complete(struct hbarrier_run *r, int round);

#endif

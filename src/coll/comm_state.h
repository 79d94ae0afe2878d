/* comm_state.h: what a communicator keeps for its collectives: the cached selection, the nodes of its ranks, and the state of each
 * executor.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_COMM_STATE_H
#define FP_COLL_COMM_STATE_H

#include "base/page.h"
#include "coll/sched/bind.h"
#include "coll/mismatch.h"
#include "coll/mismatch_query.h"
#include "coll/sched/plan.h"
#include "coll/select/select.h"

#define SCRATCH_MAX 65536 /* temporary memory kept for reuse */

struct shared;      /* shm/block.h */
struct hbarrier;    /* barrier/hbarrier.h */
struct multicast;   /* multicast/multicast.h */
struct coll_tuning; /* select/tuning.h */

/* A cached selection: runs a blocking call of one kind by the executor that the communicator uses for it. False: this call needs the
 * selection. */
typedef bool coll_cached(const struct coll_args *args, struct coll_state *state, int *rc);

struct coll_state {
    struct comm *comm;
    coll_cached *cached[COLL_KINDS]; /* NULL: none */
    bool one_node;                   /* all ranks on this node, and it has memory to share */
    bool nodes;                      /* ranks on several nodes, and it is known who is where */
    int node_count;                  /* 0: not known */
    int node_ranks;                  /* ranks of the node that has most; 0: not known */
    struct page_comm *page; /* where calls are counted for readers; own when there is no such place */
    struct page_comm own;
    uint64_t past[COLL_FORMS][COLL_PAST]; /* calls by form and number: see coll_make_past */
    void (*look_at_record)(const struct comm *c, const void *record,
                           uint64_t length); /* NULL, or debug_check_record */
    struct query_state query;                /* of waits that last */
    bool order_reported; /* by debug.c: ranks call blocking and nonblocking ones in different orders */
    bool neighbors;      /* the lists below are filled */
    int nsources, ndestinations;
    int *sources, *destinations, *receive_order; /* one block, at sources */
    struct coll_choice *selected_barrier; /* of blocking ones, by the laboratory; NULL: the rules select */
    struct coll_tuning *tuning;           /* NULL until a call on several nodes */
    /* Schedules. */
    struct plan_cache plans;
    struct coll_request *spare; /* finished ones, by their next pointer */
    void *scratch;
    size_t scratch_size;
    bool scratch_busy;
    /* Shared memory of the node. */
    struct shared *shared; /* NULL until agreed on */
    bool shared_tried;
    uint16_t short_limit[COLL_KINDS]; /* calls of fewer bytes use the shared block; 0: not computed */
    /* Barriers between nodes. */
    struct hbarrier
        *hbarrier[FORM_PERSISTENT]; /* by form; persistent ones use that of blocking ones; NULL until used */
    uint8_t barriers_before[FORM_PERSISTENT]; /* ... it is used */
    /* Multicast. */
    struct multicast *multicast;       /* NULL until used */
    bool multicast_opening;            /* its own collectives go by schedules */
    struct multicast *multicast_older; /* forgotten, but requests use it */
};

int coll_state_open(struct comm *c, struct coll_state **out);

static inline int coll_state(struct comm *c, struct coll_state **out)
{
    if (likely(c->coll != NULL)) {
        *out = c->coll;
        return 0;
    }
    return coll_state_open(c, out);
}

/* Numbers a call among those of its form on its communicator and remembers what it is; how: see coll_make_past. In an
 * intercommunicator's groups the root goes by different names. */
static inline uint32_t coll_number_call(struct coll_state *state, const struct coll_args *args,
                                        enum coll_form form, unsigned how)
{
    struct comm *c = state->comm;
    /* A program that never waits long would never make the check otherwise. */
    if (unlikely(c->coll_sequence[form] % COLL_PAST == COLL_PAST - 1) &&
        p2p_unexpected_length(c->proc->p2p) > 0)
        mismatch_check_all(c->proc);
    const uint32_t number = c->coll_sequence[form]++;
    const int root = kind_has_root(args->kind) && !c->remote ? args->root : 0;
    state->past[form][number % COLL_PAST] = coll_make_past(args->kind, root, how);
    return number;
}

#endif

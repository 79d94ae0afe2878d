/* comm_state.h: the state of a communicator's collectives: the cached selection, the nodes of its ranks,
 * and the state of each executor.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_COMM_STATE_H
#define FP_COLL_COMM_STATE_H

#include "base/status_page.h"
#include "coll/sched/bind.h"
#include "coll/mismatch.h"
#include "coll/mismatch_query.h"
#include "coll/sched/plan.h"
#include "coll/select/select.h"

#define SCRATCH_MAX 65536 /* limit in bytes of temporary memory cached for reuse */

struct shared;      /* shm/block.h */
struct hbarrier;    /* barrier/hbarrier.h */
struct multicast;   /* multicast/multicast.h */
struct coll_tuning; /* select/tuning.h */

/* A cached selection: a function that runs a blocking call of one kind by the executor that the
 * communicator uses for it. Returns false if this call needs the full selection. */
typedef bool coll_cached(const struct coll_args *args, struct coll_state *state, int *rc);

struct coll_state {
    struct comm *comm;
    coll_cached *cached[COLL_KINDS]; /* by kind of collective; NULL: none cached */
    bool one_node;                   /* all ranks are on this node, which has shared memory */
    bool nodes;                      /* ranks are on several nodes, and each rank's node is known */
    int node_count;                  /* 0: not known */
    int node_ranks;                  /* ranks of the node with most ranks; 0: not known */
    struct page_comm *page; /* counts of calls that other processes read; `own` if this process has no page */
    struct page_comm own;
    uint64_t past[COLL_FORMS][COLL_PAST]; /* last calls by form and number (coll_make_past) */
    void (*check_record)(const struct comm *c, const void *record,
                         uint64_t length); /* NULL, or debug_check_record */
    struct query_state query;              /* queries to peers about calls that have waited long */
    /* coll_debug.c has reported that ranks call blocking and nonblocking collectives in different orders */
    bool order_reported;
    bool neighbors; /* the following lists of neighbours are valid */
    int nsources, ndestinations;
    int *sources, *destinations, *receive_order; /* all in one allocation, at `sources` */
    /* choice of the laboratory for MPI_Barrier; NULL: the rules select */
    struct coll_choice *selected_barrier;
    struct coll_tuning *tuning; /* NULL until the first call that may be tuned */
    /* Schedules. */
    struct plan_cache plans;
    struct coll_request *spare; /* list of freed requests for reuse, linked by coll_request.spare */
    void *scratch;
    size_t scratch_size;
    bool scratch_busy;
    /* Shared memory of the node. */
    struct shared *shared; /* NULL until all ranks have agreed to use the shared block */
    bool shared_tried;
    uint16_t short_limit[COLL_KINDS]; /* calls of fewer bytes use the shared block; 0: not computed */
    /* Barriers between nodes. */
    struct hbarrier *hbarrier[FORM_PERSISTENT]; /* by form (persistent: as blocking); NULL until used */
    /* number of barriers by messages before hbarrier[form] was opened */
    uint8_t barriers_before[FORM_PERSISTENT];
    /* Multicast. */
    struct multicast *multicast;       /* NULL until used */
    bool multicast_opening;            /* the collectives that open the group must not use multicast */
    struct multicast *multicast_older; /* earlier groups still in use, linked by multicast.older */
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

/* Assigns the next number among the calls of this form on the communicator, and records the call
 * (coll_make_past). On intercommunicators the root is not recorded, since its rank differs between the
 * groups. */
static inline uint32_t coll_number_call(struct coll_state *state, const struct coll_args *args,
                                        enum coll_form form, unsigned how)
{
    struct comm *c = state->comm;
    /* check here too, for programs whose calls never wait long */
    if (unlikely(c->coll_sequence[form] % COLL_PAST == COLL_PAST - 1) &&
        p2p_unexpected_length(c->proc->p2p) > 0)
        mismatch_check_all(c->proc);
    const uint32_t number = c->coll_sequence[form]++;
    const int root = kind_has_root(args->kind) && !c->remote ? args->root : 0;
    state->past[form][number % COLL_PAST] = coll_make_past(args->kind, root, how);
    return number;
}

#endif

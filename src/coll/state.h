/* state.h: the state of collectives per communicator: cached schedules, requests and temporary memory for
 * reuse, the nodes of its ranks, and the shared-memory block.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_STATE_H
#define FP_COLL_STATE_H

#include "base/page.h"
#include "coll/bind.h"
#include "coll/mismatch.h"
#include "coll/select.h"

#define CACHE_SLOTS 64
#define CACHE_STEPS_MAX \
    2048 /* longer schedules are made again each time: they cost little beside their messages */
#define SCRATCH_MAX 65536 /* temporary memory kept for reuse */

/* A schedule and what it was made from. */
struct plan {
    const struct coll_algorithm *algorithm;
    int64_t count, segment;
    int root, window;
    int parameter[COLL_PARAMETERS];
    bool in_place, commutative, adjacent;
    bool cached;
    bool settled; /* its steps are in objmem.h, not in the heap */
    int refs;
    struct sched sched;
};

extern struct counter coll_bytes; /* taken for schedules and flags */

struct shared;    /* shared.h */
struct written;   /* written.h */
struct multicast; /* multicast.h */
struct trial;     /* trial.h */
struct multicast_trial;
struct size_trial;
#define MULTICAST_KINDS 3 /* broadcasts, allgathers, allreduces */

struct coll_state {
    struct comm *comm;
    bool one_node;  /* all ranks on this node, and it has memory to share */
    bool neighbors; /* the lists below are filled */
    int nsources, ndestinations;
    int *sources, *destinations, *receive_order; /* one block, at sources */
    struct plan *cache[CACHE_SLOTS];
    struct coll_request *spare; /* finished ones, by their next pointer */
    void *scratch;
    size_t scratch_size;
    bool scratch_busy;
    struct shared *shared; /* NULL until agreed on */
    bool shared_tried;
    int node_count;          /* 0: not known */
    bool nodes;              /* ranks on several nodes, and it is known who is where */
    struct written *written; /* NULL until used */
    bool quick;              /* blocking barriers are still chosen as `written` was, see written_quick.c */
    struct multicast *multicast;                              /* likewise */
    bool multicast_opening;                                   /* its own collectives go by schedules */
    struct multicast *multicast_older;                        /* forgotten, but requests use it */
    uint8_t barriers_before;                                  /* ... it is used */
    uint32_t barriers;                                        /* blocking ones, until a trial is over */
    uint32_t next_trial;                                      /* the barrier in which it goes on */
    struct trial *trial;                                      /* NULL: none is under way */
    struct multicast_trial *multicast_trial[MULTICAST_KINDS]; /* NULL until the first call on several nodes */
    struct size_trial *size_trial[COLL_ALLREDUCE]; /* from broadcasts to allreduces; NULL until used */
    struct coll_choice picked;                     /* what a trial found; no algorithm until then */
    uint16_t short_limit
        [COLL_KINDS];         /* up to so many bytes minus 1 the shared block is chosen; 0: not asked yet */
    uint64_t past[COLL_PAST]; /* calls by number: see coll_past_of */
    struct page_comm *page;   /* where calls are counted for readers; own when there is no such place */
    struct page_comm own;
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

/* Numbers a call on its communicator and remembers what it is. In an intercommunicator's groups the root goes by
 * different names. */
static inline uint32_t coll_number(struct coll_state *state, const struct coll_args *args, unsigned form)
{
    struct comm *c = state->comm;
    const uint32_t number = c->coll_sequence++;
    const int root = kind_has_root(args->kind) && !c->remote ? args->root : 0;
    state->past[number % COLL_PAST] = coll_past_of(args->kind, root, form);
    /* A program that never waits long would never look otherwise. */
    if (unlikely(number % COLL_PAST == COLL_PAST - 1) && p2p_unexpected_length(c->proc->p2p) > 0)
        mismatch_look(c->proc);
    return number;
}

/* The schedule for this shape, made or found. plan_drop when done. */
int plan_get(struct coll_state *state, const struct coll_algorithm *a, const struct coll_shape *shape,
             struct plan **out);
void plan_drop(struct plan *plan);

/* Fills state->sources and so on from the communicator's topology. */
int coll_neighbors(struct coll_state *state);

#endif

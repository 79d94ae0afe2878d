/* comm.h: communicators: their members, their context ids, and the objects attached to them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_COMM_H
#define FP_OBJ_COMM_H

#include <mpi.h>

#include "obj/group.h"
#include "obj/proc.h"

struct attr_set;
struct errhandler;
struct info;
struct topology;
struct coll_state; /* src/coll: per-communicator state of collectives, opened on first use */

struct comm {
    struct object obj; /* MAGIC_COMM; first */
    struct proc *proc;
    uint32_t context; /* point-to-point; context + 1 is for collectives. Even numbers only. */
    int rank;         /* of this process in the local group */
    int size;         /* of the local group */
    struct group *group;
    struct group *remote; /* intercommunicator: the other side, else NULL */
    struct peer *
        *peers;      /* by rank in the group that messages go to (remote if there is one); NULL until used */
    uint32_t handle; /* predefined value, or 0 */
    struct comm
        *local_comm; /* intercommunicator: intracommunicator of the local group, for its collectives */
    struct errhandler *errhandler;
    struct attr_set *attrs;
    struct info *info;
    struct topology *topology;
    struct coll_state *coll;
    struct coll_state *coll_put_away; /* `coll` after a member died or the communicator was revoked */
    struct comm_fault *fault;         /* NULL: no member has died and it was not revoked (obj/fault.h) */
    int broken;                       /* the error class that collectives return; 0: none */
    uint32_t agreements;              /* number of agreements on this communicator so far (src/ft) */
    uint32_t
        coll_sequence[3];    /* collectives so far: blocking, nonblocking, persistent ones (enum coll_form) */
    struct session *session; /* whose process set the communicator is derived from, else NULL */
    struct bsend_pool *bsend;       /* buffer attached to this communicator */
    char name[MPI_MAX_OBJECT_NAME]; /* the user's; empty until set */
    char label[64];                 /* its origin in error messages: "dup of MPI_COMM_WORLD" */
    uint32_t create_sequence;       /* communicators created from this one so far: the next tag */
    bool owns_context;              /* its context id is released with the communicator */
    bool messages_may_follow;       /* ... to be retired: messages on it may arrive later (epoch.h) */
    bool guests;                    /* has members of other jobs (net/guest.h) */
};

/* True if the death of a member does not end the job: with mpiexec -enable-recovery, and in communicators
 * of several jobs, where each job may have been started with it or without. All members of a communicator
 * get the same answer. */
static inline bool comm_outlives_deaths(const struct comm *c)
{
    return c->proc->net->lost || c->guests;
}

/* MPI_ERR_COMM for an intercommunicator. */
int comm_check_intra(const struct comm *c);

/* The number of ranks that messages can be addressed to. */
static inline int comm_peers(const struct comm *c)
{
    return c->remote ? c->remote->size : c->size;
}

/* Allocates a communicator with its groups, without a context. References are taken over, also on failure. */
int comm_alloc(struct proc *p, struct group *group, struct group *remote, struct comm **out);
/* Assigns the context numbers; an intercommunicator takes a second one for its private local communicator. */
int comm_activate(struct comm *c, const uint32_t ids[2]);
static inline struct comm *comm_retain(struct comm *c)
{
    c->obj.refs++;
    return c;
}
void comm_release(struct comm *c); /* frees it with the last reference; NULL is allowed */

/* The user's name of the communicator, or the call that created it. */
static inline const char *comm_label(const struct comm *c)
{
    return c->name[0] ? c->name : c->label;
}
void comm_set_label(struct comm *c, const char *how, const struct comm *parent);

/* Declares the context in use, so that messages on it are found to belong to this communicator. */
void comm_set_context(struct comm *c, uint32_t context_id);

int comm_peer_connect(struct comm *c, int rank, struct peer **out);

/* The sender of messages with this envelope (queried by p2p for large receives), or NULL. */
struct peer *comm_find_sender(void *proc, struct envelope env);

/* The peer behind a valid rank (not MPI_PROC_NULL): one load once it has been used. */
static inline int comm_get_peer(struct comm *c, int rank, struct peer **out)
{
    struct peer *peer = c->peers[rank];
    if (likely(peer != NULL)) {
        *out = peer;
        return 0;
    }
    return comm_peer_connect(c, rank, out);
}

/* The envelope of a point-to-point message and that of internal collective traffic. */
static inline struct envelope comm_envelope(const struct comm *c, int source, int tag)
{
    return (struct envelope){.context = c->context, .source = source, .tag = tag};
}
static inline struct envelope comm_coll_envelope(const struct comm *c, int source, int tag)
{
    return (struct envelope){.context = c->context + 1, .source = source, .tag = tag};
}

#endif

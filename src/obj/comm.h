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
    struct group *remote;    /* intercommunicator: the other side, else NULL */
    struct peer **peers;     /* by rank in the remote group if there is one, else in group; NULL until used */
    uint32_t handle;         /* handle value of a predefined communicator, else 0 */
    struct comm *local_comm; /* intercommunicator: for collectives within the local group */
    struct errhandler *errhandler;
    struct attr_set *attrs;
    struct info *info;
    struct topology *topology;
    struct coll_state *coll;
    struct coll_state *failed_coll; /* `coll` after a member died or the communicator was revoked */
    struct comm_fault *fault;       /* NULL: no member has died and it was not revoked (obj/fault.h) */
    int broken;                     /* the error class that collectives return; 0: none */
    uint32_t agreements;            /* number of agreements on this communicator so far (src/ft) */
    uint32_t coll_sequence[3];      /* numbers of collective calls so far, by enum coll_form */
    struct session *session;  /* session whose process set the communicator is derived from, else NULL */
    struct bsend_pool *bsend; /* buffer attached to this communicator */
    char name[MPI_MAX_OBJECT_NAME]; /* set by MPI_Comm_set_name, else empty */
    char label[64];                 /* its origin in error messages: "dup of MPI_COMM_WORLD" */
    uint32_t create_sequence;       /* communicators created from this one; tag of the next creation */
    bool owns_context;              /* its context id is released with the communicator */
    bool messages_may_arrive_later; /* messages may still arrive: retire the context id (epoch.h) */
    bool guests;                    /* has members of other jobs (net/guest.h) */
};

/* True if the death of a member does not end the job: with mpiexec -enable-recovery, and in communicators
 * of several jobs, where each job may have been started with it or without. The result is the same at all
 * members. */
static inline bool comm_outlives_deaths(const struct comm *c)
{
    return c->proc->net->lost || c->guests;
}

/* Returns MPI_ERR_COMM for an intercommunicator. */
int comm_check_intra(const struct comm *c);

/* The number of ranks that messages can be addressed to. */
static inline int comm_peers(const struct comm *c)
{
    return c->remote ? c->remote->size : c->size;
}

/* Allocates a communicator without a context. Takes ownership of the groups, also on failure. */
int comm_alloc(struct proc *p, struct group *group, struct group *remote, struct comm **out);
/* Assigns the context numbers; an intercommunicator needs two (one for local_comm). */
int comm_activate(struct comm *c, const uint32_t ids[2]);
static inline struct comm *comm_retain(struct comm *c)
{
    c->obj.refs++;
    return c;
}
void comm_release(struct comm *c); /* frees it with the last reference; NULL is allowed */
/* Frees an intercommunicator whose creation has failed at another process: messages may still arrive for it. */
void comm_release_failed(struct comm *inter);

/* The user's name of the communicator, or the call that created it. */
static inline const char *comm_label(const struct comm *c)
{
    return c->name[0] ? c->name : c->label;
}
void comm_set_label(struct comm *c, const char *how, const struct comm *parent);

/* Registers the context, so that messages with it are assigned to this communicator. */
void comm_set_context(struct comm *c, uint32_t context_id);

int comm_peer_connect(struct comm *c, int rank, struct peer **out);

/* The sender of messages with this envelope (queried by p2p for large receives), or NULL. */
struct peer *comm_find_sender(void *proc, struct envelope env);

/* Returns the peer of a valid rank (not MPI_PROC_NULL); a single load after the first use. */
static inline int comm_get_peer(struct comm *c, int rank, struct peer **out)
{
    struct peer *peer = c->peers[rank];
    if (likely(peer != NULL)) {
        *out = peer;
        return 0;
    }
    return comm_peer_connect(c, rank, out);
}

/* Envelopes of point-to-point messages and of messages inside collectives. */
static inline struct envelope comm_envelope(const struct comm *c, int source, int tag)
{
    return (struct envelope){.context = c->context, .source = source, .tag = tag};
}
static inline struct envelope comm_coll_envelope(const struct comm *c, int source, int tag)
{
    return (struct envelope){.context = c->context + 1, .source = source, .tag = tag};
}

#endif

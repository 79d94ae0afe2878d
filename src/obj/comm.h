/* comm.h: communicators: who is in it, which context numbers it speaks on, and what hangs from it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_COMM_H
#define FP_OBJ_COMM_H

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
    uint32_t context;  /* point-to-point; context + 1 is for collectives. Even numbers only. */
    int rank;          /* mine in the local group */
    int size;          /* of the local group */
    struct group *group;
    struct group *remote;  /* intercommunicator: the other side, else NULL */
    struct peer **peers;   /* by rank in the group that messages go to (remote if there is one); NULL until used */
    uint32_t handle;       /* predefined value, or 0 */
    struct comm *local_comm; /* intercommunicator: private intracommunicator of my side, for its collectives */
    struct errhandler *errhandler;
    struct attr_set *attrs;
    struct info *info;
    struct topology *topology;
    struct coll_state *coll;
    uint32_t coll_sequence;  /* numbers collectives on this communicator: their tag */
    struct bsend_pool *bsend; /* buffer attached to this communicator */
    char name[MPI_MAX_OBJECT_NAME];
};

/* Ranks that messages can be addressed to. */
static inline int comm_peers(const struct comm *c)
{
    return c->remote ? c->remote->size : c->size;
}

int comm_peer_connect(struct comm *c, int rank, struct peer **out);

/* The peer behind a valid rank (not MPI_PROC_NULL): one load once it has been used. */
static inline int comm_peer(struct comm *c, int rank, struct peer **out)
{
    struct peer *peer = c->peers[rank];
    if (likely(peer != NULL)) {
        *out = peer;
        return 0;
    }
    return comm_peer_connect(c, rank, out);
}

/* Envelopes of point-to-point messages and of internal collective traffic. */
static inline struct envelope comm_envelope(const struct comm *c, int source, int tag)
{
    return (struct envelope){.context = c->context, .source = source, .tag = tag};
}
static inline struct envelope comm_coll_envelope(const struct comm *c, int source, int tag)
{
    return (struct envelope){.context = c->context + 1, .source = source, .tag = tag};
}

#endif

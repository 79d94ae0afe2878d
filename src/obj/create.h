/* create.h: communicator creation. All functions use the same small state machine: fill in the participants,
 * start an agreement on context ids (which gathers a record from every participant when needed), and build
 * the communicator when it is complete. The blocking calls wait for the request that the nonblocking ones
 * return.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_CREATE_H
#define FP_OBJ_CREATE_H

#include "obj/comm.h"
#include "obj/context.h"
#include "p2p/request.h"

struct creation {
    struct agreement agree;
    struct request request;
    struct comm *parent;              /* retained; NULL when there is none */
    struct comm *made;                /* the new communicator; NULL means MPI_COMM_NULL */
    struct group *group;              /* of the new communicator, when known beforehand; retained */
    struct errhandler *errhandler;    /* of the new communicator when there is no parent */
    const char *how;                  /* origin for the label of the new communicator: "dup of" */
    int (*build)(struct creation *c); /* sets c->made or leaves NULL */
    _Alignas(8) int32_t record[26];
    bool mixed; /* groups of different jobs: repeat with process descriptors (inter.c) */
};

/* Opens a creation in which all processes of `parent` take part (both sides of an intercommunicator). */
int creation_open(struct comm *parent, const char *how, int (*build)(struct creation *c),
                  struct creation **out);
/* Opens a creation without a parent communicator. Its messages use a tag made from the string. */
int creation_open_from(struct proc *p, struct group *members, const char *stringtag,
                       struct errhandler *errhandler, int (*build)(struct creation *c),
                       struct creation **out);
int stringtag_hash(const struct net *net, const char *stringtag,
                   const struct group *members); /* returns a tag; members may be NULL */
void creation_start(struct creation *c);
/* The creation behind a request, or NULL. */
const struct creation *creation_from_request(const struct request *r);
/* Waits for the result after creation_start() and frees the creation. Sets *mixed (may be NULL). */
int creation_wait(struct creation *c, struct comm **out, bool *mixed);
/* Starts, waits and frees. */
int creation_run(struct creation *c, struct comm **out);

/* Creates c->made with the agreed context ids. Takes ownership of the group references, also on failure. */
int creation_build_comm(struct creation *c, struct group *group, struct group *remote);

/* The constructors. Results are NULL where the standard has MPI_COMM_NULL. */
int comm_dup_start(struct comm *parent, struct info *info, struct creation **out);
int comm_dup(struct comm *parent, struct info *info, struct comm **out);
int comm_create(struct comm *parent, struct group *group, struct comm **out);
int comm_create_group(struct comm *parent, struct group *group, int tag, struct comm **out);
int comm_create_from_group(struct proc *p, struct group *group, const char *stringtag, struct info *info,
                           struct errhandler *errhandler, struct comm **out);
int comm_split(struct comm *parent, int color, int key, struct comm **out);
int comm_split_type(struct comm *parent, int type, int key, struct info *info, struct comm **out);
int intercomm_create(struct comm *local, int local_leader, struct comm *peer, int remote_leader, int tag,
                     struct comm **out);
int intercomm_create_from_groups(struct proc *p, struct group *local, int local_leader, struct group *remote,
                                 int remote_leader, const char *stringtag, struct info *info,
                                 struct errhandler *errhandler, struct comm **out);
int intercomm_merge(struct comm *inter, bool high, struct comm **out);

/* Barrier: returns when all processes of the communicator have called it. */
int comm_quiesce(struct comm *c);

#endif

/* assembly.h: the one small collective under all making of communicators. Members' words are ANDed and their
 * records gathered up a binomial tree; when there is another side, the two leaders swap what they have; then
 * everything goes down the tree again. It advances inside progress, so nothing here waits.
 *
 * Messages carry numbers of the members as source: ranks in a group that all of them know, since a process of another
 * world has a different job rank for everyone. That is why nobody else may use these tags on these contexts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_ASSEMBLY_H
#define FP_OBJ_ASSEMBLY_H

#include "obj/group.h"
#include "obj/proc.h"

/* Tags on a communicator's collective context (context + 1) that belong to this layer; collectives stay
 * below. */
#define ASSEMBLY_TAG_FIRST  0x40000000 /* + number of the creation on its communicator */
#define ASSEMBLY_TAG_EDGES  0x50000000 /* + the same: edges of a distributed graph */
#define ASSEMBLY_TAG_BRIDGE 0x60000000 /* + the user's tag: leaders in MPI_Intercomm_create */

/* The members, and the context and tag of their messages. */
struct gang {
    struct proc *proc;
    struct group *members; /* of my side; retained by the caller */
    int leader;            /* rank in members */
    int32_t *numbers;      /* of the members, in messages; NULL: their ranks. free() it when all is over */
    uint32_t context;
    int tag;
    /* The remote group of an intercommunicator; only the leader sends to it. */
    bool bridged;
    uint32_t other_leader;           /* job rank; known to the leader */
    int32_t bridge_me, bridge_other; /* numbers of the leaders */
    uint32_t bridge_context;
    int bridge_tag;
    bool other_gone; /* assembly_mark_other_lost */
};

struct assembly {
    struct gang gang;
    uint64_t *words; /* in: mine; out: the AND of everyone's on both sides */
    unsigned nwords;
    unsigned nmost;       /* the last `nmost` words are combined by maximum instead of AND */
    const void *record;   /* mine */
    unsigned record_size; /* the same for everyone; 0: no records */
    char *records;        /* out: of my side by rank in members, then of the other side; free() it */
    unsigned record_used; /* out: bytes of each of the records */
    int others;           /* out: members of the other side */
    int error;            /* out */
    void (*done)(struct assembly *a); /* runs once, possibly before assembly_start returns */

    /* Private. */
    struct list link; /* on proc->assemblies */
    int state;
    int pending;   /* messages under way */
    bool stepping; /* completions seen while it runs are picked up by the running loop */
    int place;     /* in the tree: 0 is the leader */
    char *up;      /* my subtree: words, then records by place */
    char *staging; /* what children sent */
    char *head;    /* fixed-size message between leaders and down the tree */
    char *other_head;
};

void assembly_start(struct assembly *a);

/* Called when the other leader will send nothing more, because its process or its connection has ended. The exchange
 * fails on this side. */
void assembly_mark_other_lost(struct assembly *a);

/* Returns an error class if a message on this context will never arrive because a process has died, else 0. For
 * contexts that belong to no communicator. */
int assembly_check_message(const struct proc *p, uint32_t context, int tag);

#endif

/* assembly.h: the nonblocking collective behind the creation of every communicator. Words of all members
 * are combined by AND and their records gathered up a binomial tree. The leaders of the two sides of an
 * intercommunicator exchange both. The results are sent down the tree. All steps run inside progress, so no
 * function here waits.
 *
 * Messages carry numbers of the members as source: ranks in a group that all of them know, since a process
 * of another world has a different job rank in each process. So no other messages may use these tags on
 * these contexts.
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

/* The members of one side, and the context and tag of their messages. */
struct gang {
    struct proc *proc;
    struct group *members; /* of this side; retained by the caller */
    int leader;            /* rank in members */
    int32_t *numbers; /* source numbers of the members' messages; NULL: their ranks; freed by the creation */
    uint32_t context;
    int tag;
    /* The remote group of an intercommunicator; only the leader sends to it. */
    bool bridged;
    uint32_t other_leader;           /* job rank; known to the leader */
    int32_t bridge_me, bridge_other; /* numbers of the leaders */
    uint32_t bridge_context;
    int bridge_tag;
    bool other_side_lost; /* assembly_mark_other_lost */
};

struct assembly {
    struct gang gang;
    uint64_t *words; /* in: of this process; out: combined over both sides */
    unsigned nwords;
    unsigned max_words;   /* number of words, at the end, that are combined by maximum instead of AND */
    const void *record;   /* mine */
    unsigned record_size; /* equal at all members; 0: no records */
    char *records;        /* out: of this side by rank in members, then of the other side; free() it */
    unsigned received_record_size;    /* out: bytes of each record */
    int others;                       /* out: members of the other side */
    int error;                        /* out */
    void (*done)(struct assembly *a); /* runs once, possibly before assembly_start returns */

    /* Private. */
    struct list link; /* on proc->assemblies */
    int state;
    int pending;   /* messages that have not completed */
    bool stepping; /* assembly_run is active: it handles messages that complete meanwhile */
    int place;     /* position in the tree; 0: the leader */
    char *up;      /* message to the parent: words, then the records of this subtree by place */
    char *staging; /* messages of the children */
    char *head;    /* fixed-size message between leaders and down the tree */
    char *other_head;
};

void assembly_start(struct assembly *a);

/* Called when the other leader will send nothing more, because its process or its connection has ended. The
 * exchange fails on this side. */
void assembly_mark_other_lost(struct assembly *a);

/* Returns an error class if a message on this context will never arrive because a process has died, else 0.
 * For contexts that belong to no communicator. */
int assembly_check_message(const struct proc *p, uint32_t context, int tag);

#endif

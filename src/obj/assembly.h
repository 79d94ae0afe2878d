/* assembly.h: the nonblocking collective behind the creation of every communicator. Words of all members are
 * combined by AND and their records gathered up a binomial tree. The leaders of the two sides of an
 * intercommunicator exchange both. The results are sent down the tree. All steps run inside progress, so no
 * function here waits.
 *
 * The source field of a message is the sender's rank in a group that all members know. It is not a job rank:
 * processes number the ranks of other jobs differently. No other messages may use these tags on these
 * contexts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_OBJ_ASSEMBLY_H
#define FP_OBJ_ASSEMBLY_H

#include "obj/group.h"
#include "obj/proc.h"

/* Tags on the collective context (context + 1) reserved for this layer; collectives use lower tags. */
#define ASSEMBLY_TAG_FIRST  0x40000000 /* + sequence number of the creation on the parent */
#define ASSEMBLY_TAG_EDGES  0x50000000 /* + sequence number of the creation: edges of a distributed graph */
#define ASSEMBLY_TAG_BRIDGE 0x60000000 /* + the user's tag: leaders in MPI_Intercomm_create */

/* The members of one side, the context and tag of their messages, and the link to the other side. */
struct gang {
    struct proc *proc;
    struct group *members; /* processes of this side; retained by the caller */
    int leader;            /* rank in members */
    int32_t *numbers; /* source numbers of the members' messages; NULL: their ranks; freed by the creation */
    uint32_t context;
    int tag;
    /* The remote group of an intercommunicator; only the leader sends to it. */
    bool bridged;
    uint32_t other_leader;           /* job rank; known to the leader */
    int32_t bridge_me, bridge_other; /* source numbers of the own leader and of the remote leader */
    uint32_t bridge_context;
    int bridge_tag;
    bool other_side_lost; /* set by assembly_mark_other_lost() */
};

struct assembly {
    struct gang gang;
    uint64_t *words; /* in: words of this process; out: combined over both sides */
    unsigned nwords;
    unsigned max_words;            /* number of trailing words that are combined by maximum instead of AND */
    const void *record;            /* record of this process */
    unsigned record_size;          /* equal at all members; 0: no records */
    char *records;                 /* out: records by rank: this side, then the other; freed by the caller */
    unsigned received_record_size; /* out: bytes of each record */
    int others;                    /* out: members of the other side */
    int error;                     /* out: error class; 0 on success */
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

/* Returns an error class if a message on this context will never arrive because a process has died, else
 * 0. Used for contexts that belong to no communicator. */
int assembly_check_message(const struct proc *p, uint32_t context, int tag);

#endif

/* round.h: one agreement (agree.h) on a communicator: its members, its messages, and the callback for the
 * decision.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_FT_ROUND_H
#define FP_FT_ROUND_H

#include "base/list.h"
#include "ft/agree.h"
#include "obj/comm.h"
#include "p2p/request.h"

/* Frames, distinguished by frame_header.flags. context: the communicator's; tag: number of the agreement on
 * it; source: place among the members. */
enum ft_frame { FT_REVOKE, FT_AGREE, FT_LEFT, FT_ASK };

/* Process numbers of the members, in the same order at all members. `me`: index of this process. */
struct ft_members {
    uint32_t n, me;
    uint32_t *numbers;
};

struct ft_round {
    struct list link; /* ft->rounds */
    struct proc *proc;
    struct ft_members members;
    uint32_t context, number;
    struct agree *agree;
    struct agree_message *scratch;
    bool outlives;    /* comm_outlives_deaths() of the communicator */
    bool is_reported; /* `over` has run */
    bool spent;       /* all living members have the decision: to be freed */
    void (*over)(struct ft_round *r, void *arg);
    void *arg;
};

#define FT_FAREWELL UINT32_MAX /* number of the agreement that all members have given up the communicator */

/* A frame that arrived before this process began the agreement. */
struct ft_early {
    struct list link;
    uint32_t context, number, from;
    size_t len;
    uint64_t message[];
};

struct ft {
    struct list rounds; /* newest last; decided ones stay for members that have not received the decision */
    struct list early;
    int inside;        /* nesting depth of the running functions of round.c */
    bool spent;        /* some rounds are spent */
    uint32_t *revoked; /* pairs of a context and the sender's process number: revocations that arrived before
                        * this process had created the communicator */
    uint32_t nrevoked;
    uint32_t *askers; /* processes that requested FT_LEFT when this process leaves MPI_Finalize */
    uint32_t naskers;
};

int ft_members_open(struct comm *c, struct ft_members *out);
void ft_members_close(struct ft_members *m);

/* Begins the next agreement on this communicator. The first words are combined by AND, the last `nmost` by
 * maximum. `over` runs once, when the agreement is decided, possibly before this function returns. */
int ft_round_begin(struct comm *c, const uint64_t *words, uint32_t nwords, uint32_t nmost,
                   void (*over)(struct ft_round *r, void *arg), void *arg);

/* This process gives up a communicator on which it has agreed. A decision is kept for members that may not
 * have received it: until all living members have given the communicator up. The members learn that by one
 * more agreement, the farewell, which no process waits for. A process that receives a request for an
 * agreement it has freed answers that all members have left (FT_LEFT). */
void ft_round_leave(struct comm *c);
/* FT_LEFT has arrived. All members have left the communicator: its agreements are freed. Or, for
 * MPI_COMM_WORLD, all living members have called MPI_Finalize: its last agreement ends. */
void ft_round_left(struct proc *p, uint32_t context);

/* FT_ASK has arrived: a process that became the root of the agreement of MPI_Finalize, since others have
 * died, requests FT_LEFT from processes that have left the agreement, which do not contribute again. */
void ft_round_asked(struct proc *p, uint32_t number);
void ft_reply_left(struct proc *p, uint32_t number, uint32_t context);
void ft_round_arrived(struct proc *p, struct peer *peer, const struct frame_header *h, const void *payload,
                      size_t len);
void ft_round_died(struct proc *p, uint32_t number);
void ft_round_free(struct ft_round *r);

/* Sends a frame to a process, at once or when there is room. A frame to a dead process is dropped. */
void ft_send(struct proc *p, uint32_t number, const struct frame_header *h, const void *payload, size_t len);

/* revoke.c. A revocation has arrived. c: NULL when this process has no such communicator. */
void ft_revoke_arrived(struct proc *p, struct comm *c, uint32_t context, uint32_t from);
void ft_revoke_apply_early(struct ft *ft, struct comm *c);
void ft_revoke_resend_after_death(struct proc *p, uint32_t number);

#endif

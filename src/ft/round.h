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

/* Kinds of frames, in frame_header.flags. Other header fields: context of the communicator; tag = number
 * of the agreement; source = index of the sender in ft_members. */
enum ft_frame { FT_REVOKE, FT_AGREE, FT_LEFT, FT_ASK };

/* Job ranks of the members, in the same order at all members. `me`: index of this process. */
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
    bool spent;       /* all living members have the decision: the round can be freed */
    void (*over)(struct ft_round *r, void *arg);
    void *arg;
};

#define FT_FAREWELL UINT32_MAX /* agreement that all members have freed the communicator */

/* A frame that arrived before this process began the agreement. */
struct ft_early {
    struct list link;
    uint32_t context, number, from;
    size_t len;
    uint64_t message[];
};

struct ft {
    struct list rounds; /* newest last; includes decided rounds that members may still need */
    struct list early;
    int inside; /* nesting depth of the running functions of round.c */
    bool spent; /* at least one round is spent */
    /* pairs of context and sender's job rank: revocations that arrived before this process had created the
     * communicator */
    uint32_t *revoked;
    uint32_t nrevoked;
    uint32_t *askers; /* processes that requested FT_LEFT for when this process leaves MPI_Finalize */
    uint32_t naskers;
};

int ft_members_open(struct comm *c, struct ft_members *out);
void ft_members_close(struct ft_members *m);

/* Begins the next agreement on this communicator. The first words are combined by AND, the last `nmost` by
 * maximum. `over` runs once, when the agreement is decided, possibly before this function returns. */
int ft_round_begin(struct comm *c, const uint64_t *words, uint32_t nwords, uint32_t nmost,
                   void (*over)(struct ft_round *r, void *arg), void *arg);

/* Called when this process frees a communicator on which it has agreed. Decisions are retained for members
 * that may not have received them, until all living members have freed the communicator. Members determine
 * this by one more agreement, the farewell, for which no process waits. A process that receives a message
 * about an agreement that it has freed replies that all members have left (FT_LEFT). */
void ft_round_begin_farewell(struct comm *c);
/* Handles FT_LEFT. All members have left the communicator: its agreements are freed. Or, for
 * MPI_COMM_WORLD, all living members have called MPI_Finalize: its last agreement ends. */
void ft_round_handle_departure(struct proc *p, uint32_t context);

/* Handles FT_ASK: after deaths a process became the root of the agreement of MPI_Finalize and requests
 * FT_LEFT from processes that have left the agreement, since they do not contribute again. */
void ft_round_add_departure_request(struct proc *p, uint32_t number);
void ft_reply_departed(struct proc *p, uint32_t number, uint32_t context);
void ft_round_arrived(struct proc *p, struct peer *peer, const struct frame_header *h, const void *payload,
                      size_t len);
void ft_round_died(struct proc *p, uint32_t number);
void ft_round_free(struct ft_round *r);

/* Sends a frame, or queues it if the send queue is full. A frame to a dead process is dropped. */
void ft_send(struct proc *p, uint32_t number, const struct frame_header *h, const void *payload, size_t len);

/* revoke.c: handles a revocation message. c: NULL if this process has no such communicator. */
void ft_revoke_arrived(struct proc *p, struct comm *c, uint32_t context, uint32_t from);
void ft_revoke_apply_early(struct ft *ft, struct comm *c);
void ft_revoke_resend_after_death(struct proc *p, uint32_t number);

#endif

/* graph.h: which rank waits for which. Pure: no clock, no files. A rank is live if it runs, or if the items
 * of its wait can still be completed by live ranks: a receive from any source needs one live sender,
 * MPI_Waitany one of its requests, MPI_Waitall all of them, a collective call all members that have not
 * entered it. Ranks that are not live at the end are deadlocked. Unknown state counts as live, so that no
 * false deadlock is reported.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DOCTOR_GRAPH_H
#define FP_DOCTOR_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status_page.h"

enum why_state {
    WHY_UNSEEN, /* no page found: on another host, before MPI_Init, or ended */
    WHY_RUNS,   /* outside MPI, or in a short wait */
    WHY_WAITS,
    WHY_STOPPED,  /* stopped by a signal or a debugger */
    WHY_FINISHED, /* has left MPI_Finalize */
    WHY_GONE,     /* its process has ended */
};

struct why_rank {
    enum why_state state;
    bool asleep;             /* state WHY_RUNS: not on a processor and without CPU time between the samples */
    bool steady;             /* state WHY_WAITS: in the same wait in both samples */
    const struct page *page; /* verified by page_check; NULL: no page */
    /* Results of why_analyze_waits: */
    bool live;
    int next;    /* deadlocked: a rank for which this rank waits; else -1 */
    int item;    /* deadlocked: index of the item, in the first wait, that leads to `next` */
    int finding; /* deadlocked: index of the finding that names this rank; else -1 */
};

/* A collective call that ranks wait in. */
struct why_meeting {
    const struct page_wait *wait; /* wait of the first rank in the call */
    const struct page_item *item;
    const struct page_group *group;
    uint32_t *waiting, nwaiting;
    uint32_t *missing, nmissing;     /* ranks that have not made this call */
    uint32_t *strangers, nstrangers; /* ranks that made another call, or name another root */
    bool unknown;                    /* the missing ranks cannot be determined */
};

enum why_kind {
    WHY_DEADLOCK,        /* ranks[]: each waits for the next, the last for the first */
    WHY_PEER_LEFT,       /* ranks[0] waits for ranks[1], which has finished or ended */
    WHY_MISMATCH,        /* a collective call in which some ranks made another call */
    WHY_MISSING,         /* a collective call that running ranks have not made */
    WHY_SLOW,            /* ranks[] compute or are stopped while others wait for them */
    WHY_NOT_TRANSFERRED, /* ranks[0] sends and ranks[1] receives a matching message, which is not transferred */
    WHY_UNKNOWN,         /* ranks[] wait for an item of unknown kind */
};

struct why_finding {
    enum why_kind kind;
    uint32_t *ranks, nranks;
    uint32_t *behind, nbehind; /* deadlocked ranks that wait for `ranks`, directly or indirectly */
    const struct why_meeting *meeting;
};

struct why {
    struct why_rank *rank; /* [n] states, set by the caller, and results */
    uint32_t n;
    struct why_meeting *meetings;
    size_t nmeetings;
    struct why_finding *findings; /* the most severe first */
    size_t nfindings;
    uint32_t waiting, unseen;
};

/* Computes the results from the states in rank[0..n). False if out of memory. */
bool why_analyze_waits(struct why *w);
void why_free(struct why *w);

/* Returns the world rank of a member of the communicator; -1 if it is unknown. */
int page_group_member(const struct page_group *g, int rank);

/* Returns the first wait that a page records; NULL if it records none. */
const struct page_wait *page_first_wait(const struct page *page);

/* Returns the first wait of a rank in state WHY_WAITS; else NULL. */
const struct page_wait *why_get_first_wait(const struct why_rank *r);

/* True if this receive or probe of rank `to` matches the send of rank `from`. */
bool why_messages_match(const struct page_item *receive, uint32_t to, const struct page_item *send,
                        uint32_t from);

#endif

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
    WHY_UNSEEN, /* on another host, before MPI_Init, or ended */
    WHY_RUNS,   /* not in a wait that lasts */
    WHY_WAITS,
    WHY_STOPPED,  /* by a signal or a debugger */
    WHY_FINISHED, /* has left MPI_Finalize */
    WHY_GONE,     /* its process has ended */
};

struct why_rank {
    enum why_state state;
    bool asleep;             /* runs: not in MPI, and not on a processor either */
    bool steady;             /* waits: in the same wait as some time before */
    const struct page *page; /* checked; NULL when unseen */
    /* Out. */
    bool live;
    int next;    /* deadlocked: the rank that it waits for, an example when there are several; else -1 */
    int item;    /* deadlocked: the item of its first wait that leads to `next` */
    int finding; /* deadlocked: index of the finding that names it; else -1 */
};

/* A collective call that ranks wait in. */
struct why_meeting {
    const struct page_wait *wait; /* wait of the first rank in the call */
    const struct page_item *item;
    const struct page_group *group;
    uint32_t *waiting, nwaiting;
    uint32_t *missing, nmissing;     /* ranks that have not called it */
    uint32_t *strangers, nstrangers; /* called something else, or name another root */
    bool unknown;                    /* the missing ranks cannot be determined */
};

enum why_kind {
    WHY_DEADLOCK, /* ranks[]: each waits for the next, the last for the first */
    WHY_DESERTED, /* ranks[0] waits for ranks[1], which has finished or ended */
    WHY_MISMATCH, /* a meeting in which some called something else */
    WHY_MISSING,  /* a collective call that running ranks have not made */
    WHY_SLOW,     /* ranks[] run or are stopped, and others wait for them */
    WHY_UNMOVED,  /* ranks[0] sends, ranks[1] receives, they match, and it does not move */
    WHY_UNKNOWN,  /* ranks[] wait for something that is not known here */
};

struct why_finding {
    enum why_kind kind;
    uint32_t *ranks, nranks;
    uint32_t *behind, nbehind; /* deadlocked ranks that wait for these, directly or not */
    const struct why_meeting *meeting;
};

struct why {
    struct why_rank *rank; /* in and out */
    uint32_t n;
    struct why_meeting *meetings;
    size_t nmeetings;
    struct why_finding *findings; /* the worst first */
    size_t nfindings;
    uint32_t waiting, unseen;
};

/* Fills the rest from rank[0..n). False when memory is out. */
bool why_analyze_waits(struct why *w);
void why_free(struct why *w);

/* Members by rank in the communicator; -1 when that is not known. */
int page_group_member(const struct page_group *g, int rank);

/* The first of the waits that a page records, NULL if there is none. */
const struct page_wait *page_first_wait(const struct page *page);

/* The first wait of a rank that waits, else NULL. */
const struct page_wait *why_wait(const struct why_rank *r);

/* True if this receive or probe of `to` matches the message of `from`. */
bool why_messages_match(const struct page_item *receive, uint32_t to, const struct page_item *send,
                        uint32_t from);

#endif

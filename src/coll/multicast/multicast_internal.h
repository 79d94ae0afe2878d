/* multicast_internal.h: internal declarations of collectives by multicast.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MULTICAST_MULTICAST_INTERNAL_H
#define FP_COLL_MULTICAST_MULTICAST_INTERNAL_H

#include "base/list.h"
#include "coll/multicast/multicast.h"
#include "net/mcast_group.h"

enum multicast_parameter {
    PARAMETER_COROOTS,
    PARAMETER_AGGREGATE,
    PARAMETER_SKEW,
    PARAMETER_BASIC,
    PARAMETER_MAX,
    PARAMETER_TIMEOUT,
    PARAMETER_DELIVER,
    PARAMETER_PIGGYBACK
};
/* The default choice: one acknowledgement for several packets, since sending one takes longer than a
 * packet; no size limit. */
struct coll_choice multicast_preset(void);
/* Returns a parameter of the choice, or its default. */
int multicast_parameter(const struct coll_choice *choice, enum multicast_parameter which);
void multicast_forget(struct coll_state *state);

struct multicast {
    struct comm *node;    /* communicator of the ranks of this node; rank 0 is the leader */
    struct comm *leaders; /* communicator of the leaders of all nodes; NULL: this rank is not a leader */
    struct net_group *group;
    uint32_t *member_of;     /* by rank: number of its node = rank of its leader in `leaders` */
    int *place_of;           /* by rank: its rank within its node */
    struct list runs;        /* blocking calls; the first one is in progress */
    struct list requests;    /* nonblocking calls; the first one is in progress */
    size_t payload, burst;   /* bytes of a packet; packets that all members together may send at once */
    const void *sending;     /* call whose message is not completely in the send window yet; NULL: none */
    uint32_t channels;       /* persistent requests created so far */
    uint32_t persistent;     /* persistent requests that are not freed */
    struct multicast *older; /* next in the list coll_state.multicast_older */
    bool failed;             /* the group could not be opened */
    int join_error;          /* why this leader could not join the group; 0: it has joined */
};

/* Parameters of a multicast group and of its retransmission of lost packets. */
struct multicast_terms {
    /* first words of the warning if multicast is not available; NULL: the user did not request multicast */
    const char *otherwise;
    uint32_t window;     /* send window in packets */
    uint32_t collectors; /* number of ranks that collect acknowledgements: the root and its co-roots */
    uint32_t aggregate;  /* packets that are acknowledged together */
    bool skew, deliver, piggyback;
    uint64_t timeout_us;
};

/* Opens a multicast group. Collective. On failure sets (*out)->failed at all ranks and returns 0. */
int multicast_open(struct comm *c, const struct multicast_terms *terms, struct multicast **out);
void multicast_free(struct multicast *m);
/* Returns the multicast group of the communicator; NULL, at all ranks, if it has none. open: this call may
 * wait for the other ranks, as the first use of multicast requires. */
struct multicast *multicast_get(struct coll_state *state, uint64_t bytes, const struct coll_choice *choice,
                                bool open, int *rc);

void multicast_close(struct coll_state *state);

/* Starts a broadcast by multicast; request is NULL for a blocking call. Returns false, at all ranks, if a
 * schedule must be used. */
bool multicast_bcast(const struct call *call, const struct coll_choice *choice, struct request **request,
                     int *rc);
bool multicast_allgather(const struct call *call, int *rc);
bool multicast_allreduce(const struct call *call, int *rc);

#endif

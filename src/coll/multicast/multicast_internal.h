/* multicast_internal.h: what the files of the broadcast by multicast share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MULTICAST_MULTICAST_INTERNAL_H
#define FP_COLL_MULTICAST_MULTICAST_INTERNAL_H

#include "base/list.h"
#include "coll/multicast/multicast.h"
#include "net/group.h"

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
/* The defaults: one acknowledgement for several packets, since it costs more than a packet; no limit of
 * size. */
struct coll_choice multicast_preset(void);
/* The parameters of the choice, or the defaults. */
int multicast_parameter(const struct coll_choice *choice, enum multicast_parameter which);
void multicast_forget(struct coll_state *state);

struct multicast {
    struct comm *node;    /* the ranks of this node; rank 0 leads */
    struct comm *leaders; /* the leaders of all nodes; NULL: this rank does not lead */
    struct net_group *group;
    uint32_t *member_of;     /* by rank: the member (leader) of the rank's node */
    int *place_of;           /* by rank: its rank in `node` of its node */
    struct list runs;        /* blocking calls; the first one is in progress */
    struct list requests;    /* nonblocking calls; the first one is in progress */
    size_t payload, burst;   /* bytes of a packet; packets that all members together may send at once */
    const void *sending;     /* call whose message is not completely in the send window yet; NULL: none */
    uint32_t channels;       /* persistent requests created so far */
    uint32_t persistent;     /* persistent requests that are not freed */
    struct multicast *older; /* next in coll_state.multicast_older */
    bool failed;             /* the group could not be opened */
};

/* The purpose of a group and its repair of losses. */
struct multicast_terms {
    /* begins the message that is printed if the network refuses; NULL: not requested */
    const char *otherwise;
    uint32_t window;     /* packets */
    uint32_t collectors; /* the root and its co-roots */
    uint32_t aggregate;  /* packets that are acknowledged together */
    bool skew, deliver, piggyback;
    uint64_t timeout_us;
};

/* Collective. A group that cannot be opened is no error: all ranks then go on without it. */
int multicast_open(struct comm *c, const struct multicast_terms *terms, struct multicast **out);
void multicast_free(struct multicast *m);
/* The multicast group of the communicator; NULL, at all ranks, if it has none. `open`: this call may wait for
 * the others, which the first use of multicast requires. */
struct multicast *multicast_get(struct coll_state *state, uint64_t bytes, const struct coll_choice *choice,
                                bool open, int *rc);

void multicast_close(struct coll_state *state);

/* Starts a broadcast by multicast. False, at all ranks: use a schedule. request: NULL if the call blocks. */
bool multicast_bcast(const struct call *call, const struct coll_choice *choice, struct request **request,
                     int *rc);
bool multicast_allgather(const struct call *call, int *rc);
bool multicast_allreduce(const struct call *call, int *rc);

#endif

/* multicast_part.h: what the files of the broadcast by multicast share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_COLL_MULTICAST_PART_H
#define FP_COLL_MULTICAST_PART_H

#include "base/list.h"
#include "coll/multicast.h"
#include "net/group.h"

enum multicast_parameter {
    PARAMETER_COROOTS,
    PARAMETER_AGGREGATE,
    PARAMETER_SKEW,
    PARAMETER_BASIC,
    PARAMETER_MAX,
    PARAMETER_TIMEOUT,
    PARAMETER_TRY
};

struct multicast {
    struct comm *node;    /* the ranks of this node; the first leads */
    struct comm *leaders; /* NULL: this rank does not lead */
    struct net_group *group;
    uint32_t *member_of; /* by rank: of its node */
    int *place_of;       /* by rank: in its node */
    struct list runs;    /* the first one is under way */
    bool failed;         /* the network would not */
};

/* What the group is for and how it repairs losses. */
struct multicast_terms {
    const char *otherwise; /* the begin of the sentence that is said when the network would not */
    uint32_t window;       /* packets */
    uint32_t collectors;   /* the root and its co-roots */
    uint32_t aggregate;    /* packets that are acknowledged together */
    bool skew;
    uint64_t timeout_us;
};

/* Collective. 0 also when it has failed, at all ranks. */
int multicast_open(struct comm *c, const struct multicast_terms *terms, struct multicast **out);
void multicast_free(struct multicast *m);

#endif

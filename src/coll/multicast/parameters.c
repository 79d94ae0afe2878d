/* parameters.c: the algorithm entry of broadcast by multicast, and its parameters.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "coll/multicast/multicast_internal.h"

COLL_ALGORITHM(
    bcast_multicast, .name = "multicast", .kind = COLL_BCAST, .needs = NEED_NODES | NEED_TWO, .window = true,
    .parameter = {[PARAMETER_COROOTS] = {"coroots", 1, 65535, 1},
                  [PARAMETER_AGGREGATE] = {"aggregate", 1, 1024, 1},
                  [PARAMETER_SKEW] = {"skew", 0, 1, 0},
                  [PARAMETER_BASIC] = {"basic", 0, 1, 0},
                  [PARAMETER_MAX] = {"max", 1, INT_MAX, 64 * 1024},
                  [PARAMETER_TIMEOUT] = {"timeout", 100, 10000000, 4000},
                  [PARAMETER_DELIVER] = {"deliver", 0, 1, 0},
                  [PARAMETER_PIGGYBACK] = {"piggyback", 0, 1, 0}},
    .doc = "multicast between nodes, shared memory within; window packets are kept until "
           "acknowledged, by the "
           "root and coroots - 1 others, one acknowledgement for aggregate packets, at different "
           "ones with "
           "skew=1; basic=1: the root waits for all; a packet that is not acknowledged is sent again after "
           "timeout us; deliver=1: packets are also sent to the co-roots over connections, along a tree; "
           "piggyback=1: acknowledgements travel in the members' own packets if there are some in time; "
           "data of more than max bytes goes as without multicast");

int multicast_parameter(const struct coll_choice *choice, enum multicast_parameter which)
{
    const int value = choice->parameter[which];
    return value ? value : bcast_multicast.parameter[which].preset;
}

struct coll_choice multicast_preset(void)
{
    return (struct coll_choice){.algorithm = &bcast_multicast,
                                .parameter = {[PARAMETER_AGGREGATE] = 10, [PARAMETER_MAX] = INT_MAX}};
}

bool multicast_candidate(enum coll_kind kind, struct coll_choice *out)
{
    const struct coll_algorithm *a = algorithm_find(kind, "multicast");
    *out = multicast_preset();
    if (kind != COLL_BCAST)
        *out = (struct coll_choice){.algorithm = a};
    return a && kind != COLL_BARRIER;
}

/* pair.h: which rail of one process goes with which rail of another. Pure: both ends compute the same pairs with the same
 * numbers, whatever order they hear of each other in.
 *
 * Rails are joined where they are on one network: an InfiniBand subnet, or an IP network of RoCE. Where one end has fewer
 * rails there than the other, its rails are used several times, so that the faster end can fill a port that is as fast as
 * two of the other's. Pair 0 is always that of the first rails, which carry the connection itself, even through a router.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_PAIR_H
#define FP_NET_RAILS_PAIR_H

#include "net/rails/rail.h"

/* The network that a rail is on; a peer may have other rails on it. */
struct pair_net {
    uint64_t subnet;
    uint8_t kind; /* InfiniBand and RoCE never meet */
};

struct pair {
    uint8_t a, b; /* numbers of rails */
};

/* `a` are the rails of the end that both agree to call the first, `b` those of the other; at least one each. Returns the
 * number of pairs, at most RAILS_MAX. */
unsigned pair_rails(const struct pair_net *a, unsigned na, const struct pair_net *b, unsigned nb,
                    struct pair out[RAILS_MAX]);

/* Every rail of one with every rail of the other that shares a network with it: paths that a connection may take. (0, 0) first, then rails of
 * the same number. Returns how many, at most PAIR_PATHS_MAX. */
enum { PAIR_PATHS_MAX = 64 };
unsigned pair_list_paths(const struct pair_net *a, unsigned na, const struct pair_net *b, unsigned nb,
                         struct pair out[PAIR_PATHS_MAX]);

/* The path to try after path `last`: the next around the end whose two rails are up, or else the next whose own rail (a) is,
 * or else the next. RAIL_NONE as `last`: the first. */
unsigned pair_next_path(const struct pair *paths, unsigned count, unsigned last, uint32_t mine_up,
                        uint32_t theirs_up);

#endif

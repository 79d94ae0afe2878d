/* pair.h: which rail of one process is connected to which rail of another. Pure: both ends compute the same
 * pairs with the same numbers.
 *
 * Rails are paired if they are on one network: an InfiniBand subnet, or an IP network of RoCE. If one end has
 * fewer rails on a network than the other, its rails belong to several pairs, so that a fast port can use
 * several slower ports of the peer. Pair 0 always consists of the first rails, which carry the connection
 * itself, even through a router.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_PAIR_H
#define FP_NET_RAILS_PAIR_H

#include "net/rails/rail.h"

/* The network of a rail. Several rails may be on one network. */
struct pair_net {
    uint64_t subnet;
    uint8_t kind; /* kind of network: InfiniBand and RoCE are never paired */
};

struct pair {
    uint8_t a, b; /* indices of the rails */
};

/* `a`: the rails of the first end (ib_endpoint_is_first), `b`: those of the other; at least one each. Returns
 * the number of pairs, at most RAILS_MAX. */
unsigned pair_rails(const struct pair_net *a, unsigned na, const struct pair_net *b, unsigned nb,
                    struct pair out[RAILS_MAX]);

/* Lists the paths that a connection may use: (0, 0) first, then all pairs of rails with a network in common,
 * those of equal index first. Returns their number, at most PAIR_PATHS_MAX. */
enum { PAIR_PATHS_MAX = 64 };
unsigned pair_list_paths(const struct pair_net *a, unsigned na, const struct pair_net *b, unsigned nb,
                         struct pair out[PAIR_PATHS_MAX]);

/* Returns the path to try after path `last`, in circular order: the next one whose two rails are up, else the
 * next whose own rail (a) is up, else the next. last = RAIL_NONE: begins with path 0. */
unsigned pair_next_path(const struct pair *paths, unsigned count, unsigned last, uint32_t mine_up,
                        uint32_t theirs_up);

#endif

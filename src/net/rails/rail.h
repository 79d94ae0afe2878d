/* rail.h: common definitions for rails. A rail is one of several paths to a peer: an adapter, a port, or a
 * path of a port. Rails have small indices; a set of rails is a bit set.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_NET_RAILS_RAIL_H
#define FP_NET_RAILS_RAIL_H

#include "base/util.h"

enum { RAILS_MAX = 16, RAIL_NONE = 255 };

static inline uint32_t rail_bit(unsigned rail)
{
    return UINT32_C(1) << rail;
}

static inline bool rail_set_contains(uint32_t set, unsigned rail)
{
    return set >> rail & 1;
}

static inline uint32_t rails_all(unsigned count)
{
    return rail_bit(count) - 1;
}

static inline unsigned rail_set_count(uint32_t set)
{
    return (unsigned)__builtin_popcount(set);
}

/* Returns the first rail of the set after `last`, in circular order; RAIL_NONE if the set is empty. With last
 * = RAIL_NONE the search begins at rail 0. */
static inline unsigned rail_after(uint32_t set, unsigned last)
{
    if (set == 0)
        return RAIL_NONE;
    uint32_t behind = last >= RAILS_MAX ? set : set & ~(rail_bit(last + 1) - 1);
    return (unsigned)__builtin_ctz(behind ? behind : set);
}

#endif

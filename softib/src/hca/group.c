/* group.c: finds the row of a multicast group in the registry. Found rows are cached, because sending
 * searches once per packet.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "hca/send_queue.h"

#define HINTS 64

static atomic_uint hints[HINTS]; /* for each hash of a GID: row of the group found last + 1; 0: none */

static bool group_row_matches(unsigned row, const uint8_t gid[16])
{
    const struct reg_group *g = &proc.reg->group[row];
    return atomic_load_explicit(&g->used, memory_order_acquire) && !memcmp(g->gid, gid, 16);
}

int group_row(const uint8_t gid[16])
{
    atomic_uint *hint = &hints[hash_bytes(gid, 16, 1469598103934665603ull) % HINTS];
    unsigned at = atomic_load_explicit(hint, memory_order_relaxed);
    if (LIKELY(at && group_row_matches(at - 1, gid)))
        return (int)at - 1;
    for (unsigned i = 0; i < GROUPS; i++)
        if (group_row_matches(i, gid)) {
            atomic_store_explicit(hint, i + 1, memory_order_relaxed);
            return (int)i;
        }
    return -1;
}

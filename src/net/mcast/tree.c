/* tree.c: blocks of members and their collectors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/mcast/tree.h"

static uint32_t place_of(const struct mcast_tree *t, uint32_t member)
{
    return member >= t->root ? member - t->root : member + (t->members - t->root);
}

static uint32_t member_at(const struct mcast_tree *t, uint32_t place)
{
    return (uint32_t)(((uint64_t)place + t->root) % t->members);
}

/* The place where a block begins; that of its collector. */
static uint32_t start_of(const struct mcast_tree *t, uint32_t block)
{
    return (uint32_t)((uint64_t)block * t->members / t->collectors);
}

static uint32_t block_of(const struct mcast_tree *t, uint32_t place)
{
    return (uint32_t)((((uint64_t)place + 1) * t->collectors - 1) / t->members);
}

uint32_t mcast_tree_parent(const struct mcast_tree *t, uint32_t member)
{
    const uint32_t place = place_of(t, member), start = start_of(t, block_of(t, place));
    return place == start ? t->root : member_at(t, start);
}

static uint32_t leaves_of(const struct mcast_tree *t, uint32_t block)
{
    return start_of(t, block + 1) - start_of(t, block) - 1;
}

uint32_t mcast_tree_children(const struct mcast_tree *t, uint32_t member)
{
    const uint32_t place = place_of(t, member), block = block_of(t, place);
    if (place != start_of(t, block))
        return 0;
    return leaves_of(t, block) + (block == 0 ? t->collectors - 1 : 0);
}

uint32_t mcast_tree_child(const struct mcast_tree *t, uint32_t member, uint32_t index)
{
    const uint32_t block = block_of(t, place_of(t, member)), leaves = leaves_of(t, block);
    if (index < leaves)
        return member_at(t, start_of(t, block) + 1 + index);
    return member_at(t, start_of(t, index - leaves + 1));
}

uint32_t mcast_tree_index(const struct mcast_tree *t, uint32_t member)
{
    const uint32_t place = place_of(t, member), block = block_of(t, place), start = start_of(t, block);
    return place == start ? leaves_of(t, 0) + block - 1 : place - start - 1;
}

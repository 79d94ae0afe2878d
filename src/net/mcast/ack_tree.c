/* ack_tree.c: blocks of members and their collectors; see ack_tree.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/mcast/ack_tree.h"

uint32_t mcast_tree_place(const struct mcast_tree *t, uint32_t member)
{
    return member >= t->root ? member - t->root : member + (t->members - t->root);
}

static uint32_t member_at(const struct mcast_tree *t, uint32_t place)
{
    return (uint32_t)(((uint64_t)place + t->root) % t->members);
}

/* The place of the first member of a block, its collector. */
static uint32_t block_start(const struct mcast_tree *t, uint32_t block)
{
    return (uint32_t)((uint64_t)block * t->members / t->collectors);
}

static uint32_t place_block(const struct mcast_tree *t, uint32_t place)
{
    return (uint32_t)((((uint64_t)place + 1) * t->collectors - 1) / t->members);
}

/* The highest bit of a block number. In the binomial tree of blocks, the parent of a block has the number
 * without this bit. */
static uint32_t highest_bit(uint32_t block)
{
    uint32_t bit = 1;
    while (bit <= block / 2)
        bit *= 2;
    return bit;
}

static uint32_t parent_block(const struct mcast_tree *t, uint32_t block)
{
    return t->deliver ? block - highest_bit(block) : 0;
}

/* The index-th child of a block in the tree of blocks. */
static uint32_t child_block(const struct mcast_tree *t, uint32_t block, uint32_t index)
{
    return !t->deliver ? index + 1 : block + ((block ? 2 * highest_bit(block) : 1) << index);
}

uint32_t mcast_tree_parent(const struct mcast_tree *t, uint32_t member)
{
    const uint32_t place = mcast_tree_place(t, member), block = place_block(t, place),
                   start = block_start(t, block);
    return member_at(t, place != start || block == 0 ? start : block_start(t, parent_block(t, block)));
}

static uint32_t count_block_leaves(const struct mcast_tree *t, uint32_t block)
{
    return block_start(t, block + 1) - block_start(t, block) - 1;
}

uint32_t mcast_tree_leaves(const struct mcast_tree *t, uint32_t member)
{
    const uint32_t place = mcast_tree_place(t, member), block = place_block(t, place);
    return place == block_start(t, block) ? count_block_leaves(t, block) : 0;
}

uint32_t mcast_tree_children(const struct mcast_tree *t, uint32_t member)
{
    const uint32_t place = mcast_tree_place(t, member), block = place_block(t, place);
    uint32_t coroots = 0;
    if (place != block_start(t, block))
        return 0;
    while ((block == 0 || t->deliver) && child_block(t, block, coroots) < t->collectors)
        coroots++;
    return count_block_leaves(t, block) + coroots;
}

uint32_t mcast_tree_child(const struct mcast_tree *t, uint32_t member, uint32_t index)
{
    const uint32_t block = place_block(t, mcast_tree_place(t, member)), leaves = count_block_leaves(t, block);
    if (index < leaves)
        return member_at(t, block_start(t, block) + 1 + index);
    return member_at(t, block_start(t, child_block(t, block, index - leaves)));
}

uint32_t mcast_tree_index(const struct mcast_tree *t, uint32_t member)
{
    const uint32_t place = mcast_tree_place(t, member), block = place_block(t, place),
                   start = block_start(t, block);
    if (place != start)
        return place - start - 1;
    uint32_t index = count_block_leaves(t, parent_block(t, block));
    while (child_block(t, parent_block(t, block), index - count_block_leaves(t, parent_block(t, block))) !=
           block)
        index++;
    return index;
}

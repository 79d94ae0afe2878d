/* move.c: the inner loops of packing and unpacking. `unpack` is a constant at every call, so that the
 * compiler generates a version for each direction. Blocks of common lengths from 1 to 32 bytes are copied
 * as words, other blocks by memcpy. A function is called for each loop or list, not for each block.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dt/layout.h"

#define FORCE_INLINE static inline __attribute__((always_inline))

FORCE_INLINE void move_bytes(char *mem, char *buf, size_t len, bool unpack)
{
    if (unpack)
        memcpy(mem, buf, len);
    else
        memcpy(buf, mem, len);
}

/* Copies `count` blocks of a length known to the compiler, four at a time so that the processor overlaps
 * the loads. */
FORCE_INLINE void move_words(char *mem, int64_t stride, uint64_t count, char *buf, size_t len, bool unpack)
{
    for (; count >= 4; count -= 4) {
        move_bytes(mem, buf, len, unpack);
        move_bytes(mem + stride, buf + len, len, unpack);
        move_bytes(mem + 2 * stride, buf + 2 * len, len, unpack);
        move_bytes(mem + 3 * stride, buf + 3 * len, len, unpack);
        mem += 4 * stride;
        buf += 4 * len;
    }
    for (; count > 0; count--) {
        move_bytes(mem, buf, len, unpack);
        mem += stride;
        buf += len;
    }
}

FORCE_INLINE void move_strided(char *mem, int64_t stride, uint64_t count, char *buf, uint64_t len,
                               bool unpack)
{
    switch (len) {
    case 1:
        move_words(mem, stride, count, buf, 1, unpack);
        return;
    case 2:
        move_words(mem, stride, count, buf, 2, unpack);
        return;
    case 4:
        move_words(mem, stride, count, buf, 4, unpack);
        return;
    case 8:
        move_words(mem, stride, count, buf, 8, unpack);
        return;
    case 12:
        move_words(mem, stride, count, buf, 12, unpack);
        return;
    case 16:
        move_words(mem, stride, count, buf, 16, unpack);
        return;
    case 24:
        move_words(mem, stride, count, buf, 24, unpack);
        return;
    case 32:
        move_words(mem, stride, count, buf, 32, unpack);
        return;
    default:
        for (uint64_t i = 0; i < count; i++)
            move_bytes(mem + (int64_t)i * stride, buf + i * len, len, unpack);
    }
}

FORCE_INLINE void move_gather(char *mem, const int64_t *offset, uint64_t count, char *buf, size_t len,
                              bool unpack)
{
    for (uint64_t i = 0; i < count; i++)
        move_bytes(mem + offset[i], buf + i * len, len, unpack);
}

FORCE_INLINE void move_indexed_blocks(char *mem, const int64_t *offset, uint64_t count, char *buf,
                                      uint64_t len, bool unpack)
{
    switch (len) {
    case 4:
        move_gather(mem, offset, count, buf, 4, unpack);
        return;
    case 8:
        move_gather(mem, offset, count, buf, 8, unpack);
        return;
    case 16:
        move_gather(mem, offset, count, buf, 16, unpack);
        return;
    default:
        move_gather(mem, offset, count, buf, len, unpack);
    }
}

/* Copies a field of a structure: short blocks of different lengths. Two words that may overlap are faster
 * than a call of memcpy. */
FORCE_INLINE void move_structure_field(char *mem, char *buf, size_t len, bool unpack)
{
    if (len > 16) {
        move_bytes(mem, buf, len, unpack);
    } else if (len >= 8) {
        move_bytes(mem, buf, 8, unpack);
        move_bytes(mem + len - 8, buf + len - 8, 8, unpack);
    } else if (len >= 4) {
        move_bytes(mem, buf, 4, unpack);
        move_bytes(mem + len - 4, buf + len - 4, 4, unpack);
    } else {
        if (len & 2)
            move_bytes(mem + (len & 1), buf + (len & 1), 2, unpack);
        if (len & 1)
            move_bytes(mem, buf, 1, unpack);
    }
}

FORCE_INLINE void move_blocks(char *mem, const struct dt_block *e, uint64_t count, char *buf, bool unpack)
{
    for (uint64_t i = 0; i < count; i++)
        move_structure_field(mem + e[i].offset, buf + e[i].start, e[i + 1].start - e[i].start, unpack);
}

static void pack_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf);
static void unpack_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf);

FORCE_INLINE void move_child_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf,
                                   bool unpack)
{
    if (unpack)
        unpack_range(n, mem, from, to, buf);
    else
        pack_range(n, mem, from, to, buf);
}

/* Copies `count` whole children of a loop. */
FORCE_INLINE void move_children(const struct dt_node *child, int64_t stride, uint64_t count, char *mem,
                                char *buf, bool unpack)
{
    uint64_t size = child->size;
    switch (child->type) {
    case NODE_BLOCK:
        move_strided(mem, stride, count, buf, size, unpack);
        return;
    case NODE_LOOP:
        if (child->loop.child->type != NODE_BLOCK)
            break;
        for (uint64_t i = 0; i < count; i++, mem += stride, buf += size)
            move_strided(mem, child->loop.stride, child->loop.count, buf, child->loop.child->size, unpack);
        return;
    case NODE_INDEX:
        for (uint64_t i = 0; i < count; i++, mem += stride, buf += size)
            move_indexed_blocks(mem, child->index.offsets, child->index.count, buf, child->index.length,
                                unpack);
        return;
    case NODE_BLOCKS:
        for (uint64_t i = 0; i < count; i++, mem += stride, buf += size)
            move_blocks(mem, child->blocks.entry, child->blocks.count, buf, unpack);
        return;
    }
    for (uint64_t i = 0; i < count; i++, mem += stride, buf += size)
        move_child_range(child, mem, 0, size, buf, unpack);
}

FORCE_INLINE void move_loop_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf,
                                  bool unpack)
{
    const struct dt_node *child = n->loop.child;
    uint64_t size = child->size, whole = n->loop.count;
    int64_t stride = n->loop.stride;
    if (from != 0) {
        uint64_t first = from / size, skip = from % size;
        mem += (int64_t)first * stride;
        if (skip) {
            uint64_t part = MIN(size - skip, to - from);
            move_child_range(child, mem, skip, skip + part, buf, unpack);
            from += part;
            buf += part;
            mem += stride;
        }
    }
    if (from != 0 || to != n->size)
        whole = (to - from) / size;
    move_children(child, stride, whole, mem, buf, unpack);
    uint64_t tail = to - from - whole * size;
    if (tail)
        move_child_range(child, mem + (int64_t)whole * stride, 0, tail, buf + whole * size, unpack);
}

FORCE_INLINE void move_index_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf,
                                   bool unpack)
{
    const int64_t *offset = n->index.offsets;
    uint64_t len = n->index.length, first = from / len, skip = from % len;
    if (skip) {
        uint64_t part = MIN(len - skip, to - from);
        move_bytes(mem + offset[first] + skip, buf, part, unpack);
        from += part;
        buf += part;
        first++;
    }
    uint64_t whole = (to - from) / len, tail = to - from - whole * len;
    move_indexed_blocks(mem, offset + first, whole, buf, len, unpack);
    if (tail)
        move_bytes(mem + offset[first + whole], buf + whole * len, tail, unpack);
}

uint64_t dt_find_entry(const uint64_t *start, size_t stride, uint64_t count, uint64_t at)
{
    uint64_t low = 0, high = count;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        if (*(const uint64_t *)((const char *)start + mid * stride) <= at)
            low = mid;
        else
            high = mid;
    }
    return low;
}

FORCE_INLINE void move_blocks_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf,
                                    bool unpack)
{
    const struct dt_block *e = n->blocks.entry;
    if (from == 0 && to == n->size) {
        move_blocks(mem, e, n->blocks.count, buf, unpack);
        return;
    }
    for (uint64_t i = dt_find_entry(&e->start, sizeof(*e), n->blocks.count, from); from < to; i++) {
        uint64_t part = MIN(e[i + 1].start, to) - from;
        move_bytes(mem + e[i].offset + (from - e[i].start), buf, part, unpack);
        from += part;
        buf += part;
    }
}

FORCE_INLINE void move_list_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf,
                                  bool unpack)
{
    const struct dt_child *e = n->list.entry;
    for (uint64_t i = dt_find_entry(&e->start, sizeof(*e), n->list.count, from); from < to; i++) {
        uint64_t part = MIN(e[i + 1].start, to) - from, skip = from - e[i].start;
        move_child_range(e[i].node, mem + e[i].offset, skip, skip + part, buf, unpack);
        from += part;
        buf += part;
    }
}

FORCE_INLINE void move_packed_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf,
                                    bool unpack)
{
    switch (n->type) {
    case NODE_BLOCK:
        move_bytes(mem + from, buf, to - from, unpack);
        return;
    case NODE_LOOP:
        move_loop_range(n, mem, from, to, buf, unpack);
        return;
    case NODE_INDEX:
        move_index_range(n, mem, from, to, buf, unpack);
        return;
    case NODE_BLOCKS:
        move_blocks_range(n, mem, from, to, buf, unpack);
        return;
    case NODE_LIST:
        move_list_range(n, mem, from, to, buf, unpack);
        return;
    }
}

static void pack_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf)
{
    move_packed_range(n, mem, from, to, buf, false);
}

static void unpack_range(const struct dt_node *n, char *mem, uint64_t from, uint64_t to, char *buf)
{
    move_packed_range(n, mem, from, to, buf, true);
}

void dt_node_pack(const struct dt_node *node, const char *mem, uint64_t from, uint64_t to, char *out)
{
    if (from < to)
        pack_range(node, (char *)mem, from, to, out);
}

void dt_node_unpack(const struct dt_node *node, char *mem, uint64_t from, uint64_t to, const char *in)
{
    if (from < to)
        unpack_range(node, mem, from, to, (char *)in);
}

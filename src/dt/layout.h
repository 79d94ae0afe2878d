/* layout.h: the offsets of the bytes of a committed datatype: a small immutable tree of loops and lists
 * over dense blocks, in type-map order. A regular type of any count takes constant memory, since a vector
 * is one loop.
 *
 * Offsets in a node count from its first byte in packed order. The parent of a node holds the offset of
 * that byte.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_LAYOUT_H
#define FP_DT_LAYOUT_H

#include "dt/dtype.h"

enum dt_node_type {
    NODE_BLOCK,  /* `size` dense bytes */
    NODE_LOOP,   /* child repeated at a stride */
    NODE_INDEX,  /* blocks of one length at listed offsets */
    NODE_BLOCKS, /* blocks of several lengths at listed offsets */
    NODE_LIST,   /* different children at listed offsets */
};

/* Entry i covers packed bytes start to entry[i + 1].start. One more entry, with the end of the last one,
 * closes the list. */
struct dt_block {
    int64_t offset;
    uint64_t start;
};
struct dt_child {
    int64_t offset;
    uint64_t start;
    struct dt_node *node;
};

struct dt_node {
    uint32_t type; /* enum dt_node_type */
    int32_t refs;
    uint64_t size; /* packed bytes */
    union {
        struct {
            uint64_t count;
            int64_t stride;
            struct dt_node *child;
        } loop;
        struct {
            uint64_t count;
            uint64_t length;
            int64_t *offsets;
        } index;
        struct {
            uint64_t count;
            struct dt_block *entry;
        } blocks;
        struct {
            uint64_t count;
            struct dt_child *entry;
        } list;
    };
};

struct dt_layout {
    int64_t offset; /* from the start of an element to the node's first byte */
    struct dt_node *node;
};

/* The layout of a type, built at the first call and cached. NULL: out of memory. */
const struct dt_layout *dt_layout_of(struct dtype *t);
void dt_layout_free(struct dt_layout *layout);

/* Fills *top with a node for `count` elements of a committed type (no reference is taken), and *offset
 * with the offset of its first byte from the buffer. */
void dt_layout_top(const struct dtype *t, MPI_Count count, struct dt_node *top, int64_t *offset);

/* Index of the entry that contains packed byte `at`, by bisection. `start` points to the start member of
 * the first of `count` entries, which are `stride` bytes apart. No entry is empty. */
uint64_t dt_find_entry(const uint64_t *start, size_t stride, uint64_t count, uint64_t at);

/* Copies packed bytes [from, to) of the node whose first byte is at `mem` to or from a dense buffer. */
void dt_node_pack(const struct dt_node *node, const char *mem, uint64_t from, uint64_t to, char *out);
void dt_node_unpack(const struct dt_node *node, char *mem, uint64_t from, uint64_t to, const char *in);

#endif

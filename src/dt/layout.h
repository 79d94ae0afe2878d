/* layout.h: where the bytes of a committed datatype lie: a small immutable tree of loops and lists over dense
 * blocks, in type-map order. Regular types take constant memory whatever their count, since a vector is one
 * loop.
 *
 * Every node starts at relative offset 0 (its first byte in packed order); what places it is held by its
 * parent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_DT_LAYOUT_H
#define FP_DT_LAYOUT_H

#include "dt/dtype.h"

enum dt_node_type {
    NODE_BLOCK,  /* size dense bytes */
    NODE_LOOP,   /* child repeated at a stride */
    NODE_INDEX,  /* blocks of one length at listed offsets */
    NODE_BLOCKS, /* blocks of several lengths at listed offsets */
    NODE_LIST,   /* different children at listed offsets */
};

/* Entry i covers packed bytes start .. entry[i + 1].start; one more entry closes the list. */
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
    int64_t offset;
    struct dt_node *node;
};

/* The layout of a type, worked out on first use and kept. NULL when memory is out. */
const struct dt_layout *dt_layout_of(struct dtype *t);
void dt_layout_free(struct dt_layout *layout);

/* `count` elements of a committed type as one node in *top (not counted); *offset is where it starts. */
void dt_layout_top(const struct dtype *t, MPI_Count count, struct dt_node *top, int64_t *offset);

/* Moves packed bytes [from, to) of the node that starts at mem to or from a dense buffer. */
void dt_node_pack(const struct dt_node *node, const char *mem, uint64_t from, uint64_t to, char *out);
void dt_node_unpack(const struct dt_node *node, char *mem, uint64_t from, uint64_t to, const char *in);

#endif

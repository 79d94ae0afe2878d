/* layout.c: from shapes to layouts. Simplifies as it builds: neighbours are joined, repeated dense blocks
 * become one block, nested loops whose strides fit become one loop, lists with a steady step become loops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "dt/build.h"

/* A loop of at most UNROLL_MAX blocks inside a list is replaced by its blocks, which can then be joined
 * with their neighbours. */
#define UNROLL_MAX 8

/* A piece of a layout that is being built. A dense block has no node: lists of blocks may be long. */
struct placed {
    int64_t offset;
    uint64_t size;
    struct dt_node *node; /* NULL: a dense block of `size` bytes */
};

/* Allocates a node, followed by `bytes` zeroed bytes for its entries. */
static struct dt_node *node_new(enum dt_node_type type, uint64_t size, size_t bytes)
{
    struct dt_node *n = calloc(1, sizeof(*n) + bytes);
    if (n)
        *n = (struct dt_node){.type = type, .refs = 1, .size = size};
    return n;
}

static void node_release(struct dt_node *n)
{
    if (!n || --n->refs > 0)
        return;
    if (n->type == NODE_LOOP)
        node_release(n->loop.child);
    for (uint64_t i = 0; n->type == NODE_LIST && i < n->list.count; i++)
        node_release(n->list.entry[i].node);
    free(n);
}

/* Fills *n with `count` repetitions of child, simplified. *held: the child of *n, whose reference count does
 * not change; NULL: *n has no child. */
static void loop_fill(struct dt_node *n, uint64_t count, int64_t stride, struct dt_node *child,
                      struct dt_node **held)
{
    *held = NULL;
    if (child->type == NODE_BLOCK && (uint64_t)stride == child->size) {
        *n = (struct dt_node){.type = NODE_BLOCK, .refs = 1, .size = child->size * count};
        return;
    }
    *n = (struct dt_node){.type = NODE_LOOP, .refs = 1, .size = child->size * count};
    n->loop.count = count;
    n->loop.stride = stride;
    n->loop.child = child;
    int64_t reach;
    if (child->type == NODE_LOOP && checked_mul((int64_t)child->loop.count, child->loop.stride, &reach) &&
        reach == stride) {
        n->loop.count = count * child->loop.count;
        n->loop.stride = child->loop.stride;
        n->loop.child = child->loop.child;
    }
    *held = n->loop.child;
}

/* Returns a node for `count` repetitions of child; takes over the caller's reference to child. */
static struct dt_node *node_new_loop(uint64_t count, int64_t stride, struct dt_node *child)
{
    if (count == 1)
        return child;
    struct dt_node *n = node_new(NODE_LOOP, 0, 0), *held;
    if (n) {
        loop_fill(n, count, stride, child, &held);
        if (held)
            held->refs++;
    }
    node_release(child);
    return n;
}

/* A growing list of pieces in type-map order. */
struct collect {
    struct placed *item;
    size_t count, room; /* entries of `item` in use, and allocated */
    bool failed;        /* an allocation failed */
};

static void collect_add(struct collect *c, int64_t offset, uint64_t size, struct dt_node *node)
{
    struct placed *last = c->count ? &c->item[c->count - 1] : NULL;
    if (last && !last->node && !node && last->offset + (int64_t)last->size == offset) {
        last->size += size;
        return;
    }
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 16;
        struct placed *item = realloc(c->item, room * sizeof(*item));
        if (!item) {
            c->failed = true;
            node_release(node);
            return;
        }
        c->item = item;
        c->room = room;
    }
    c->item[c->count++] = (struct placed){offset, size, node};
}

/* The node of the previous piece, with a reference, if it describes the same loop: long lists of equal
 * parts share one node. */
static struct dt_node *share_previous_node(const struct collect *c, const struct dt_node *loop)
{
    struct dt_node *last = c->count ? c->item[c->count - 1].node : NULL;
    if (!last || last->type != NODE_LOOP || loop->type != NODE_LOOP || last->loop.child != loop->loop.child ||
        last->loop.count != loop->loop.count || last->loop.stride != loop->loop.stride)
        return NULL;
    last->refs++;
    return last;
}

/* Adds `count` copies of a node; if they consist of at most UNROLL_MAX blocks, adds the blocks. */
static void collect_loop(struct collect *c, int64_t offset, uint64_t count, int64_t stride, struct dt_node *n)
{
    struct dt_node loop = *n, *held = NULL;
    if (count > 1)
        loop_fill(&loop, count, stride, n, &held);
    if (loop.type == NODE_BLOCK) {
        collect_add(c, offset, loop.size, NULL);
    } else if (loop.type == NODE_LOOP && loop.loop.count <= UNROLL_MAX &&
               loop.loop.child->type == NODE_BLOCK) {
        for (uint64_t i = 0; i < loop.loop.count; i++)
            collect_add(c, offset + (int64_t)i * loop.loop.stride, loop.loop.child->size, NULL);
    } else if (loop.type == NODE_INDEX && loop.index.count <= UNROLL_MAX) {
        for (uint64_t i = 0; i < loop.index.count; i++)
            collect_add(c, offset + loop.index.offsets[i], loop.index.length, NULL);
    } else if (loop.type == NODE_BLOCKS && loop.blocks.count <= UNROLL_MAX) {
        const struct dt_block *e = loop.blocks.entry;
        for (uint64_t i = 0; i < loop.blocks.count; i++)
            collect_add(c, offset + e[i].offset, e[i + 1].start - e[i].start, NULL);
    } else {
        struct dt_node *made = share_previous_node(c, &loop);
        if (!made) {
            n->refs++;
            made = node_new_loop(count, stride, n);
        }
        if (made)
            collect_add(c, offset, made->size, made);
        else
            c->failed = true;
    }
}

static void collect_free(struct collect *c)
{
    for (size_t i = 0; i < c->count; i++)
        node_release(c->item[i].node);
    free(c->item);
}

/* Properties of a complete list of at least two pieces. */
struct survey {
    uint64_t size; /* packed bytes of all pieces */
    int64_t step;  /* from the offset of the first piece to that of the second */
    bool blocks;   /* all pieces are dense blocks */
    bool equal;    /* all pieces have the same size and node */
    bool steady;   /* every offset is `step` behind the one before it */
};

static struct survey collect_summarize_pieces(const struct collect *c)
{
    const struct placed *p = c->item;
    struct survey s = {.blocks = true, .equal = true, .steady = true};
    s.step = p[1].offset - p[0].offset;
    for (size_t i = 0; i < c->count; i++) {
        s.size += p[i].size;
        s.blocks &= !p[i].node;
        s.equal &= p[i].node == p[0].node && p[i].size == p[0].size;
        s.steady &= i == 0 || p[i].offset - p[i - 1].offset == s.step;
    }
    return s;
}

static struct dt_node *make_index(const struct collect *c, uint64_t size)
{
    struct dt_node *n = node_new(NODE_INDEX, size, c->count * sizeof(int64_t));
    if (!n)
        return NULL;
    n->index.count = c->count;
    n->index.length = c->item[0].size;
    n->index.offsets = (int64_t *)(n + 1);
    for (size_t i = 0; i < c->count; i++)
        n->index.offsets[i] = c->item[i].offset - c->item[0].offset;
    return n;
}

static struct dt_node *make_blocks(const struct collect *c, uint64_t size)
{
    struct dt_node *n = node_new(NODE_BLOCKS, size, (c->count + 1) * sizeof(struct dt_block));
    uint64_t start = 0;
    if (!n)
        return NULL;
    n->blocks.count = c->count;
    n->blocks.entry = (struct dt_block *)(n + 1);
    for (size_t i = 0; i < c->count; i++) {
        n->blocks.entry[i] = (struct dt_block){c->item[i].offset - c->item[0].offset, start};
        start += c->item[i].size;
    }
    n->blocks.entry[c->count] = (struct dt_block){0, start};
    return n;
}

/* The node of a piece, with a reference for the caller. */
static struct dt_node *piece_node(const struct placed *p)
{
    if (!p->node)
        return node_new(NODE_BLOCK, p->size, 0);
    p->node->refs++;
    return p->node;
}

static struct dt_node *make_list_node(const struct collect *c, uint64_t size)
{
    struct dt_node *n = node_new(NODE_LIST, size, (c->count + 1) * sizeof(struct dt_child));
    uint64_t start = 0;
    if (!n)
        return NULL;
    n->list.entry = (struct dt_child *)(n + 1);
    for (size_t i = 0; i < c->count; i++) {
        struct dt_node *child = piece_node(&c->item[i]);
        if (!child) {
            node_release(n);
            return NULL;
        }
        n->list.entry[i] = (struct dt_child){c->item[i].offset - c->item[0].offset, start, child};
        start += child->size;
        n->list.count++;
    }
    n->list.entry[c->count] = (struct dt_child){0, start, NULL};
    return n;
}

/* The simplest node that describes the pieces; NULL when memory is out. */
static struct dt_node *collect_make_node(const struct collect *c)
{
    if (c->count == 1)
        return piece_node(&c->item[0]);
    struct survey s = collect_summarize_pieces(c);
    if (s.equal && s.steady) {
        struct dt_node *one = piece_node(&c->item[0]);
        return one ? node_new_loop(c->count, s.step, one) : NULL;
    }
    if (s.blocks)
        return s.equal ? make_index(c, s.size) : make_blocks(c, s.size);
    return make_list_node(c, s.size);
}

/* Computes the layout of a type that has data: a node and its offset. */
static struct dt_node *layout_build(const struct dt_shape *shape, int64_t *offset)
{
    struct collect c = {0};
    for (MPI_Count i = 0; i < shape->count && !c.failed; i++) {
        const struct dt_part *part = &shape->part[i];
        if (part->count == 0 || part->type->size == 0)
            continue;
        const struct dt_layout *inner = dt_layout_of(part->type);
        if (inner)
            collect_loop(&c, part->offset + inner->offset, (uint64_t)part->count, part->type->extent,
                         inner->node);
        else
            c.failed = true;
    }
    struct dt_node *node = c.failed ? NULL : collect_make_node(&c);
    *offset = node ? c.item[0].offset : 0;
    collect_free(&c);
    return node ? node_new_loop((uint64_t)shape->repeat, shape->stride, node) : NULL;
}

const struct dt_layout *dt_layout_of(struct dtype *t)
{
    if (t->layout)
        return t->layout;
    int64_t offset = 0;
    struct dt_node *node = t->size > 0 ? layout_build(t->shape, &offset) : node_new(NODE_BLOCK, 0, 0);
    struct dt_layout *layout = malloc(sizeof(*layout));
    if (!layout || !node) {
        free(layout);
        node_release(node);
        return NULL;
    }
    *layout = (struct dt_layout){offset, node};
    t->layout = layout;
    return layout;
}

void dt_layout_free(struct dt_layout *layout)
{
    if (!layout)
        return;
    node_release(layout->node);
    free(layout);
}

void dt_layout_top(const struct dtype *t, MPI_Count count, struct dt_node *top, int64_t *offset)
{
    struct dt_node *node = t->layout->node, *held;
    *offset = t->layout->offset;
    if (count == 1)
        *top = *node;
    else if (count == 0 || node->size == 0)
        *top = (struct dt_node){.type = NODE_BLOCK};
    else
        loop_fill(top, (uint64_t)count, t->extent, node, &held);
}

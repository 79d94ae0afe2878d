/* layout.c: from shapes to layouts. Simplifies as it builds: neighbours are joined, repeated dense blocks
 * become one block, nested loops whose strides fit become one loop, lists with a steady step become loops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dt/layout.h"

#include <stdlib.h>
#include <string.h>

#include "dt/build.h"

/* A loop of at most this many blocks inside a list is written out, so that its blocks can join their
 * neighbours. */
#define UNROLL_MAX 8

struct placed {
    int64_t offset;
    struct dt_node *node; /* NULL: no data */
};

static struct dt_node *node_new(enum dt_node_type type, uint64_t size)
{
    struct dt_node *n = calloc(1, sizeof(*n));
    if (n)
        *n = (struct dt_node){.type = type, .refs = 1, .size = size};
    return n;
}

static void node_release(struct dt_node *n)
{
    if (!n || --n->refs > 0)
        return;
    switch (n->type) {
    case NODE_LOOP:
        node_release(n->loop.child);
        break;
    case NODE_INDEX:
        free(n->index.offsets);
        break;
    case NODE_BLOCKS:
        free(n->blocks.entry);
        break;
    case NODE_LIST:
        for (uint64_t i = 0; i < n->list.count; i++)
            node_release(n->list.entry[i].node);
        free(n->list.entry);
        break;
    }
    free(n);
}

/* Fills *n with count repetitions of child, simplified; says whether child ended up inside it (or its own
 * child did, which *held then names). */
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
    if (child->type == NODE_LOOP &&
        !__builtin_mul_overflow((int64_t)child->loop.count, child->loop.stride, &reach) && reach == stride) {
        n->loop.count = count * child->loop.count;
        n->loop.stride = child->loop.stride;
        n->loop.child = child->loop.child;
    }
    *held = n->loop.child;
}

/* Takes over the reference to child. */
static struct dt_node *node_loop(uint64_t count, int64_t stride, struct dt_node *child)
{
    if (count == 1)
        return child;
    struct dt_node *n = node_new(NODE_LOOP, 0), *held;
    if (n) {
        loop_fill(n, count, stride, child, &held);
        if (held)
            held->refs++;
    }
    node_release(child);
    return n;
}

/* A growing list of placed nodes in type-map order. */
struct collect {
    struct placed *item;
    size_t count, room;
    bool failed;
};

static void collect_add(struct collect *c, int64_t offset, struct dt_node *node)
{
    struct placed *last = c->count ? &c->item[c->count - 1] : NULL;
    if (last && last->node->type == NODE_BLOCK && node->type == NODE_BLOCK &&
        last->offset + (int64_t)last->node->size == offset) {
        struct dt_node *joined = node_new(NODE_BLOCK, last->node->size + node->size);
        node_release(last->node);
        node_release(node);
        c->failed |= !joined;
        last->node = joined;
        c->count -= !joined;
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
    c->item[c->count++] = (struct placed){offset, node};
}

static void collect_block(struct collect *c, int64_t offset, uint64_t size)
{
    struct dt_node *block = node_new(NODE_BLOCK, size);
    if (block)
        collect_add(c, offset, block);
    else
        c->failed = true;
}

/* Adds a node, written out as its blocks where it has few. Takes over the reference. */
static void collect_node(struct collect *c, int64_t offset, struct dt_node *n)
{
    if (n->type == NODE_LOOP && n->loop.count <= UNROLL_MAX && n->loop.child->type == NODE_BLOCK) {
        for (uint64_t i = 0; i < n->loop.count; i++)
            collect_block(c, offset + (int64_t)i * n->loop.stride, n->loop.child->size);
    } else if (n->type == NODE_INDEX && n->index.count <= UNROLL_MAX) {
        for (uint64_t i = 0; i < n->index.count; i++)
            collect_block(c, offset + n->index.offsets[i], n->index.length);
    } else if (n->type == NODE_BLOCKS && n->blocks.count <= UNROLL_MAX) {
        const struct dt_block *e = n->blocks.entry;
        for (uint64_t i = 0; i < n->blocks.count; i++)
            collect_block(c, offset + e[i].offset, e[i + 1].start - e[i].start);
    } else {
        collect_add(c, offset, n);
        return;
    }
    node_release(n);
}

static void collect_drop(struct collect *c)
{
    for (size_t i = 0; i < c->count; i++)
        node_release(c->item[i].node);
    free(c->item);
}

/* What a finished collection has in common. */
struct survey {
    uint64_t size;
    int64_t step;
    bool blocks; /* all are blocks */
    bool equal;  /* all are alike */
    bool steady; /* offsets advance by `step` */
};

static struct survey collect_survey(const struct collect *c)
{
    const struct placed *p = c->item;
    struct survey s = {.blocks = true, .equal = true, .steady = true};
    s.step = p[1].offset - p[0].offset;
    for (size_t i = 0; i < c->count; i++) {
        bool block = p[i].node->type == NODE_BLOCK;
        s.size += p[i].node->size;
        s.blocks &= block;
        s.equal &= p[i].node == p[0].node || (block && s.blocks && p[i].node->size == p[0].node->size);
        s.steady &= i == 0 || p[i].offset - p[i - 1].offset == s.step;
    }
    return s;
}

static struct dt_node *make_index(const struct collect *c, uint64_t size)
{
    struct dt_node *n = node_new(NODE_INDEX, size);
    if (!n)
        return NULL;
    n->index.count = c->count;
    n->index.length = c->item[0].node->size;
    n->index.offsets = malloc(c->count * sizeof(*n->index.offsets));
    for (size_t i = 0; n->index.offsets && i < c->count; i++)
        n->index.offsets[i] = c->item[i].offset - c->item[0].offset;
    return n;
}

static struct dt_node *make_blocks(const struct collect *c, uint64_t size)
{
    struct dt_node *n = node_new(NODE_BLOCKS, size);
    if (!n)
        return NULL;
    n->blocks.count = c->count;
    n->blocks.entry = malloc((c->count + 1) * sizeof(*n->blocks.entry));
    uint64_t start = 0;
    for (size_t i = 0; n->blocks.entry && i < c->count; i++) {
        n->blocks.entry[i] = (struct dt_block){c->item[i].offset - c->item[0].offset, start};
        start += c->item[i].node->size;
    }
    if (n->blocks.entry)
        n->blocks.entry[c->count] = (struct dt_block){0, start};
    return n;
}

static struct dt_node *make_list(const struct collect *c, uint64_t size)
{
    struct dt_node *n = node_new(NODE_LIST, size);
    if (!n)
        return NULL;
    n->list.entry = malloc((c->count + 1) * sizeof(*n->list.entry));
    if (!n->list.entry)
        return n;
    n->list.count = c->count;
    uint64_t start = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct dt_node *child = c->item[i].node;
        child->refs++;
        n->list.entry[i] = (struct dt_child){c->item[i].offset - c->item[0].offset, start, child};
        start += child->size;
    }
    n->list.entry[c->count] = (struct dt_child){0, start, NULL};
    return n;
}

/* Ends a collection in the simplest node that describes it. */
static struct placed collect_finish(struct collect *c)
{
    struct placed out = {0, NULL};
    if (c->failed || c->count == 0) {
        collect_drop(c);
        return out;
    }
    out.offset = c->item[0].offset;
    if (c->count == 1) {
        out.node = c->item[0].node;
        free(c->item);
        return out;
    }
    struct survey s = collect_survey(c);
    if (s.equal && s.steady) {
        c->item[0].node->refs++;
        out.node = node_loop(c->count, s.step, c->item[0].node);
    } else if (s.blocks && s.equal) {
        out.node = make_index(c, s.size);
    } else if (s.blocks) {
        out.node = make_blocks(c, s.size);
    } else {
        out.node = make_list(c, s.size);
    }
    /* index.offsets, blocks.entry and list.entry are all vital: a node without them is a failure. */
    bool broken = out.node && ((out.node->type == NODE_INDEX && !out.node->index.offsets) ||
                               (out.node->type == NODE_BLOCKS && !out.node->blocks.entry) ||
                               (out.node->type == NODE_LIST && !out.node->list.entry));
    if (broken || !out.node) {
        c->failed = true;
        node_release(out.node);
        out.node = NULL;
    }
    collect_drop(c);
    return out;
}

static bool layout_build(const struct dt_shape *shape, struct placed *out)
{
    struct collect c = {0};
    *out = (struct placed){0, NULL};
    for (MPI_Count i = 0; i < shape->count && !c.failed; i++) {
        const struct dt_part *part = &shape->part[i];
        if (part->count == 0 || part->type->size == 0)
            continue;
        const struct dt_layout *inner = dt_layout_of(part->type);
        if (!inner) {
            c.failed = true;
            break;
        }
        inner->node->refs++;
        struct dt_node *n = node_loop((uint64_t)part->count, part->type->extent, inner->node);
        if (n)
            collect_node(&c, part->offset + inner->offset, n);
        else
            c.failed = true;
    }
    *out = collect_finish(&c);
    if (out->node && shape->repeat > 1) {
        out->node = node_loop((uint64_t)shape->repeat, shape->stride, out->node);
        c.failed |= !out->node;
    }
    return !c.failed;
}

const struct dt_layout *dt_layout_of(struct dtype *t)
{
    if (t->layout)
        return t->layout;
    struct placed p = {0, NULL};
    if (t->size > 0 && !layout_build(t->shape, &p))
        return NULL;
    struct dt_node *node = p.node ? p.node : node_new(NODE_BLOCK, 0);
    struct dt_layout *layout = malloc(sizeof(*layout));
    if (!layout || !node) {
        free(layout);
        node_release(node);
        return NULL;
    }
    *layout = (struct dt_layout){p.offset, node};
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

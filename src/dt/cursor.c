/* cursor.c: a walk over typed data that can stop and continue at any byte. The position in packed bytes is
 * the complete state. The members of struct walk are a cache: the simplified top node and, for
 * dt_cursor_next, the current run of blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dt/device_pack.h"
#include "dt/layout.h"

/* Contents of dt_cursor.state. A run is the sequence of blocks that one node describes. */
struct walk {
    struct dt_node top;         /* root of the layout of all elements */
    int64_t offset;             /* from the buffer to the first packed byte */
    const struct dt_node *node; /* node of the current run; NULL: `top`, so that a cursor may be copied */
    bool open;                  /* the members below describe a current run */
    char *base;                 /* address at which the run's node begins */
    uint64_t index;             /* current block of the run */
    uint64_t done;              /* bytes of the current block that dt_cursor_next has returned */
    uint64_t position;          /* packed position of the next byte of the run */
};
_Static_assert(sizeof(struct walk) <= sizeof(((struct dt_cursor *)0)->state), "the walk fits the cursor");

static struct walk *cursor_walk(struct dt_cursor *c)
{
    return (struct walk *)(void *)c->state;
}

void dt_cursor_open(struct dt_cursor *c, const struct dtype *t, MPI_Count count, const void *buffer)
{
    ASSERT(t->committed);
    c->type = t;
    c->buffer = (char *)buffer;
    c->count = count;
    c->position = 0;
    c->is_device = false;
    c->error = 0;
    struct walk *w = cursor_walk(c);
    memset(c->state, 0, sizeof(c->state));
    dt_layout_top(t, count, &w->top, &w->offset);
}

void dt_cursor_init(struct dt_cursor *c, const struct dtype *t, MPI_Count count, const void *buffer)
{
    dt_cursor_open(c, t, count, buffer);
    c->is_device = dt_is_device(buffer, count, t);
}

void dt_cursor_seek(struct dt_cursor *c, uint64_t position)
{
    c->position = position;
}

/* `len`, or the packed bytes behind the cursor's position if these are fewer. */
static size_t cursor_limit_length(struct dt_cursor *c, size_t len)
{
    const uint64_t size = cursor_walk(c)->top.size;
    return c->position < size ? MIN(len, size - c->position) : 0;
}

size_t dt_cursor_pack(struct dt_cursor *c, void *out, size_t len)
{
    const struct walk *w = cursor_walk(c);
    const size_t n = cursor_limit_length(c, len);
    if (unlikely(c->is_device))
        return dt_device_pack_some(c, out, n);
    dt_node_pack(&w->top, ptr_add(c->buffer, w->offset), c->position, c->position + n, out);
    c->position += n;
    return n;
}

size_t dt_cursor_unpack(struct dt_cursor *c, const void *in, size_t len)
{
    const struct walk *w = cursor_walk(c);
    const size_t n = cursor_limit_length(c, len);
    if (unlikely(c->is_device))
        return dt_device_unpack_some(c, in, n);
    dt_node_unpack(&w->top, ptr_add(c->buffer, w->offset), c->position, c->position + n, in);
    c->position += n;
    return n;
}

static const struct dt_node *run_current_node(const struct walk *w)
{
    return w->node ? w->node : &w->top;
}

/* Descends from the root of the layout to the node whose blocks contain packed byte `at`. */
static void run_seek(struct walk *w, char *base, uint64_t at)
{
    const struct dt_node *n = &w->top;
    w->position = at;
    for (;;) {
        if (n->type == NODE_LOOP && n->loop.child->type != NODE_BLOCK) {
            uint64_t i = at / n->loop.child->size;
            base = ptr_add(base, (int64_t)i * n->loop.stride);
            at -= i * n->loop.child->size;
            n = n->loop.child;
        } else if (n->type == NODE_LIST) {
            const struct dt_child *e = n->list.entry;
            e += dt_find_entry(&e->start, sizeof(*e), n->list.count, at);
            base = ptr_add(base, e->offset);
            at -= e->start;
            n = e->node;
        } else {
            break;
        }
    }
    w->open = true;
    w->node = n == &w->top ? NULL : n;
    w->base = base;
    if (n->type == NODE_BLOCKS) {
        const struct dt_block *e = n->blocks.entry;
        w->index = dt_find_entry(&e->start, sizeof(*e), n->blocks.count, at);
        w->done = at - e[w->index].start;
    } else {
        uint64_t length = n->type == NODE_LOOP    ? n->loop.child->size
                          : n->type == NODE_INDEX ? n->index.length
                                                  : n->size;
        w->index = at / length;
        w->done = at % length;
    }
}

/* The current block of the run. */
static void run_get_block(const struct walk *w, int64_t *offset, uint64_t *length)
{
    const struct dt_node *n = run_current_node(w);
    uint64_t i = w->index;
    switch (n->type) {
    case NODE_LOOP:
        *offset = (int64_t)i * n->loop.stride;
        *length = n->loop.child->size;
        return;
    case NODE_INDEX:
        *offset = n->index.offsets[i];
        *length = n->index.length;
        return;
    case NODE_BLOCKS:
        *offset = n->blocks.entry[i].offset;
        *length = n->blocks.entry[i + 1].start - n->blocks.entry[i].start;
        return;
    default:
        *offset = 0;
        *length = n->size;
    }
}

static bool run_is_at_last(const struct walk *w)
{
    const struct dt_node *n = run_current_node(w);
    /* A NODE_BLOCK is one block. In every other variant of the union `count` is the first member. */
    return n->type == NODE_BLOCK || w->index + 1 == n->loop.count;
}

size_t dt_cursor_next(struct dt_cursor *c, size_t max, void **piece)
{
    struct walk *w = cursor_walk(c);
    int64_t offset;
    uint64_t length;
    if (c->position >= w->top.size || max == 0)
        return 0;
    if (!w->open || w->position != c->position)
        run_seek(w, ptr_add(c->buffer, w->offset), c->position);
    run_get_block(w, &offset, &length);
    *piece = ptr_add(w->base, offset + (int64_t)w->done);
    size_t n = MIN(length - w->done, max);
    w->done += n;
    c->position += n;
    w->position = c->position;
    if (w->done == length) {
        w->done = 0;
        if (run_is_at_last(w))
            w->open = false;
        else
            w->index++;
    }
    return n;
}

/* cursor.c: a walk over typed data that can stop and continue at any byte. The position in packed bytes is
 * the complete state; the rest is the simplified top node and, for dt_cursor_next, the current run of blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dt/device_pack.h"
#include "dt/layout.h"

/* What the walker keeps in dt_cursor.state. A run is a stretch of blocks that one node describes. */
struct walk {
    struct dt_node top;
    int64_t offset;             /* of the first byte, from the buffer */
    const struct dt_node *node; /* of the run; NULL stands for the top, so that a cursor may be copied */
    bool open;                  /* there is a run */
    char *base;                 /* where that node lies */
    uint64_t index;             /* block within the node */
    uint64_t done;              /* bytes of that block already handed out */
    uint64_t position;          /* packed position the run stands at */
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

size_t dt_cursor_pack(struct dt_cursor *c, void *out, size_t len)
{
    struct walk *w = cursor_walk(c);
    uint64_t left = c->position < w->top.size ? w->top.size - c->position : 0;
    size_t n = len < left ? len : left;
    if (unlikely(c->is_device))
        return dt_device_pack_some(c, out, n);
    dt_node_pack(&w->top, ptr_add(c->buffer, w->offset), c->position, c->position + n, out);
    c->position += n;
    return n;
}

size_t dt_cursor_unpack(struct dt_cursor *c, const void *in, size_t len)
{
    struct walk *w = cursor_walk(c);
    uint64_t left = c->position < w->top.size ? w->top.size - c->position : 0;
    size_t n = len < left ? len : left;
    if (unlikely(c->is_device))
        return dt_device_unpack_some(c, in, n);
    dt_node_unpack(&w->top, ptr_add(c->buffer, w->offset), c->position, c->position + n, in);
    c->position += n;
    return n;
}

static uint64_t find_entry(const char *starts, size_t step, uint64_t count, uint64_t at)
{
    uint64_t low = 0, high = count;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2, start;
        memcpy(&start, starts + mid * step, sizeof(start));
        if (start <= at)
            low = mid;
        else
            high = mid;
    }
    return low;
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
            e += find_entry((const char *)&e->start, sizeof(*e), n->list.count, at);
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
        w->index = find_entry((const char *)&e->start, sizeof(*e), n->blocks.count, at);
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
    /* count is the first member of every variant but a block's, which is a run of one. */
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

/* event.c: a heap in an array, four children to a parent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include <stdlib.h>

enum { CHILDREN = 4 };

static bool before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

bool event_put(struct event_queue *q, sim_time at, uint32_t kind, uint32_t what)
{
    if (q->count == q->capacity) {
        size_t capacity = q->capacity ? 2 * q->capacity : 1024;
        struct event *heap = realloc(q->heap, capacity * sizeof(*heap));
        if (!heap)
            return false;
        q->heap = heap;
        q->capacity = capacity;
    }
    struct event e = {at, q->order++, kind, what};
    size_t i = q->count++;
    for (; i > 0 && before(&e, &q->heap[(i - 1) / CHILDREN]); i = (i - 1) / CHILDREN)
        q->heap[i] = q->heap[(i - 1) / CHILDREN];
    q->heap[i] = e;
    return true;
}

static size_t first_child(const struct event_queue *q, size_t parent)
{
    size_t child = CHILDREN * parent + 1, best = child;
    for (size_t i = child + 1; i < child + CHILDREN && i < q->count; i++)
        if (before(&q->heap[i], &q->heap[best]))
            best = i;
    return best;
}

bool event_take(struct event_queue *q, struct event *out)
{
    if (q->count == 0)
        return false;
    *out = q->heap[0];
    q->taken++;
    struct event last = q->heap[--q->count];
    size_t i = 0;
    while (CHILDREN * i + 1 < q->count) {
        size_t child = first_child(q, i);
        if (!before(&q->heap[child], &last))
            break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = last;
    return true;
}

void event_queue_free(struct event_queue *q)
{
    free(q->heap);
    *q = (struct event_queue){0};
}

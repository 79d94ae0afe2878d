/* event.c: a queue of events for times that never run backwards, in constant time for any number of events. A
 * time is written in digits of 6 bits. An event lies at the level of the highest digit in which its time
 * differs from `base`, in the slot of that digit. A slot of the lowest level holds a single time. When the
 * lowest level is empty, the first non-empty slot of the next level becomes the new base, and its events move
 * down in order; events of the same time share a slot at every level and so keep the order in which they were
 * inserted. An event moves at most once for each digit, usually two or three times; a heap of a hundred
 * thousand events would access as many cache lines for each event as it has levels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include <stdlib.h>

/* LEVEL_NEAR: its slots are 4 ns each. */
enum { CHUNK_EVENTS = 30, LEVEL_NEAR = 2 };

struct event_chunk {
    struct event_chunk *next;
    uint32_t begin, end;
    struct event events[CHUNK_EVENTS];
};

static struct event_chunk *chunk_new(struct event_queue *q)
{
    struct event_chunk *c = q->spare;
    if (c)
        q->spare = c->next;
    else if (!(c = malloc(sizeof(*c))))
        return NULL;
    c->next = NULL;
    c->begin = c->end = 0;
    return c;
}

static void chunk_free(struct event_queue *q, struct event_chunk *c)
{
    c->next = q->spare;
    q->spare = c;
}

static int event_level(const struct event_queue *q, sim_time at)
{
    uint64_t differs = (uint64_t)(at ^ q->base);
    return differs ? (63 - __builtin_clzll(differs)) / EVENT_DIGIT : 0;
}

static bool event_store(struct event_queue *q, const struct event *e)
{
    int level = event_level(q, e->at);
    unsigned digit = (unsigned)(e->at >> (level * EVENT_DIGIT)) % EVENT_SLOTS;
    struct event_slot *s = &q->slots[level][digit];
    if (!s->last || s->last->end == CHUNK_EVENTS) {
        struct event_chunk *c = chunk_new(q);
        if (!c)
            return false;
        if (s->last)
            s->last->next = c;
        else
            s->first = c;
        s->last = c;
        q->used[level] |= UINT64_C(1) << digit;
    }
    s->last->events[s->last->end++] = *e;
    return true;
}

bool event_insert(struct event_queue *q, sim_time at, uint32_t kind, uint32_t what)
{
    struct event e = {at < q->base ? q->base : at, kind, what};
    if (!event_store(q, &e))
        return false;
    q->count++;
    return true;
}

/* Removes the first event of a slot that is not empty. */
static struct event event_slot_pop(struct event_queue *q, int level, unsigned digit)
{
    struct event_slot *s = &q->slots[level][digit];
    struct event_chunk *c = s->first;
    struct event e = c->events[c->begin++];
    if (c->begin == c->end) {
        s->first = c->next;
        if (!s->first) {
            s->last = NULL;
            q->used[level] &= ~(UINT64_C(1) << digit);
        }
        chunk_free(q, c);
    }
    return e;
}

/* Makes the slot's time the base and moves its events to lower levels. */
static void event_slot_open(struct event_queue *q, int level, unsigned digit)
{
    struct event_slot *s = &q->slots[level][digit];
    struct event_chunk *c = s->first;
    unsigned shift = (unsigned)level * EVENT_DIGIT;
    const bool has_hints = q->prefetch && (level == LEVEL_NEAR || level == LEVEL_NEAR + 1);
    for (struct event_chunk *near = c; has_hints && level == LEVEL_NEAR && near; near = near->next)
        for (uint32_t i = near->begin; i < near->end; i++)
            q->prefetch(q->ctx, &near->events[i], SOON_NEAR);
    q->base = (sim_time)((uint64_t)c->events[c->begin].at >> shift << shift);
    *s = (struct event_slot){0};
    q->used[level] &= ~(UINT64_C(1) << digit);
    while (c) {
        struct event_chunk *next = c->next;
        for (uint32_t i = c->begin; i < c->end; i++) {
            if (has_hints)
                q->prefetch(q->ctx, &c->events[i], level == LEVEL_NEAR ? SOON_NEXT : SOON_FAR);
            q->failed |= !event_store(q, &c->events[i]);
        }
        chunk_free(q, c);
        c = next;
    }
}

static bool slot_has_one_event(const struct event_slot *s)
{
    return s->first == s->last && s->first->end - s->first->begin == 1;
}

bool event_pop(struct event_queue *q, struct event *out)
{
    while (q->count && !q->failed) {
        int level = 0;
        while (!q->used[level])
            level++;
        unsigned digit = (unsigned)__builtin_ctzll(q->used[level]);
        if (level > 0 && !slot_has_one_event(&q->slots[level][digit])) {
            event_slot_open(q, level, digit);
            continue;
        }
        *out = event_slot_pop(q, level, digit);
        q->base = out->at;
        q->count--;
        q->taken++;
        return true;
    }
    return false;
}

void event_queue_free(struct event_queue *q)
{
    for (int level = 0; level < EVENT_LEVELS; level++)
        for (unsigned digit = 0; digit < EVENT_SLOTS; digit++)
            for (struct event_chunk *c = q->slots[level][digit].first, *next; c; c = next) {
                next = c->next;
                free(c);
            }
    for (struct event_chunk *c = q->spare, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *q = (struct event_queue){0};
}

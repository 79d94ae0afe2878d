/* pairs.c: a hash table with open addressing; a deletion moves later entries back, so that searches stay
 * short.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "pairs.h"

#include <stdlib.h>

static size_t pairs_home_slot(const struct pairs *p, uint32_t from, uint32_t to, uint32_t order)
{
    uint64_t h =
        ((uint64_t)from << 32 | to) * UINT64_C(0x9e3779b97f4a7c15) + order * UINT64_C(0xd6e8feb86659fd93);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(h >> 20) & (p->capacity - 1);
}

static size_t pairs_find(const struct pairs *p, uint32_t from, uint32_t to, uint32_t order)
{
    size_t i = pairs_home_slot(p, from, to, order);
    while (p->slots[i].used &&
           (p->slots[i].from != from || p->slots[i].to != to || p->slots[i].order != order))
        i = (i + 1) & (p->capacity - 1);
    return i;
}

static bool pairs_grow(struct pairs *p)
{
    struct pairs larger = {.capacity = p->capacity ? 2 * p->capacity : 256, .count = p->count};
    if (2 * (p->count + 1) <= p->capacity)
        return true;
    larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
    if (!larger.slots) {
        p->failed = true;
        return false;
    }
    for (size_t i = 0; i < p->capacity; i++)
        if (p->slots[i].used)
            larger.slots[pairs_find(&larger, p->slots[i].from, p->slots[i].to, p->slots[i].order)] =
                p->slots[i];
    free(p->slots);
    *p = larger;
    return true;
}

/* The slot of a key; `fresh`: the key was inserted now. NULL: memory ran out. */
static struct pair *pairs_find_or_insert(struct pairs *p, uint32_t from, uint32_t to, uint32_t order,
                                         bool *fresh)
{
    if (!pairs_grow(p))
        return NULL;
    struct pair *s = &p->slots[pairs_find(p, from, to, order)];
    *fresh = !s->used;
    if (*fresh) {
        *s = (struct pair){from, to, order, 0, true};
        p->count++;
    }
    return s;
}

static void pairs_remove(struct pairs *p, struct pair *s)
{
    size_t hole = (size_t)(s - p->slots);
    for (size_t i = (hole + 1) & (p->capacity - 1); p->slots[i].used; i = (i + 1) & (p->capacity - 1)) {
        size_t from = pairs_home_slot(p, p->slots[i].from, p->slots[i].to, p->slots[i].order);
        /* an entry may move into the hole unless its home slot lies after the hole */
        if (((i - from) & (p->capacity - 1)) >= ((i - hole) & (p->capacity - 1))) {
            p->slots[hole] = p->slots[i];
            hole = i;
        }
    }
    p->slots[hole].used = false;
    p->count--;
}

uint32_t pairs_count(struct pairs *p, uint32_t from, uint32_t to)
{
    bool fresh;
    struct pair *s = pairs_find_or_insert(p, from, to, 0, &fresh);
    return s ? s->value++ : 0;
}

bool pairs_match(struct pairs *p, uint32_t from, uint32_t to, uint32_t order, uint32_t mine, uint32_t *first)
{
    bool fresh;
    struct pair *s = pairs_find_or_insert(p, from, to, order, &fresh);
    if (!s)
        return false;
    if (fresh) {
        s->value = mine;
        return false;
    }
    *first = s->value == UINT32_MAX ? mine : s->value;
    pairs_remove(p, s);
    return true;
}

void pairs_free(struct pairs *p)
{
    free(p->slots);
    *p = (struct pairs){0};
}

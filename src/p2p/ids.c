/* ids.c: a table of slots; each reuse of a slot has another generation.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "p2p/ids.h"

#include <stdlib.h>

#include "base/util.h"

static int ids_grow(struct ids *ids)
{
    uint32_t size = ids->size ? ids->size * 2 : 64;
    struct id_slot *slots = realloc(ids->slots, size * sizeof(*slots));
    if (!slots)
        return -1;
    for (uint32_t i = size; i-- > ids->size;) {
        slots[i] = (struct id_slot){.generation = 1, .next = ids->free};
        ids->free = i + 1;
    }
    ids->slots = slots;
    ids->size = size;
    return 0;
}

uint64_t ids_add(struct ids *ids, void *object)
{
    if (ids->free == 0 && ids_grow(ids) != 0)
        return 0;
    uint32_t i = ids->free - 1;
    struct id_slot *slot = &ids->slots[i];
    ids->free = slot->next;
    slot->object = object;
    return (uint64_t)slot->generation << 32 | i;
}

static struct id_slot *find_slot(const struct ids *ids, uint64_t id)
{
    uint32_t i = (uint32_t)id;
    if (i >= ids->size || ids->slots[i].generation != (uint32_t)(id >> 32) || !ids->slots[i].object)
        return NULL;
    return &ids->slots[i];
}

void *ids_find(const struct ids *ids, uint64_t id)
{
    struct id_slot *slot = find_slot(ids, id);
    return slot ? slot->object : NULL;
}

void ids_remove(struct ids *ids, uint64_t id)
{
    struct id_slot *slot = find_slot(ids, id);
    if (!slot)
        return;
    slot->object = NULL;
    slot->generation = MAX(slot->generation + 1, 1u);
    slot->next = ids->free;
    ids->free = (uint32_t)id + 1;
}

void ids_close(struct ids *ids)
{
    free(ids->slots);
    *ids = (struct ids){0};
}

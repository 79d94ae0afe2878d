/* buffers.c: remembers the addresses of used buffers in an open hash table that doubles up to a limit. When
 * the table is full, new addresses are only counted as dropped; the reuse rate is then a lower bound.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "prof.h"

enum { FIRST_SLOTS = 1 << 10, LAST_SLOTS = 1 << 18 }; /* at most 2 MiB per process */

static uintptr_t *slots; /* 0: free */
static size_t nslots, used;

static uintptr_t *buffers_find_slot(uintptr_t *table, size_t n, uintptr_t key)
{
    size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (n - 1);
    while (table[i] && table[i] != key)
        i = (i + 1) & (n - 1);
    return &table[i];
}

/* Makes room for one more address; keeps the table at most three quarters full, so that searches are
 * short. */
static bool grow_table(void)
{
    if (used < nslots - nslots / 4 && nslots)
        return true;
    const size_t more = nslots ? 2 * nslots : FIRST_SLOTS;
    uintptr_t *table = more <= LAST_SLOTS ? calloc(more, sizeof(*table)) : NULL;
    if (!table)
        return false;
    for (size_t i = 0; i < nslots; i++)
        if (slots[i])
            *buffers_find_slot(table, more, slots[i]) = slots[i];
    free(slots);
    slots = table;
    nslots = more;
    return true;
}

bool prof_buffer_check_seen(const void *at)
{
    const uintptr_t key = (uintptr_t)at;
    if (slots && *buffers_find_slot(slots, nslots, key) == key)
        return true;
    if (!grow_table()) {
        prof.reuse.dropped++;
        return false;
    }
    *buffers_find_slot(slots, nslots, key) = key;
    used++;
    return false;
}

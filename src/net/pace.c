/* pace.c: measures the bandwidth of large messages on each link.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/pace.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static unsigned size_class_of(uint64_t bytes)
{
    unsigned c = 0;
    for (uint64_t limit = PACE_LEAST * 8; c + 1 < PACE_CLASSES && bytes >= limit; limit *= 8)
        c++;
    return c;
}

/* Block b begins at index PACE_FIRST_BLOCK * (2^b - 1). */
static unsigned block_of_index(uint32_t index)
{
    unsigned b = 0;
    while (b < PACE_BLOCKS && index >= (uint32_t)PACE_FIRST_BLOCK * ((2u << b) - 1))
        b++;
    return b;
}

struct pace *paces_get(const struct paces *p, uint32_t index)
{
    const unsigned b = block_of_index(index);
    return &p->blocks[b][index - (uint32_t)PACE_FIRST_BLOCK * ((1u << b) - 1)];
}

/* Returns the index + 1 of an unused record, preferably that of a departed peer; 0 if there is no memory. */
static uint32_t paces_allocate_record(struct paces *p)
{
    if (p->unused) {
        const uint32_t at = p->unused;
        p->unused = paces_get(p, at - 1)->next;
        return at;
    }
    const uint32_t count = atomic_load_explicit(&p->count, memory_order_relaxed);
    const unsigned b = block_of_index(count);
    if (b == PACE_BLOCKS)
        return 0;
    if (!p->blocks[b])
        p->blocks[b] = calloc((size_t)PACE_FIRST_BLOCK << b, sizeof(struct pace));
    if (!p->blocks[b])
        return 0;
    atomic_store_explicit(&p->count, count + 1, memory_order_release);
    return count + 1;
}

/* Finds or creates the record of this link; NULL if there is no memory: the link is then not measured. */
static struct pace *paces_find(struct paces *p, uint32_t *first, const struct pace *who)
{
    for (uint32_t at = *first; at != 0; at = paces_get(p, at - 1)->next) {
        struct pace *it = paces_get(p, at - 1);
        if (it->rail == who->rail && it->direction == who->direction)
            return it;
    }
    const uint32_t at = paces_allocate_record(p);
    if (at == 0)
        return NULL;
    struct pace *made = paces_get(p, at - 1);
    *made = *who;
    made->next = *first;
    *first = at;
    return made;
}

void paces_forget(struct paces *p, uint32_t *first)
{
    while (*first != 0) {
        const uint32_t at = *first;
        struct pace *it = paces_get(p, at - 1);
        *first = it->next;
        *it = (struct pace){.next = p->unused};
        p->unused = at;
    }
}

void pace_finish_run(struct pace *it)
{
    struct pace_class *c = &it->classes[it->run_class];
    const uint64_t bytes = it->run_to - it->run_from;
    if (it->run_messages == 0 || bytes == 0)
        return;
    const uint64_t cost = MIN((it->ended - it->run_began) * PACE_UNIT / bytes, UINT32_MAX);
    c->best = (uint32_t)(c->runs == 0 ? cost : MIN(cost, c->best));
    c->runs++;
    it->run_messages = 0;
}

/* Adds a message to the current run, or begins a new run. Messages of a link end one after the other, so only
 * the time since the end of the previous message has not been counted yet. */
static void pace_add_message(struct pace *it, uint64_t bytes, struct pace_mark mark, uint64_t moved,
                             uint64_t now)
{
    const unsigned class = size_class_of(bytes);
    const bool pause = mark.began > it->ended;
    if (pause || class != it->run_class || it->run_to - it->run_from >= PACE_RUN_BYTES)
        pace_finish_run(it);
    if (it->run_messages == 0) {
        it->run_began = pause ? mark.began : it->ended;
        it->run_from = pause ? mark.moved : it->run_to;
        it->run_class = (uint8_t) class;
    }
    it->run_messages++;
    it->run_to = moved;
    it->classes[class].messages++;
    it->classes[class].bytes += bytes;
    it->classes[class].ns += now - MAX(mark.began, it->ended);
    it->ended = now;
}

void pace_record_transfer(struct paces *p, uint32_t *first, const struct pace *who, uint64_t bytes,
                          struct pace_mark mark, uint64_t now)
{
    if (bytes < PACE_LEAST || mark.began == 0 || mark.began > now)
        return;
    uint64_t *moved = &p->moved[who->local][who->direction];
    struct pace *it = paces_find(p, first, who);
    *moved += bytes;
    if (it)
        pace_add_message(it, bytes, mark, *moved, now);
}

const struct pace_class *pace_busiest_class(const struct pace *it, unsigned *class)
{
    const struct pace_class *most = NULL;
    for (unsigned c = 0; c < PACE_CLASSES; c++)
        if (it->classes[c].runs > 0 && (!most || it->classes[c].bytes > most->bytes)) {
            most = &it->classes[c];
            *class = c;
        }
    return most;
}

uint64_t pace_export_word(const struct pace *it, unsigned class, unsigned word)
{
    const struct pace_class *c = &it->classes[class];
    const uint64_t words[PACE_WORDS] = {
        it->rank,    it->rail | (unsigned)it->direction << 8 | (unsigned)it->local << 9 | class << 16,
        c->messages, c->bytes,
        c->ns,       c->best};
    return c->runs > 0 ? words[word] : 0;
}

void paces_free(struct paces *p)
{
    for (int b = 0; b < PACE_BLOCKS; b++)
        free(p->blocks[b]);
    memset(p, 0, sizeof(*p));
}

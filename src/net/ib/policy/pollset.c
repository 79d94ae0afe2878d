/* pollset.c: which peers have an RDMA ring that is polled; see pollset.h for the policies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/pollset.h"

#include <string.h>

/* The word of a connection (*traffic): a count of frames, the epoch of that count, and a flag that the
 * connection has caused a removal. */
#define COUNT_MAX   0xffffu
#define REQUESTED   0x10000u
#define EPOCH_SHIFT 17

static uint32_t decayed_count(const struct pollset *s, uint32_t word)
{
    uint32_t missed = (s->epoch - (word >> EPOCH_SHIFT)) & (UINT32_MAX >> EPOCH_SHIFT);
    return missed < 16 ? (word & COUNT_MAX) >> missed : 0;
}

static uint32_t pack_count_word(const struct pollset *s, uint32_t count, uint32_t requested)
{
    return s->epoch << EPOCH_SHIFT | requested | MIN(count, COUNT_MAX);
}

void pollset_open(struct pollset *s, enum pollset_policy policy, enum pollset_order order, uint32_t limit)
{
    memset(s, 0, sizeof(*s));
    s->policy = policy;
    s->order = order;
    s->limit = MIN(limit, POLLSET_MAX);
    s->window = MAX(256 * s->limit, POLLSET_WINDOW);
}

void pollset_age_counts(struct pollset *s)
{
    s->events = 0;
    s->epoch++;
    s->least /= 2;
    for (uint32_t i = 0; i < s->count; i++)
        s->members[i].traffic /= 2;
}

static struct pollset_member *pollset_find(struct pollset *s, uint32_t id)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->members[i].id == id)
            return &s->members[i];
    return NULL;
}

/* Finds the member with the least traffic that is not leaving; its traffic becomes s->least. */
static struct pollset_member *pollset_find_quietest(struct pollset *s)
{
    struct pollset_member *found = NULL;
    for (uint32_t i = 0; i < s->count; i++) {
        struct pollset_member *m = &s->members[i];
        if (!m->leaving && (!found || m->traffic < found->traffic))
            found = m;
    }
    if (found)
        s->least = found->traffic;
    return found;
}

static bool is_clearly_more(uint32_t count, uint32_t than)
{
    return count > 2 * than + POLLSET_WORTH;
}

static void pollset_add_member(struct pollset *s, uint32_t id, uint32_t count)
{
    s->members[s->count++] = (struct pollset_member){.id = id, .traffic = count};
    s->least = MIN(s->least, count);
}

struct pollset_change pollset_count_frame(struct pollset *s, uint32_t id, uint32_t *traffic)
{
    struct pollset_change change = {.add = POLLSET_NONE, .remove = POLLSET_NONE};
    if (++s->events >= s->window)
        pollset_age_counts(s);
    uint32_t count = decayed_count(s, *traffic) + 1, requested = *traffic & REQUESTED;
    *traffic = pack_count_word(s, count, requested);

    /* Fast path: most frames change nothing, and this runs for every frame of a connection without a ring. */
    bool room = s->count < s->limit;
    if (s->policy == POLLSET_FIRST ? !room
                                   : count < POLLSET_WORTH || (!room && !is_clearly_more(count, s->least)))
        return change;

    struct pollset_member *m = pollset_find(s, id);
    if (m) { /* the ring was full, or the member has not received the offer yet */
        m->traffic += count;
        *traffic = pack_count_word(s, 0, 0);
        return change;
    }
    if (room) {
        pollset_add_member(s, id, count);
        change.add = id;
        *traffic = pack_count_word(s, 0, 0);
        return change;
    }
    /* Several members may leave at a time, so that one that leaves slowly does not delay others. A connection
     * that has already caused a removal waits until no member is leaving. */
    m = (requested ? s->leaving == 0 : s->leaving <= s->limit / 4) ? pollset_find_quietest(s) : NULL;
    if (m && is_clearly_more(count, m->traffic)) {
        m->leaving = true;
        s->leaving++;
        change.remove = m->id;
        *traffic = pack_count_word(s, count, REQUESTED);
    }
    return change;
}

void pollset_remove_member(struct pollset *s, uint32_t id)
{
    struct pollset_member *m = pollset_find(s, id);
    if (!m)
        return;
    uint32_t place = (uint32_t)(m - s->members);
    s->leaving -= m->leaving;
    s->count--;
    memmove(m, m + 1, (s->count - place) * sizeof(*m));
    if (place < s->next)
        s->next--;
    if (s->next >= s->count)
        s->next = 0;
}

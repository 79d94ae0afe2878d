/* meeting.c: groups the waits of all ranks into collective calls, by communicator and call number. Disjoint
 * communicators may have the same context number, so the members are compared too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "meeting.h"

#include <stdlib.h>
#include <string.h>

int page_group_member(const struct page_group *g, int rank)
{
    if (g->nruns > PAGE_RUNS || rank < 0)
        return -1;
    for (uint32_t i = 0, before = 0; i < g->nruns; before += g->runs[i++].count)
        if ((uint32_t)rank < before + g->runs[i].count)
            return (int)((int64_t)g->runs[i].first + (int64_t)((uint32_t)rank - before) * g->runs[i].stride);
    return -1;
}

static bool groups_are_equal(const struct page_group *a, const struct page_group *b)
{
    return a->context == b->context && a->size == b->size && a->nruns == b->nruns &&
           memcmp(a->runs, b->runs, sizeof(a->runs)) == 0;
}

static bool is_collective(const struct page_item *item)
{
    return item->kind == PAGE_COLL || item->kind == PAGE_CREATION;
}

static bool is_same_collective(const struct page_item *a, const struct page_item *b)
{
    return a->kind == b->kind && a->context == b->context && a->number == b->number;
}

const struct why_meeting *meeting_find_collective(const struct why *w, const struct page_wait *wait,
                                                  const struct page_item *item)
{
    if (!is_collective(item) || item->group >= PAGE_GROUPS)
        return NULL;
    for (size_t i = 0; i < w->nmeetings; i++)
        if (is_same_collective(w->meetings[i].item, item) &&
            groups_are_equal(w->meetings[i].group, &wait->groups[item->group]))
            return &w->meetings[i];
    return NULL;
}

bool rank_list_append(uint32_t **list, uint32_t *count, uint32_t rank)
{
    if ((*count & (*count - 1)) == 0) { /* grow if the count is 0 or a power of two */
        uint32_t *grown = realloc(*list, (*count ? 2 * (size_t)*count : 4) * sizeof(**list));
        if (!grown)
            return false;
        *list = grown;
    }
    (*list)[(*count)++] = rank;
    return true;
}

/* Returns the number of collectives that a rank has called on this communicator; NULL if it called none,
 * or its page had no room for the communicator. */
static const struct page_comm *meeting_comm_calls(const struct page *page, const struct page_group *g)
{
    for (int i = 0; i < PAGE_COMMS; i++) {
        const struct page_comm *c = &page->comms[i];
        if (atomic_load_explicit(&c->used, memory_order_relaxed) && c->context == g->context &&
            c->size == g->size)
            return c;
    }
    return NULL;
}

static const struct page_item *meeting_find_wait(const struct why_rank *r, const struct why_meeting *m)
{
    for (int i = 0; r->state == WHY_WAITS && i < PAGE_WAITS; i++) {
        const struct page_wait *wait = &r->page->waits[i];
        for (uint32_t k = 0; wait->id && k < wait->nitems; k++)
            if (is_same_collective(&wait->items[k], m->item) && wait->items[k].group < PAGE_GROUPS &&
                groups_are_equal(&wait->groups[wait->items[k].group], m->group))
                return &wait->items[k];
    }
    return NULL;
}

static bool classify_member(struct why *w, struct why_meeting *m, uint32_t member)
{
    const struct why_rank *r = &w->rank[member];
    const struct page_item *there = meeting_find_wait(r, m);
    if (there) {
        const bool other = there->coll != m->item->coll ||
                           (there->rank >= 0 && m->item->rank >= 0 && there->rank != m->item->rank);
        if (m->item->kind == PAGE_COLL && other && !rank_list_append(&m->strangers, &m->nstrangers, member))
            return false;
        return rank_list_append(&m->waiting, &m->nwaiting, member);
    }
    if (r->state == WHY_UNSEEN || r->state == WHY_FINISHED ||
        (m->item->kind == PAGE_COLL && m->item->number == 0)) {
        m->unknown = true;
        return true;
    }
    if (m->item->kind == PAGE_CREATION)
        return rank_list_append(&m->missing, &m->nmissing, member);
    const struct page_comm *c = meeting_comm_calls(r->page, m->group);
    if (!c && r->page->comms_lost > 0)
        m->unknown = true;
    else if (!c || c->calls < m->item->number)
        return rank_list_append(&m->missing, &m->nmissing, member);
    else if (c->calls - m->item->number < PAGE_KINDS && page_comm_get_kind(c, m->item->number) >= 0 &&
             page_comm_get_kind(c, m->item->number) != m->item->coll)
        return rank_list_append(&m->strangers, &m->nstrangers, member);
    return true; /* the member has completed this call, or is about to wait in it */
}

static bool meeting_add(struct why *w, const struct page_wait *wait, const struct page_item *item)
{
    struct why_meeting *grown = realloc(w->meetings, (w->nmeetings + 1) * sizeof(*grown));
    if (!grown)
        return false;
    w->meetings = grown;
    struct why_meeting *m = &grown[w->nmeetings++];
    *m = (struct why_meeting){.wait = wait, .item = item, .group = &wait->groups[item->group]};
    m->unknown = m->group->nruns > PAGE_RUNS;
    for (int i = 0; i < m->group->size && !(m->group->nruns > PAGE_RUNS); i++) {
        const int member = page_group_member(m->group, i);
        if (member < 0 || (uint32_t)member >= w->n)
            m->unknown = true;
        else if (!classify_member(w, m, (uint32_t)member))
            return false;
    }
    return true;
}

bool meetings_find(struct why *w)
{
    for (uint32_t r = 0; r < w->n; r++) {
        for (int i = 0; w->rank[r].state == WHY_WAITS && i < PAGE_WAITS; i++) {
            const struct page_wait *wait = &w->rank[r].page->waits[i];
            for (uint32_t k = 0; wait->id && k < wait->nitems; k++) {
                const struct page_item *item = &wait->items[k];
                if (is_collective(item) && item->group < PAGE_GROUPS &&
                    !meeting_find_collective(w, wait, item) && !meeting_add(w, wait, item))
                    return false;
            }
        }
    }
    return true;
}

void meetings_free(struct why *w)
{
    for (size_t i = 0; i < w->nmeetings; i++) {
        free(w->meetings[i].waiting);
        free(w->meetings[i].missing);
        free(w->meetings[i].strangers);
    }
    free(w->meetings);
    w->meetings = NULL;
    w->nmeetings = 0;
}

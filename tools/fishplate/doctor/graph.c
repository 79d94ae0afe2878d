/* graph.c: which ranks can still make progress, and for those that cannot, which ranks they wait for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include <stdlib.h>

#include "findings.h"
#include "meeting.h"

/* True if rank `q` waits in a call that matches the item of rank `r`: the library can complete both. */
static bool graph_is_matched_wait(const struct why *w, uint32_t r, const struct page_item *item, uint32_t q)
{
    const struct why_rank *other = &w->rank[q];
    for (int i = 0; other->state == WHY_WAITS && i < PAGE_WAITS; i++) {
        const struct page_wait *wait = &other->page->waits[i];
        for (uint32_t k = 0; wait->id && k < wait->nitems; k++)
            if (why_messages_match(item, r, &wait->items[k], q) ||
                why_messages_match(&wait->items[k], q, item, r))
                return true;
    }
    return false;
}

/* True if the rank has an unexpected message that matches the receive: the receive is about to complete. */
static bool graph_has_matching_message(const struct page *page, const struct page_item *item)
{
    for (uint32_t i = 0; i < page->nmessages; i++) {
        const struct page_message *m = &page->messages_waiting[i];
        if (m->context == item->context && (item->peer == PAGE_ANY || item->peer == m->peer) &&
            (item->tag == PAGE_ANY || item->tag == m->tag))
            return true;
    }
    return false;
}

static bool can_rank_unblock(const struct why *w, uint32_t r, const struct page_item *item, uint32_t q,
                             int *blocked)
{
    if (w->rank[q].live || graph_is_matched_wait(w, r, item, q))
        return true;
    if (*blocked < 0)
        *blocked = (int)q;
    return false;
}

static bool can_any_rank_unblock(const struct why *w, uint32_t r, const struct page_item *item,
                                 const struct page_group *g, int *blocked)
{
    if (!g || g->nruns > PAGE_RUNS)
        return true;
    for (int i = 0; i < g->size; i++) {
        const int q = page_group_member(g, i);
        if (q < 0 || (uint32_t)q >= w->n)
            return true;
        if ((uint32_t)q != r && can_rank_unblock(w, r, item, (uint32_t)q, blocked))
            return true;
    }
    return false;
}

static bool can_collective_start(const struct why *w, const struct why_meeting *m, uint32_t r, int *blocked)
{
    if (!m || m->unknown)
        return true;
    for (uint32_t i = 0; i < m->nmissing; i++) {
        if (!w->rank[m->missing[i]].live) {
            *blocked = (int)m->missing[i];
            return false;
        }
    }
    if (m->nmissing > 0 || m->nstrangers == 0)
        return true;
    /* Waiting ranks and ranks in another call wait only for each other. */
    for (uint32_t i = 0; i < m->nwaiting + m->nstrangers; i++) {
        const uint32_t q = i < m->nstrangers ? m->strangers[i] : m->waiting[i - m->nstrangers];
        if (w->rank[q].live)
            return true;
        if (q != r && *blocked < 0)
            *blocked = (int)q;
    }
    return *blocked < 0;
}

/* True if this item can still complete. Otherwise *blocked is a rank that can never complete it. */
static bool can_item_complete(const struct why *w, uint32_t r, const struct page_wait *wait,
                              const struct page_item *item, int *blocked)
{
    const struct page_group *g = item->group < PAGE_GROUPS ? &wait->groups[item->group] : NULL;
    const bool peer = item->peer >= 0 && (uint32_t)item->peer < w->n;
    *blocked = -1;
    switch (item->kind) {
    case PAGE_RECV:
    case PAGE_PROBE:
        if (item->step == PAGE_MOVING || graph_has_matching_message(w->rank[r].page, item))
            return true;
        if (item->peer == PAGE_ANY)
            return can_any_rank_unblock(w, r, item, g, blocked);
        return !peer || can_rank_unblock(w, r, item, (uint32_t)item->peer, blocked);
    case PAGE_SEND:
    case PAGE_STALLED_SEND:
    case PAGE_NAMED:
        if (item->kind == PAGE_SEND && item->step == PAGE_POSTED)
            return !peer || can_rank_unblock(w, r, item, (uint32_t)item->peer, blocked);
        /* Any rank that is inside MPI returns credits. */
        if (!peer || (w->rank[item->peer].state != WHY_GONE && w->rank[item->peer].state != WHY_FINISHED))
            return true;
        *blocked = item->peer;
        return false;
    case PAGE_LOCK:
        *blocked = item->peer;
        return !peer || w->rank[item->peer].live;
    case PAGE_COLL:
    case PAGE_CREATION:
        return can_collective_start(w, meeting_find_collective(w, wait, item), r, blocked);
    default:
        return true;
    }
}

static bool can_wait_complete(const struct why *w, uint32_t r, const struct page_wait *wait, int *next,
                              int *item)
{
    int blocked;
    if (wait->nitems == 0 || (wait->any && wait->total > wait->nitems))
        return true; /* a page records only some items of a long wait */
    *next = -1;
    for (uint32_t k = 0; k < wait->nitems; k++) {
        const bool may = can_item_complete(w, r, wait, &wait->items[k], &blocked);
        if (may && wait->any)
            return true;
        if (!may && *next < 0) {
            *next = blocked;
            *item = (int)k;
        }
        if (!may && !wait->any)
            return false;
    }
    return *next < 0;
}

/* True if the rank can continue: of several threads one must have a wait that can complete. */
static bool graph_rank_can_continue(struct why *w, uint32_t r)
{
    struct why_rank *rank = &w->rank[r];
    bool first = true;
    for (int i = 0; i < PAGE_WAITS; i++) {
        int next = -1, item = 0;
        if (rank->page->waits[i].id == 0)
            continue;
        if (can_wait_complete(w, r, &rank->page->waits[i], &next, &item))
            return true;
        if (first) {
            rank->next = next;
            rank->item = item;
        }
        first = false;
    }
    return first || rank->page->waits_lost > 0;
}

static void mark_live_ranks(struct why *w)
{
    for (uint32_t r = 0; r < w->n; r++) {
        struct why_rank *rank = &w->rank[r];
        rank->next = rank->item = rank->finding = -1;
        rank->live = rank->state != WHY_GONE && rank->state != WHY_FINISHED &&
                     !(rank->state == WHY_WAITS && rank->steady);
        w->waiting += rank->state == WHY_WAITS;
        w->unseen += rank->state == WHY_UNSEEN;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t r = 0; r < w->n; r++) {
            if (w->rank[r].live || w->rank[r].state != WHY_WAITS || !graph_rank_can_continue(w, r))
                continue;
            w->rank[r].live = changed = true;
            w->rank[r].next = w->rank[r].item = -1;
        }
    }
}

bool why_analyze_waits(struct why *w)
{
    w->waiting = w->unseen = 0;
    if (!meetings_find(w))
        return false;
    mark_live_ranks(w);
    return findings_make(w);
}

static void findings_free(struct why *w)
{
    for (size_t i = 0; i < w->nfindings; i++) {
        free(w->findings[i].ranks);
        free(w->findings[i].behind);
    }
    free(w->findings);
    w->findings = NULL;
    w->nfindings = 0;
}

void why_free(struct why *w)
{
    findings_free(w);
    meetings_free(w);
}

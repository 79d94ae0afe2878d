/* findings.c: derives findings from the graph: cycles, ranks that have left, collective calls that some ranks
 * never reach, slow ranks, matched messages that do not progress, and ranks whose state is unknown.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "findings.h"

#include <stdlib.h>

#include "meeting.h"

const struct page_wait *page_first_wait(const struct page *page)
{
    for (int i = 0; i < PAGE_WAITS; i++)
        if (page->waits[i].id)
            return &page->waits[i];
    return NULL;
}

const struct page_wait *why_get_first_wait(const struct why_rank *r)
{
    return r->state == WHY_WAITS ? page_first_wait(r->page) : NULL;
}

bool why_messages_match(const struct page_item *receive, uint32_t to, const struct page_item *send,
                        uint32_t from)
{
    return (receive->kind == PAGE_RECV || receive->kind == PAGE_PROBE) && send->kind == PAGE_SEND &&
           receive->context == send->context && send->peer == (int32_t)to &&
           (receive->peer == (int32_t)from || receive->peer == PAGE_ANY) &&
           (receive->tag == send->tag || receive->tag == PAGE_ANY);
}

static struct why_finding *finding_new(struct why *w, enum why_kind kind)
{
    struct why_finding *grown = realloc(w->findings, (w->nfindings + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    w->findings = grown;
    grown[w->nfindings] = (struct why_finding){.kind = kind};
    return &grown[w->nfindings++];
}

static bool is_rank_stuck(const struct why_rank *r)
{
    return r->state == WHY_WAITS && r->steady && !r->live && r->next >= 0;
}

/* Follows `next` from `start` to a cycle (deadlock), a rank that has left, or a rank with a finding.
 * Assigns the ranks on the way to that finding. */
static bool finding_follow_waits(struct why *w, uint32_t start, uint32_t *seen, uint32_t mark)
{
    uint32_t r = start;
    while (is_rank_stuck(&w->rank[r]) && w->rank[r].finding < 0 && seen[r] != mark) {
        seen[r] = mark;
        r = (uint32_t)w->rank[r].next;
    }
    int number = w->rank[r].finding;
    /* rank r has left: the rank that waits for r directly gets the finding */
    if (!is_rank_stuck(&w->rank[r])) {
        uint32_t last = start;
        while (w->rank[last].next != (int)r)
            last = (uint32_t)w->rank[last].next;
        struct why_finding *f = finding_new(w, WHY_PEER_LEFT);
        if (!f || !rank_list_append(&f->ranks, &f->nranks, last) ||
            !rank_list_append(&f->ranks, &f->nranks, r))
            return false;
        number = w->rank[last].finding = (int)(w->nfindings - 1);
    } else if (number < 0) {
        struct why_finding *f = finding_new(w, WHY_DEADLOCK);
        number = (int)w->nfindings - 1;
        for (uint32_t q = r; f && w->rank[q].finding < 0; q = (uint32_t)w->rank[q].next) {
            w->rank[q].finding = number;
            if (!rank_list_append(&f->ranks, &f->nranks, q))
                return false;
        }
        if (!f)
            return false;
    }
    for (r = start; is_rank_stuck(&w->rank[r]) && w->rank[r].finding < 0; r = (uint32_t)w->rank[r].next) {
        w->rank[r].finding = number;
        if (!rank_list_append(&w->findings[number].behind, &w->findings[number].nbehind, r))
            return false;
    }
    return true;
}

static bool find_cycles(struct why *w)
{
    uint32_t *seen = calloc(w->n ? w->n : 1, sizeof(*seen));
    bool ok = seen != NULL;
    for (uint32_t r = 0; ok && r < w->n; r++)
        if (is_rank_stuck(&w->rank[r]) && w->rank[r].finding < 0)
            ok = finding_follow_waits(w, r, seen, r + 1);
    free(seen);
    return ok;
}

static bool find_blocked_collectives(struct why *w)
{
    for (size_t i = 0; i < w->nmeetings; i++) {
        const struct why_meeting *m = &w->meetings[i];
        bool live = m->nmissing > 0;
        for (uint32_t k = 0; k < m->nmissing; k++)
            live = live && w->rank[m->missing[k]].live;
        if (m->nstrangers == 0 && (!live || m->unknown))
            continue; /* no finding: the missing ranks are in a deadlock, or unknown */
        struct why_finding *f = finding_new(w, m->nstrangers ? WHY_MISMATCH : WHY_MISSING);
        if (!f)
            return false;
        f->meeting = m;
    }
    return true;
}

/* Finds ranks that compute while another rank waits for them specifically, and ranks that are stopped. */
static bool find_slow_ranks(struct why *w)
{
    bool *waited = calloc(w->n ? w->n : 1, sizeof(*waited));
    struct why_finding *f = NULL;
    bool ok = waited != NULL, blocks = false;
    for (uint32_t r = 0; ok && r < w->n; r++) {
        const struct page_wait *wait = w->rank[r].steady ? why_get_first_wait(&w->rank[r]) : NULL;
        for (uint32_t k = 0; wait && k < wait->nitems; k++) {
            const struct page_item *item = &wait->items[k];
            if (item->peer >= 0 && (uint32_t)item->peer < w->n && item->step != PAGE_MOVING)
                waited[item->peer] = true;
        }
    }
    for (uint32_t r = 0; ok && r < w->n; r++)
        blocks = blocks || (waited[r] && (w->rank[r].state == WHY_RUNS || w->rank[r].state == WHY_STOPPED));
    for (uint32_t r = 0; ok && r < w->n; r++) {
        const bool slow = w->rank[r].state == WHY_STOPPED || (w->rank[r].state == WHY_RUNS && waited[r]);
        if (slow && !f)
            ok = (f = finding_new(w, WHY_SLOW)) != NULL;
        if (slow && ok)
            ok = rank_list_append(&f->ranks, &f->nranks, r);
    }
    for (uint32_t r = 0; ok && f && blocks && r < w->n; r++)
        if (w->rank[r].steady && w->rank[r].live)
            ok = rank_list_append(&f->behind, &f->nbehind, r);
    free(waited);
    return ok;
}

/* Finds matching pairs of a send and a receive that are both steady: the library should have transferred
 * it. */
static bool find_unmoved_messages(struct why *w)
{
    for (uint32_t r = 0; r < w->n; r++) {
        const struct page_wait *wait = w->rank[r].steady ? why_get_first_wait(&w->rank[r]) : NULL;
        for (uint32_t k = 0; wait && k < wait->nitems; k++) {
            const struct page_item *send = &wait->items[k];
            if (send->kind != PAGE_SEND || send->peer < 0 || (uint32_t)send->peer >= w->n)
                continue;
            const struct why_rank *to = &w->rank[send->peer];
            const struct page_wait *theirs = to->steady ? why_get_first_wait(to) : NULL;
            bool found = false;
            for (uint32_t i = 0; theirs && i < theirs->nitems; i++)
                found = found || why_messages_match(&theirs->items[i], (uint32_t)send->peer, send, r);
            struct why_finding *f = found ? finding_new(w, WHY_NOT_TRANSFERRED) : NULL;
            if (found && (!f || !rank_list_append(&f->ranks, &f->nranks, r) ||
                          !rank_list_append(&f->ranks, &f->nranks, (uint32_t)send->peer)))
                return false;
        }
    }
    return true;
}

static bool find_unknown(struct why *w)
{
    struct why_finding *f = NULL;
    for (uint32_t r = 0; r < w->n; r++) {
        const struct page_wait *wait = w->rank[r].steady ? why_get_first_wait(&w->rank[r]) : NULL;
        bool unknown = wait && wait->nitems == 0;
        for (uint32_t k = 0; wait && k < wait->nitems; k++)
            unknown = unknown || wait->items[k].kind == PAGE_OTHER;
        if (unknown && !f && !(f = finding_new(w, WHY_UNKNOWN)))
            return false;
        if (unknown && !rank_list_append(&f->ranks, &f->nranks, r))
            return false;
    }
    return true;
}

bool findings_make(struct why *w)
{
    return find_cycles(w) && find_blocked_collectives(w) && find_slow_ranks(w) && find_unmoved_messages(w) &&
           find_unknown(w);
}

/* page_check.c: verifies a status page that a rank wrote and makes it safe to read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "net/pace.h"
#include "sample.h"

void sample_sanitise_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}
#define CLEAN(array) sample_sanitise_text(array, sizeof(array))

static void check_group(struct page_group *g)
{
    CLEAN(g->label);
    g->size = g->size < 0 || g->size > RANKS_MAX ? 0 : g->size;
    if (g->nruns > PAGE_RUNS)
        g->nruns = PAGE_RUNS + 1;
    uint64_t members = 0;
    for (uint32_t i = 0; i < MIN(g->nruns, PAGE_RUNS); i++) {
        g->runs[i].count = MIN(g->runs[i].count, RANKS_MAX);
        members += g->runs[i].count;
    }
    if (members > (uint64_t)g->size)
        g->nruns = PAGE_RUNS + 1; /* inconsistent: treat the members as unknown */
}

static void check_wait(struct page_wait *w)
{
    CLEAN(w->call);
    CLEAN(w->caller.module);
    CLEAN(w->caller.symbol);
    w->nitems = MIN(w->nitems, PAGE_ITEMS);
    w->total = MAX(w->total, w->nitems);
    for (uint32_t i = 0; i < w->nitems; i++) {
        struct page_item *item = &w->items[i];
        item->kind = item->kind < PAGE_KIND_COUNT ? item->kind : PAGE_OTHER;
        item->step = item->step < PAGE_STEP_COUNT ? item->step : PAGE_POSTED;
        item->group = MIN(item->group, PAGE_GROUPS);
    }
    for (int i = 0; i < PAGE_GROUPS; i++)
        check_group(&w->groups[i]);
}

bool page_check(struct page *page)
{
    if (page->magic != PAGE_MAGIC || page->size != sizeof(*page) || page->ranks == 0 ||
        page->ranks > RANKS_MAX || page->rank >= page->ranks)
        return false;
    CLEAN(page->job);
    CLEAN(page->host);
    CLEAN(page->launcher);
    page->nlinks = MIN(page->nlinks, PAGE_LINKS);
    page->nmessages = MIN(page->nmessages, PAGE_MESSAGES);
    for (int i = 0; i < PAGE_LINKS; i++)
        CLEAN(page->links[i].how);
    page->npaces = MIN(page->npaces, PAGE_PACES);
    for (int i = 0; i < PAGE_PACES; i++) {
        CLEAN(page->paces[i].how);
        page->paces[i].class = MIN(page->paces[i].class, PACE_CLASSES - 1);
    }
    for (int i = 0; i < PAGE_WAITS; i++)
        check_wait(&page->waits[i]);
    for (int i = 0; i < PAGE_COMMS; i++)
        CLEAN(page->comms[i].label);
    return page->job[0] != '\0';
}

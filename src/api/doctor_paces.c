/* doctor_paces.c: writes to the status page of this process the links on which its large messages are slowest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/doctor_items.h"

/* Lowest cost among the links of each kind: [local][way][class]. */
struct fastest {
    uint32_t cost[2][PACE_DIRECTIONS][PACE_CLASSES];
};

static uint32_t *get_fastest_cost(struct fastest *f, const struct pace *pace, unsigned class)
{
    return &f->cost[pace->local][pace->direction][class];
}

static struct page_pace pace_to_page(const struct net *net, const struct pace *pace,
                                     const struct pace_class *c, unsigned class)
{
    struct page_pace out = {.peer = (int32_t)pace->rank,
                            .rail = pace->rail,
                            .out = pace->direction == PACE_OUT,
                            .local = pace->local,
                            .class = (uint8_t) class,
                            .messages = c->messages,
                            .best = c->best,
                            .bytes = c->bytes,
                            .ns = c->ns};
    if (pace->rank < net->size && net->peers[pace->rank])
        peer_describe(net->peers[pace->rank], out.how, sizeof(out.how));
    return out;
}

/* Inserts a link into the list, the slowest first. `slow`: costs relative to the fastest link of a kind. */
static void paces_insert_slow(struct page *page, double slow[PAGE_PACES], double part,
                              const struct page_pace *it)
{
    uint32_t at = page->npaces;
    while (at > 0 && slow[at - 1] < part)
        at--;
    if (at == PAGE_PACES)
        return;
    const uint32_t last = MIN(page->npaces, PAGE_PACES - 1);
    for (uint32_t i = last; i > at; i--) {
        page->paces[i] = page->paces[i - 1];
        slow[i] = slow[i - 1];
    }
    page->paces[at] = *it;
    slow[at] = part;
    page->npaces = last + 1;
}

void doctor_paces(struct page *page, struct net *net)
{
    const uint32_t known = atomic_load_explicit(&net->paces.count, memory_order_relaxed);
    struct fastest fastest = {0};
    double slow[PAGE_PACES];
    unsigned class = 0;
    page->npaces = page->paces_known = 0;
    for (uint32_t i = 0; i < known; i++) {
        struct pace *pace = paces_get(&net->paces, i);
        pace_finish_run(pace);
        const struct pace_class *c = pace_busiest_class(pace, &class);
        if (!c)
            continue;
        uint32_t *least = get_fastest_cost(&fastest, pace, class);
        *least = *least == 0 ? c->best : MIN(*least, c->best);
    }
    for (uint32_t i = 0; i < known; i++) {
        const struct pace *pace = paces_get(&net->paces, i);
        const struct pace_class *c = pace_busiest_class(pace, &class);
        if (!c)
            continue;
        const struct page_pace it = pace_to_page(net, pace, c, class);
        page->paces_known++;
        paces_insert_slow(page, slow, (double)c->best / (*get_fastest_cost(&fastest, pace, class) + 1.0),
                          &it);
    }
}

/* page.c: fuzzes `fishplate why` with overwritten diagnosis pages: the pages of three ranks are valid
 * except for the bytes of the input, each with its offset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "why.h"

enum { RANKS = 3 };

static void make_valid_page(struct sample *s, uint32_t rank)
{
    struct page *p = &s->page;
    memset(s, 0, sizeof(*s));
    s->state = 'S';
    s->now = 5000000000u;
    p->magic = PAGE_MAGIC;
    p->size = sizeof(*p);
    p->rank = rank;
    p->ranks = RANKS;
    snprintf(p->job, sizeof(p->job), "fp1-0");
    struct page_wait *w = &p->waits[0];
    w->id = 1;
    w->nitems = w->total = 1;
    snprintf(w->call, sizeof(w->call), "MPI_Recv");
    w->items[0] = (struct page_item){
        .kind = rank == 2 ? PAGE_COLL : PAGE_RECV, .peer = (int)((rank + 1) % RANKS), .number = 2};
    w->groups[0] = (struct page_group){.size = RANKS, .nruns = 1, .runs = {{.count = RANKS, .stride = 1}}};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sample of[RANKS];
    static char nothing[1 << 20];
    static struct sample *list[RANKS];
    struct snapshot snapshot = {.ranks = RANKS, .samples = list};
    for (uint32_t r = 0; r < RANKS; r++)
        make_valid_page(&of[r], r);
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint32_t at;
        memcpy(&at, data + i, sizeof(at));
        struct page *page = &of[at % RANKS].page;
        memcpy((char *)page + at / RANKS % (sizeof(*page) - 4) / 4 * 4, data + i + 4, 4);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        list[r] = page_check(&of[r].page) && of[r].page.ranks == RANKS ? &of[r] : NULL;
        for (int i = 0; i < PAGE_WAITS; i++)
            of[r].page.waits[i].caller.module[0] = '\0'; /* no module: no call of addr2line */
    }
    struct diagnosis a;
    FILE *out = fmemopen(nothing, sizeof(nothing), "w");
    if (out && diagnosis_make(&snapshot, &snapshot, 1, &a)) {
        diagnosis_text(out, &a);
        diagnosis_json(out, &a);
        diagnosis_free(&a);
    }
    if (out)
        fclose(out);
    return 0;
}

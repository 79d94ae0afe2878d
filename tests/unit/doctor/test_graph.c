/* test_graph.c: who waits for whom, without processes: ranks and waits are made up here.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "doctor/graph.h"
#include "test.h"

enum { RANKS = 8 };

static struct page pages[RANKS];
static struct why_rank ranks[RANKS];
static struct why why;

static void reset(uint32_t n)
{
    memset(pages, 0, sizeof(pages));
    for (uint32_t r = 0; r < n; r++) {
        pages[r].rank = r;
        pages[r].ranks = n;
        ranks[r] = (struct why_rank){.state = WHY_RUNS, .page = &pages[r]};
    }
    why = (struct why){.rank = ranks, .n = n};
}

/* The rank waits, in MPI_COMM_WORLD. */
static struct page_wait *waits(uint32_t r)
{
    struct page_wait *w = &pages[r].waits[0];
    ranks[r].state = WHY_WAITS;
    ranks[r].steady = true;
    w->id = 1;
    w->groups[0] = (struct page_group){
        .rank = (int)r, .size = (int)why.n, .nruns = 1, .runs = {{.first = 0, .count = why.n, .stride = 1}}};
    return w;
}

static struct page_item *item(struct page_wait *w, enum page_kind kind, int peer, int tag)
{
    w->total++;
    w->items[w->nitems] = (struct page_item){.kind = (uint8_t)kind, .peer = peer, .rank = peer, .tag = tag};
    return &w->items[w->nitems++];
}

static void receives(uint32_t r, int from, int tag)
{
    item(waits(r), PAGE_RECV, from, tag);
}

static void add_synchronisation(uint32_t r, uint64_t number, uint8_t kind)
{
    struct page_item *i = item(waits(r), PAGE_COLL, PAGE_UNKNOWN, 0);
    i->number = number;
    i->coll = kind;
    pages[r].comms[0] = (struct page_comm){.used = 1, .rank = (int)r, .size = (int)why.n, .calls = number};
    page_comm_record_kind(&pages[r].comms[0], kind);
}

static const struct why_finding *found(enum why_kind kind)
{
    for (size_t i = 0; i < why.nfindings; i++)
        if (why.findings[i].kind == kind)
            return &why.findings[i];
    return NULL;
}

static void two_wait_for_each_other(void)
{
    reset(3);
    receives(0, 1, 5);
    receives(1, 0, 6);
    receives(2, 0, 7);
    EXPECT(why_analyze_waits(&why));
    const struct why_finding *f = found(WHY_DEADLOCK);
    EXPECT(f && f->nranks == 2 && f->ranks[0] == 0 && f->ranks[1] == 1);
    EXPECT(f && f->nbehind == 1 && f->behind[0] == 2);
    why_free(&why);
}

static void a_wait_that_is_new_is_no_deadlock(void)
{
    reset(2);
    receives(0, 1, 5);
    receives(1, 0, 6);
    ranks[1].steady = false;
    EXPECT(why_analyze_waits(&why));
    EXPECT(!found(WHY_DEADLOCK) && ranks[0].live);
    why_free(&why);
}

static void a_wildcard_needs_one_live_rank(void)
{
    reset(3);
    receives(0, PAGE_ANY, PAGE_ANY);
    receives(1, 0, 1);
    EXPECT(why_analyze_waits(&why));
    EXPECT(!found(WHY_DEADLOCK) && ranks[0].live && ranks[1].live);
    why_free(&why);
    receives(2, 1, 1);
    EXPECT(why_analyze_waits(&why));
    EXPECT(found(WHY_DEADLOCK) && !ranks[0].live);
    why_free(&why);
}

/* Rank 1 waits for rank 0; rank 0 for rank 1 and rank 2, which runs. */
static void any_of_and_all_of(void)
{
    for (uint32_t any = 0; any < 2; any++) {
        reset(3);
        receives(1, 0, 1);
        struct page_wait *w = waits(0);
        item(w, PAGE_RECV, 2, 1);
        item(w, PAGE_RECV, 1, 1);
        w->any = any;
        EXPECT(why_analyze_waits(&why));
        EXPECT((found(WHY_DEADLOCK) != NULL) == !any);
        EXPECT(any || (ranks[0].next == 1 && ranks[0].item == 1));
        why_free(&why);
    }
}

static void requests_that_are_not_shown_may_end(void)
{
    reset(2);
    receives(1, 0, 1);
    struct page_wait *w = waits(0);
    item(w, PAGE_RECV, 1, 1);
    w->any = 1;
    w->total = 20;
    EXPECT(why_analyze_waits(&why));
    EXPECT(!found(WHY_DEADLOCK));
    why_free(&why);
}

static void a_match_is_the_librarys_turn(void)
{
    reset(2);
    receives(0, 1, 5);
    item(waits(1), PAGE_SEND, 0, 5);
    EXPECT(why_analyze_waits(&why));
    EXPECT(!found(WHY_DEADLOCK) && found(WHY_UNMOVED));
    why_free(&why);
    pages[1].waits[0].items[0].tag = 6;
    EXPECT(why_analyze_waits(&why));
    EXPECT(found(WHY_DEADLOCK) && !found(WHY_UNMOVED));
    why_free(&why);
}

static void buffers_come_from_the_waiting_rank(void)
{
    reset(2);
    receives(0, 1, 5);
    item(waits(1), PAGE_SEND, 0, 6)->step = PAGE_QUEUED;
    EXPECT(why_analyze_waits(&why));
    EXPECT(!found(WHY_DEADLOCK));
    why_free(&why);
}

static void a_message_that_is_there_is_no_deadlock(void)
{
    reset(2);
    receives(0, 1, 5);
    receives(1, 0, 5);
    pages[0].nmessages = 1;
    pages[0].messages_waiting[0] = (struct page_message){.peer = 1, .rank = 1, .tag = 5};
    EXPECT(why_analyze_waits(&why));
    EXPECT(!found(WHY_DEADLOCK));
    why_free(&why);
    pages[0].messages_waiting[0].tag = 4;
    EXPECT(why_analyze_waits(&why));
    EXPECT(found(WHY_DEADLOCK));
    why_free(&why);
}

static void who_has_left_sends_nothing(void)
{
    reset(2);
    receives(0, 1, 5);
    ranks[1].state = WHY_FINISHED;
    EXPECT(why_analyze_waits(&why));
    const struct why_finding *f = found(WHY_DESERTED);
    EXPECT(f && f->nranks == 2 && f->ranks[0] == 0 && f->ranks[1] == 1);
    why_free(&why);
}

static void who_is_not_seen_may_send(void)
{
    reset(2);
    receives(0, 1, 5);
    ranks[1] = (struct why_rank){.state = WHY_UNSEEN};
    EXPECT(why_analyze_waits(&why));
    EXPECT(why.nfindings == 0 && why.unseen == 1 && ranks[0].live);
    why_free(&why);
}

static void a_rank_has_not_come(void)
{
    reset(4);
    add_synchronisation(0, 3, 0);
    add_synchronisation(1, 3, 0);
    add_synchronisation(2, 3, 0);
    pages[3].comms[0] = (struct page_comm){.used = 1, .rank = 3, .size = 4, .calls = 2};
    EXPECT(why_analyze_waits(&why));
    const struct why_finding *f = found(WHY_MISSING);
    EXPECT(f && f->meeting->nmissing == 1 && f->meeting->missing[0] == 3 && f->meeting->nwaiting == 3);
    EXPECT(!found(WHY_DEADLOCK) && !found(WHY_SLOW)); /* reported with the barrier */
    why_free(&why);
    receives(3, 0, 1);
    EXPECT(why_analyze_waits(&why));
    f = found(WHY_DEADLOCK);
    EXPECT(f && f->nranks == 2 && f->nbehind == 2 && !found(WHY_MISSING));
    why_free(&why);
}

static void calls_that_do_not_match(void)
{
    reset(3);
    add_synchronisation(0, 3, 1);
    add_synchronisation(1, 3, 0);
    add_synchronisation(2, 3, 1);
    EXPECT(why_analyze_waits(&why));
    const struct why_finding *f = found(WHY_MISMATCH);
    EXPECT(f && f->meeting->nstrangers == 1 && f->meeting->strangers[0] == 1);
    EXPECT(found(WHY_DEADLOCK) != NULL);
    why_free(&why);
}

/* All ranks have arrived, and one of them has left: the library is working. */
static void all_have_come(void)
{
    reset(3);
    add_synchronisation(0, 3, 1);
    add_synchronisation(1, 3, 1);
    pages[2].comms[0] = (struct page_comm){.used = 1, .rank = 2, .size = 3, .calls = 5};
    pages[2].comms[0].kinds[3] = page_kind_entry(3, 1);
    EXPECT(why_analyze_waits(&why));
    EXPECT(why.nfindings == 0 && ranks[0].live);
    why_free(&why);
}

/* Two communicators of two ranks each that have the same number. */
static void contexts_may_be_shared(void)
{
    reset(4);
    for (uint32_t r = 0; r < 4; r++) {
        add_synchronisation(r, 1, 0);
        pages[r].waits[0].groups[0].size = 2;
        pages[r].waits[0].groups[0].runs[0] = (struct page_run){.first = r / 2 * 2, .count = 2, .stride = 1};
        pages[r].comms[0].size = 2;
    }
    EXPECT(why_analyze_waits(&why));
    EXPECT(why.nmeetings == 2 && why.meetings[0].nwaiting == 2 && why.nfindings == 0);
    why_free(&why);
}

static void many_ranks_in_a_ring(void)
{
    enum { MANY = 4096 };
    struct page *page = calloc(MANY, sizeof(*page));
    struct why_rank *rank = calloc(MANY, sizeof(*rank));
    EXPECT(page && rank);
    for (uint32_t r = 0; r < MANY; r++) {
        struct page_wait *w = &page[r].waits[0];
        w->id = 1;
        w->nitems = w->total = 1;
        w->items[0] =
            (struct page_item){.kind = PAGE_RECV, .peer = (int)((r + 1) % MANY), .group = PAGE_GROUPS};
        rank[r] = (struct why_rank){.state = WHY_WAITS, .steady = true, .page = &page[r]};
    }
    struct why w = {.rank = rank, .n = MANY};
    EXPECT(why_analyze_waits(&w));
    EXPECT(w.nfindings >= 1 && w.findings[0].kind == WHY_DEADLOCK && w.findings[0].nranks == MANY);
    why_free(&w);
    free(page);
    free(rank);
}

int main(void)
{
    TEST_RUN(two_wait_for_each_other);
    TEST_RUN(a_wait_that_is_new_is_no_deadlock);
    TEST_RUN(a_wildcard_needs_one_live_rank);
    TEST_RUN(any_of_and_all_of);
    TEST_RUN(requests_that_are_not_shown_may_end);
    TEST_RUN(a_match_is_the_librarys_turn);
    TEST_RUN(buffers_come_from_the_waiting_rank);
    TEST_RUN(a_message_that_is_there_is_no_deadlock);
    TEST_RUN(who_has_left_sends_nothing);
    TEST_RUN(who_is_not_seen_may_send);
    TEST_RUN(a_rank_has_not_come);
    TEST_RUN(calls_that_do_not_match);
    TEST_RUN(all_have_come);
    TEST_RUN(contexts_may_be_shared);
    TEST_RUN(many_ranks_in_a_ring);
    return test_result();
}

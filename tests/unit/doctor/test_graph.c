/* test_graph.c: the diagnosis of hangs from simulated ranks and waits: which rank waits for which, without
 * processes.
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

static void reset_ranks(uint32_t n)
{
    memset(pages, 0, sizeof(pages));
    for (uint32_t r = 0; r < n; r++) {
        pages[r].rank = r;
        pages[r].ranks = n;
        ranks[r] = (struct why_rank){.state = WHY_RUNS, .page = &pages[r]};
    }
    why = (struct why){.rank = ranks, .n = n};
}

/* Adds a wait of rank r, in MPI_COMM_WORLD, to its page. */
static struct page_wait *add_wait(uint32_t r)
{
    struct page_wait *w = &pages[r].waits[0];
    ranks[r].state = WHY_WAITS;
    ranks[r].steady = true;
    w->id = 1;
    w->groups[0] = (struct page_group){
        .rank = (int)r, .size = (int)why.n, .nruns = 1, .runs = {{.first = 0, .count = why.n, .stride = 1}}};
    return w;
}

static struct page_item *add_item(struct page_wait *w, enum page_kind kind, int peer, int tag)
{
    w->total++;
    w->items[w->nitems] = (struct page_item){.kind = (uint8_t)kind, .peer = peer, .rank = peer, .tag = tag};
    return &w->items[w->nitems++];
}

static void add_receive(uint32_t r, int from, int tag)
{
    add_item(add_wait(r), PAGE_RECV, from, tag);
}

static void add_synchronisation(uint32_t r, uint64_t number, uint8_t kind)
{
    struct page_item *i = add_item(add_wait(r), PAGE_COLL, PAGE_UNKNOWN, 0);
    i->number = number;
    i->coll = kind;
    pages[r].comms[0] = (struct page_comm){.used = 1, .rank = (int)r, .size = (int)why.n, .calls = number};
    page_comm_record_kind(&pages[r].comms[0], kind);
}

static const struct why_finding *find_finding(enum why_kind kind)
{
    for (size_t i = 0; i < why.nfindings; i++)
        if (why.findings[i].kind == kind)
            return &why.findings[i];
    return NULL;
}

static void test_two_ranks_deadlock(void)
{
    reset_ranks(3);
    add_receive(0, 1, 5);
    add_receive(1, 0, 6);
    add_receive(2, 0, 7);
    EXPECT(why_analyze_waits(&why));
    const struct why_finding *f = find_finding(WHY_DEADLOCK);
    EXPECT(f && f->nranks == 2 && f->ranks[0] == 0 && f->ranks[1] == 1);
    EXPECT(f && f->nbehind == 1 && f->behind[0] == 2);
    why_free(&why);
}

static void test_new_wait_is_no_deadlock(void)
{
    reset_ranks(2);
    add_receive(0, 1, 5);
    add_receive(1, 0, 6);
    ranks[1].steady = false;
    EXPECT(why_analyze_waits(&why));
    EXPECT(!find_finding(WHY_DEADLOCK) && ranks[0].live);
    why_free(&why);
}

static void test_wildcard_needs_one_live_rank(void)
{
    reset_ranks(3);
    add_receive(0, PAGE_ANY, PAGE_ANY);
    add_receive(1, 0, 1);
    EXPECT(why_analyze_waits(&why));
    EXPECT(!find_finding(WHY_DEADLOCK) && ranks[0].live && ranks[1].live);
    why_free(&why);
    add_receive(2, 1, 1);
    EXPECT(why_analyze_waits(&why));
    EXPECT(find_finding(WHY_DEADLOCK) && !ranks[0].live);
    why_free(&why);
}

/* Rank 1 waits for rank 0; rank 0 for rank 1 and rank 2, which runs. */
static void test_waitany_and_waitall(void)
{
    for (uint32_t any = 0; any < 2; any++) {
        reset_ranks(3);
        add_receive(1, 0, 1);
        struct page_wait *w = add_wait(0);
        add_item(w, PAGE_RECV, 2, 1);
        add_item(w, PAGE_RECV, 1, 1);
        w->any = any;
        EXPECT(why_analyze_waits(&why));
        EXPECT((find_finding(WHY_DEADLOCK) != NULL) == !any);
        EXPECT(any || (ranks[0].next == 1 && ranks[0].item == 1));
        why_free(&why);
    }
}

static void test_hidden_requests_may_complete(void)
{
    reset_ranks(2);
    add_receive(1, 0, 1);
    struct page_wait *w = add_wait(0);
    add_item(w, PAGE_RECV, 1, 1);
    w->any = 1;
    w->total = 20;
    EXPECT(why_analyze_waits(&why));
    EXPECT(!find_finding(WHY_DEADLOCK));
    why_free(&why);
}

static void test_matched_message_is_no_deadlock(void)
{
    reset_ranks(2);
    add_receive(0, 1, 5);
    add_item(add_wait(1), PAGE_SEND, 0, 5);
    EXPECT(why_analyze_waits(&why));
    EXPECT(!find_finding(WHY_DEADLOCK) && find_finding(WHY_NOT_TRANSFERRED));
    why_free(&why);
    pages[1].waits[0].items[0].tag = 6;
    EXPECT(why_analyze_waits(&why));
    EXPECT(find_finding(WHY_DEADLOCK) && !find_finding(WHY_NOT_TRANSFERRED));
    why_free(&why);
}

static void test_send_waits_for_receiver_buffers(void)
{
    reset_ranks(2);
    add_receive(0, 1, 5);
    add_item(add_wait(1), PAGE_SEND, 0, 6)->step = PAGE_QUEUED;
    EXPECT(why_analyze_waits(&why));
    EXPECT(!find_finding(WHY_DEADLOCK));
    why_free(&why);
}

static void test_arrived_message_is_no_deadlock(void)
{
    reset_ranks(2);
    add_receive(0, 1, 5);
    add_receive(1, 0, 5);
    pages[0].nmessages = 1;
    pages[0].messages_waiting[0] = (struct page_message){.peer = 1, .rank = 1, .tag = 5};
    EXPECT(why_analyze_waits(&why));
    EXPECT(!find_finding(WHY_DEADLOCK));
    why_free(&why);
    pages[0].messages_waiting[0].tag = 4;
    EXPECT(why_analyze_waits(&why));
    EXPECT(find_finding(WHY_DEADLOCK));
    why_free(&why);
}

static void test_finalized_rank_sends_nothing(void)
{
    reset_ranks(2);
    add_receive(0, 1, 5);
    ranks[1].state = WHY_FINISHED;
    EXPECT(why_analyze_waits(&why));
    const struct why_finding *f = find_finding(WHY_PEER_LEFT);
    EXPECT(f && f->nranks == 2 && f->ranks[0] == 0 && f->ranks[1] == 1);
    why_free(&why);
}

static void test_unreachable_rank_may_send(void)
{
    reset_ranks(2);
    add_receive(0, 1, 5);
    ranks[1] = (struct why_rank){.state = WHY_UNSEEN};
    EXPECT(why_analyze_waits(&why));
    EXPECT(why.nfindings == 0 && why.unseen == 1 && ranks[0].live);
    why_free(&why);
}

static void test_rank_missing_in_barrier(void)
{
    reset_ranks(4);
    add_synchronisation(0, 3, 0);
    add_synchronisation(1, 3, 0);
    add_synchronisation(2, 3, 0);
    pages[3].comms[0] = (struct page_comm){.used = 1, .rank = 3, .size = 4, .calls = 2};
    EXPECT(why_analyze_waits(&why));
    const struct why_finding *f = find_finding(WHY_MISSING);
    EXPECT(f && f->meeting->nmissing == 1 && f->meeting->missing[0] == 3 && f->meeting->nwaiting == 3);
    EXPECT(!find_finding(WHY_DEADLOCK) && !find_finding(WHY_SLOW)); /* only the barrier is reported */
    why_free(&why);
    add_receive(3, 0, 1);
    EXPECT(why_analyze_waits(&why));
    f = find_finding(WHY_DEADLOCK);
    EXPECT(f && f->nranks == 2 && f->nbehind == 2 && !find_finding(WHY_MISSING));
    why_free(&why);
}

static void test_mismatched_collectives(void)
{
    reset_ranks(3);
    add_synchronisation(0, 3, 1);
    add_synchronisation(1, 3, 0);
    add_synchronisation(2, 3, 1);
    EXPECT(why_analyze_waits(&why));
    const struct why_finding *f = find_finding(WHY_MISMATCH);
    EXPECT(f && f->meeting->nstrangers == 1 && f->meeting->strangers[0] == 1);
    EXPECT(find_finding(WHY_DEADLOCK) != NULL);
    why_free(&why);
}

/* All ranks have arrived in the barrier, and one rank has left it: the library is still working. */
static void test_complete_barrier_is_no_deadlock(void)
{
    reset_ranks(3);
    add_synchronisation(0, 3, 1);
    add_synchronisation(1, 3, 1);
    pages[2].comms[0] = (struct page_comm){.used = 1, .rank = 2, .size = 3, .calls = 5};
    pages[2].comms[0].kinds[3] = page_kind_entry(3, 1);
    EXPECT(why_analyze_waits(&why));
    EXPECT(why.nfindings == 0 && ranks[0].live);
    why_free(&why);
}

/* Two disjoint communicators of two ranks each have the same context id. */
static void test_equal_context_ids(void)
{
    reset_ranks(4);
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

static void test_ring_of_many_ranks(void)
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
    TEST_RUN(test_two_ranks_deadlock);
    TEST_RUN(test_new_wait_is_no_deadlock);
    TEST_RUN(test_wildcard_needs_one_live_rank);
    TEST_RUN(test_waitany_and_waitall);
    TEST_RUN(test_hidden_requests_may_complete);
    TEST_RUN(test_matched_message_is_no_deadlock);
    TEST_RUN(test_send_waits_for_receiver_buffers);
    TEST_RUN(test_arrived_message_is_no_deadlock);
    TEST_RUN(test_finalized_rank_sends_nothing);
    TEST_RUN(test_unreachable_rank_may_send);
    TEST_RUN(test_rank_missing_in_barrier);
    TEST_RUN(test_mismatched_collectives);
    TEST_RUN(test_complete_barrier_is_no_deadlock);
    TEST_RUN(test_equal_context_ids);
    TEST_RUN(test_ring_of_many_ranks);
    return test_result();
}

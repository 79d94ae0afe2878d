/* test_ib_credit.c: credit-based flow control: what each scheme refuses, reports and posts; and every
 * interleaving of two sides with few credits that send each other a few frames: each frame finds a buffer,
 * no credit is lost or invented, no sender waits forever.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/credit.h"

#include "explore.h"
#include "test.h"

static const struct credit_rules static_rules = {
    .scheme = CREDIT_STATIC, .first = 4, .buffers_max = 4, .tell_at = 0};

static void test_static_refuses_without_credits(void)
{
    struct credit c;
    bool waited = true;
    credit_start(&c, &static_rules, 2);
    EXPECT_EQ(c.posted, 4);
    EXPECT_EQ(c.most_posted, 4);
    EXPECT(credit_take(&c, &waited) && !waited);
    EXPECT(credit_take(&c, &waited) && !waited);
    EXPECT(!credit_take(&c, &waited));
    EXPECT(!credit_take(&c, &waited));
    credit_add_granted(&c, 3);
    EXPECT(credit_take(&c, &waited) && waited); /* the first frame after a refusal reports the refusal */
    EXPECT(credit_take(&c, &waited) && !waited);
    EXPECT_EQ(c.have, 1);
}

static void test_unused_credit_is_returned(void)
{
    struct credit c;
    bool waited;
    credit_start(&c, &static_rules, 1);
    EXPECT(credit_take(&c, &waited) && !waited);
    EXPECT(!credit_take(&c, &waited));
    credit_add_granted(&c, 1);
    EXPECT(credit_take(&c, &waited) && waited);
    credit_return_unused(&c, waited); /* for example because the adapter's queue was full */
    EXPECT_EQ(c.have, 1);
    EXPECT(credit_take(&c, &waited) && waited);
    credit_add_granted(&c, 1);
    EXPECT(credit_take(&c, &waited) && !waited);
    credit_return_unused(&c, waited);
    EXPECT(credit_take(&c, &waited) && !waited);
}

static void test_static_reports_owed_credits(void)
{
    struct credit c;
    credit_start(&c, &static_rules, 1);
    EXPECT(!credit_message_is_due(&c));
    EXPECT_EQ(credit_frame_consumed(&c, false), 1);
    EXPECT(!credit_message_is_due(&c));
    EXPECT_EQ(credit_frame_consumed(&c, true), 1); /* the static scheme ignores that a frame waited */
    EXPECT(credit_message_is_due(&c));             /* due when half of 4 credits are owed */
    EXPECT_EQ(credit_frame_consumed(&c, false), 1);
    EXPECT_EQ(credit_take_owed(&c, 2), 2);
    EXPECT(!credit_message_is_due(&c));
    EXPECT_EQ(credit_take_owed(&c, 255), 1);
    EXPECT_EQ(credit_take_owed(&c, 255), 0);
    EXPECT_EQ(c.posted, 4);
}

static void test_credit_message_is_due(void)
{
    static const struct {
        uint32_t first, tell_at, due_at;
    } cases[] = {{1, 0, 1},  {1, 5, 1}, {2, 0, 2},  {3, 0, 2}, {2, 1, 1},    {10, 0, 5},
                 {10, 3, 3}, {8, 5, 5}, {10, 5, 5}, {4, 5, 4}, {10, 100, 10}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct credit_rules rules = {
            .scheme = CREDIT_STATIC, .first = cases[i].first, .tell_at = cases[i].tell_at};
        struct credit c;
        credit_start(&c, &rules, 1);
        uint32_t n = 0;
        while (!credit_message_is_due(&c) && n < 1000)
            n += credit_frame_consumed(&c, false);
        EXPECT_EQ(n, cases[i].due_at);
    }
}

static void test_hw_never_refuses(void)
{
    struct credit_rules rules = {.scheme = CREDIT_HW, .first = 2, .buffers_max = 8, .step = 2, .tell_at = 1};
    struct credit c;
    bool waited = true;
    credit_start(&c, &rules, 2);
    for (int i = 0; i < 1000; i++) {
        EXPECT(credit_take(&c, &waited) && !waited);
        if (i % 3 == 0)
            credit_return_unused(&c, waited);
        EXPECT_EQ(credit_frame_consumed(&c, false), 1);
        EXPECT(!credit_message_is_due(&c));
        EXPECT_EQ(credit_take_owed(&c, 255), 0);
    }
    EXPECT_EQ(c.posted, 2);
}

static void expect_growth(enum credit_growth growth, const uint32_t *posted, size_t n)
{
    struct credit_rules rules = {
        .scheme = CREDIT_DYNAMIC, .growth = growth, .first = 2, .buffers_max = 15, .step = 4, .tell_at = 0};
    struct credit c;
    credit_start(&c, &rules, 2);
    EXPECT_EQ(credit_frame_consumed(&c, false), 1);
    EXPECT_EQ(c.posted, 2);
    for (size_t i = 0; i < n; i++) {
        uint32_t before = c.posted, owed = c.owed;
        uint32_t post = credit_frame_consumed(&c, true);
        EXPECT_EQ(c.posted, posted[i]);
        EXPECT_EQ(post, 1 + c.posted - before);
        EXPECT_EQ(c.owed, owed + post);
        EXPECT_EQ(c.most_posted, posted[i]);
    }
}

static void test_dynamic_grows_linearly(void)
{
    expect_growth(CREDIT_LINEAR, (const uint32_t[]){6, 10, 14, 15, 15}, 5);
}

static void test_dynamic_grows_by_doubling(void)
{
    expect_growth(CREDIT_EXPONENTIAL, (const uint32_t[]){4, 8, 15, 15}, 4);
}

/* The threshold at which credits are due follows the number of buffers down and up. */
static void test_due_threshold_follows_buffers(void)
{
    struct credit_rules rules = {
        .scheme = CREDIT_DYNAMIC, .first = 2, .buffers_max = 9, .step = 7, .tell_at = 0, .calm_after = 1};
    struct credit c;
    credit_start(&c, &rules, 2);
    EXPECT_EQ(c.due_at, 2);
    EXPECT_EQ(credit_frame_consumed(&c, true), 8);
    EXPECT_EQ(c.due_at, 4); /* half of nine buffers */
    for (int i = 0; i < 7; i++)
        EXPECT_EQ(credit_frame_consumed(&c, false), 0);
    EXPECT_EQ(c.posted, 2);
    EXPECT_EQ(c.due_at, 2);
}

static void test_dynamic_shrinks_to_first(void)
{
    struct credit_rules rules = {
        .scheme = CREDIT_DYNAMIC, .first = 2, .buffers_max = 5, .step = 3, .tell_at = 0, .calm_after = 10};
    struct credit c;
    credit_start(&c, &rules, 2);
    EXPECT_EQ(credit_frame_consumed(&c, true), 4);
    for (uint32_t want = 5; want > 2; want--) {
        for (int i = 0; i < 9; i++) {
            EXPECT_EQ(credit_frame_consumed(&c, false), 1);
            EXPECT_EQ(c.posted, want);
        }
        EXPECT_EQ(credit_frame_consumed(&c, false), 0);
        EXPECT_EQ(c.posted, want - 1);
    }
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(credit_frame_consumed(&c, false), 1);
    EXPECT_EQ(c.posted, 2);
    EXPECT_EQ(c.most_posted, 5);
    credit_take_owed(&c, c.owed - 2);
    EXPECT(credit_message_is_due(&c));
    EXPECT_EQ(c.due_at, 2);
    /* A frame that waited restarts the count of calm frames. */
    EXPECT_EQ(credit_frame_consumed(&c, true), 4);
    for (int i = 0; i < 9; i++)
        EXPECT_EQ(credit_frame_consumed(&c, false), 1);
    EXPECT_EQ(credit_frame_consumed(&c, true), 1);
    for (int i = 0; i < 9; i++)
        EXPECT_EQ(credit_frame_consumed(&c, false), 1);
    EXPECT_EQ(c.posted, 5);
    EXPECT_EQ(credit_frame_consumed(&c, false), 0);
}

/* ---- every interleaving ---- */

enum { FRAMES = 3, WIRE = 16, HELD = 8 };

/* Byte of a message in flight: one kind bit, a flag, and the number of granted credits in the low bits. */
enum { IS_FRAME = 0x80, IS_CREDIT = 0x40, HAD_WAITED = 0x20, CREDITS = 0x1f };

struct side_state {
    uint8_t later, queued; /* frames not requested yet, and frames waiting for a credit */
    uint8_t have, starved, posted, owed, due_at, calm;
    uint8_t on_wire, held; /* messages in flight to this side; frames it has not consumed yet */
    uint8_t wire[WIRE], held_waited[HELD]; /* oldest first; zero after the last */
};

struct pair_state {
    struct side_state side[2];
};

static struct credit_rules the_rules[2];
static uint32_t the_limit; /* credits that a frame can carry */
static uint64_t states_seen;

static struct credit unpack_credit(const struct side_state *o, int side)
{
    struct credit c;
    credit_start(&c, &the_rules[side], o->have);
    c.due_at = o->due_at;
    c.starved = o->starved;
    c.posted = o->posted;
    c.owed = o->owed;
    c.calm = o->calm;
    return c;
}

static void pack_credit(struct side_state *o, const struct credit *c)
{
    o->have = (uint8_t)c->have;
    o->starved = c->starved;
    o->posted = (uint8_t)c->posted;
    o->owed = (uint8_t)c->owed;
    o->due_at = (uint8_t)c->due_at;
    o->calm = (uint8_t)c->calm;
}

static void queue_push(uint8_t *list, uint8_t *n, uint8_t what)
{
    list[(*n)++] = what;
}

static uint8_t queue_pop(uint8_t *list, uint8_t *n)
{
    uint8_t what = list[0];
    memmove(list, list + 1, --*n);
    list[*n] = 0;
    return what;
}

/* Adds all states that one side's events lead to. Returns the number of these events, not counting
 * requests of new frames. */
static int add_successors(struct explore *e, const struct pair_state *now, int me)
{
    const struct side_state *mine = &now->side[me];
    struct credit c = unpack_credit(mine, me);
    struct pair_state next = *now;
    int n = 0;

    if (mine->later) {
        next.side[me].later--;
        next.side[me].queued++;
        explore_add(e, &next, me ? "b requests a send" : "a requests a send");
    }
    if (mine->queued) {
        struct credit s = c;
        bool waited;
        next = *now;
        if (credit_take(&s, &waited)) {
            n++;
            next.side[me].queued--;
            uint8_t credits = (uint8_t)credit_take_owed(&s, the_limit);
            queue_push(next.side[!me].wire, &next.side[!me].on_wire,
                       (uint8_t)(IS_FRAME | (waited ? HAD_WAITED : 0) | credits));
        }
        pack_credit(&next.side[me], &s);
        explore_add(e, &next, me ? "b sends or is refused" : "a sends or is refused");
    }
    if (credit_message_is_due(&c)) {
        struct credit s = c;
        next = *now;
        n++;
        queue_push(next.side[!me].wire, &next.side[!me].on_wire,
                   (uint8_t)(IS_CREDIT | credit_take_owed(&s, CREDITS)));
        pack_credit(&next.side[me], &s);
        explore_add(e, &next, me ? "b sends credits" : "a sends credits");
    }
    if (mine->on_wire) {
        struct credit s = c;
        next = *now;
        n++;
        uint8_t got = queue_pop(next.side[me].wire, &next.side[me].on_wire);
        credit_add_granted(&s, got & CREDITS);
        if (got & IS_FRAME)
            queue_push(next.side[me].held_waited, &next.side[me].held, !!(got & HAD_WAITED));
        pack_credit(&next.side[me], &s);
        explore_add(e, &next, me ? "b receives" : "a receives");
    }
    if (mine->held) {
        struct credit s = c;
        next = *now;
        n++;
        bool waited = queue_pop(next.side[me].held_waited, &next.side[me].held);
        uint32_t post = credit_frame_consumed(&s, waited);
        const struct credit_rules *r = &the_rules[me];
        EXPECT_EQ((int)s.posted - (int)c.posted, (int)post - 1);
        EXPECT(s.posted <= c.posted || (waited && r->scheme == CREDIT_DYNAMIC && s.posted <= r->buffers_max));
        EXPECT(s.posted >= r->first);
        pack_credit(&next.side[me], &s);
        explore_add(e, &next, me ? "b consumes a frame" : "a consumes a frame");
    }
    return n;
}

static void check_side(const struct pair_state *now, int me)
{
    const struct side_state *sender = &now->side[me], *receiver = &now->side[!me];
    uint32_t frames = receiver->held, reported = 0, messages = 0;
    for (int i = 0; i < receiver->on_wire; i++)
        frames += receiver->wire[i] >= IS_FRAME;
    for (int i = 0; i < sender->on_wire; i++) {
        reported += sender->wire[i] & CREDITS;
        messages += !(sender->wire[i] & IS_FRAME);
    }
    if (the_rules[!me].scheme == CREDIT_HW) {
        EXPECT_EQ(reported + messages + receiver->owed, 0);
        EXPECT_EQ(receiver->posted, the_rules[!me].first);
        return;
    }
    EXPECT(frames <= receiver->posted);
    EXPECT_EQ(sender->have + frames + reported + receiver->owed, receiver->posted);
    if (the_rules[!me].scheme == CREDIT_STATIC)
        EXPECT(messages <= receiver->posted / receiver->due_at);
}

static bool expand_state(struct explore *e, const void *state)
{
    const struct pair_state *now = state;
    int before = test_failures;
    check_side(now, 0);
    check_side(now, 1);
    EXPECT(now->side[0].on_wire < WIRE - 1 && now->side[1].on_wire < WIRE - 1);
    int n = add_successors(e, now, 0);
    n += add_successors(e, now, 1);
    if (n == 0) /* no event is left: all requested frames have been sent */
        EXPECT_EQ(now->side[0].queued + now->side[1].queued, 0);
    return test_failures == before;
}

static void explore_with_buffers(const struct credit_rules *rules, uint32_t first_a, uint32_t first_b,
                                 uint32_t limit)
{
    struct pair_state begin;
    memset(&begin, 0, sizeof(begin));
    the_limit = limit;
    for (int i = 0; i < 2; i++) {
        the_rules[i] = *rules;
        the_rules[i].first = i ? first_b : first_a;
    }
    for (int i = 0; i < 2; i++) {
        struct credit c;
        credit_start(&c, &the_rules[i], the_rules[!i].first);
        pack_credit(&begin.side[i], &c);
        begin.side[i].later = FRAMES;
    }
    struct explore e;
    explore_open(&e, sizeof(begin));
    if (!explore_run(&e, &begin, expand_state)) {
        printf(
            "failed with %u and %u buffers, limit %u, credit message due at %u, up to %u credits in a frame, "
            "calm after %u frames:\n",
            first_a, first_b, rules->buffers_max, rules->tell_at, limit, rules->calm_after);
        explore_print_trail(&e, e.current);
    }
    states_seen += e.count;
    explore_close(&e);
}

static void explore_all_buffer_counts(const struct credit_rules *rules)
{
    int before = test_failures;
    for (uint32_t a = 1; a <= 3; a++)
        for (uint32_t b = a; b <= 3; b++)
            for (uint32_t limit = 1; limit <= CREDITS; limit += CREDITS - 1)
                if (test_failures == before)
                    explore_with_buffers(rules, a, b, limit);
}

static void test_all_interleavings_hw(void)
{
    struct credit_rules rules = {.scheme = CREDIT_HW};
    explore_with_buffers(&rules, 1, 1, CREDITS);
    explore_with_buffers(&rules, 2, 3, CREDITS);
}

static void test_all_interleavings_static(void)
{
    struct credit_rules rules = {.scheme = CREDIT_STATIC};
    for (rules.tell_at = 0; rules.tell_at <= 3;
         rules.tell_at++) /* 3: only when all posted buffers are used */
        explore_all_buffer_counts(&rules);
}

static void test_all_interleavings_dynamic(void)
{
    struct credit_rules rules = {.scheme = CREDIT_DYNAMIC, .buffers_max = 4, .step = 1, .tell_at = 0};
    for (rules.growth = CREDIT_LINEAR; rules.growth <= CREDIT_EXPONENTIAL; rules.growth++)
        for (rules.calm_after = 0; rules.calm_after <= 2; rules.calm_after++)
            explore_all_buffer_counts(&rules);
    rules.tell_at = 5; /* tell_at exceeds the number of buffers in every case */
    explore_all_buffer_counts(&rules);
}

int main(void)
{
    TEST_RUN(test_static_refuses_without_credits);
    TEST_RUN(test_unused_credit_is_returned);
    TEST_RUN(test_static_reports_owed_credits);
    TEST_RUN(test_credit_message_is_due);
    TEST_RUN(test_hw_never_refuses);
    TEST_RUN(test_dynamic_grows_linearly);
    TEST_RUN(test_dynamic_grows_by_doubling);
    TEST_RUN(test_due_threshold_follows_buffers);
    TEST_RUN(test_dynamic_shrinks_to_first);
    TEST_RUN(test_all_interleavings_hw);
    TEST_RUN(test_all_interleavings_static);
    TEST_RUN(test_all_interleavings_dynamic);
    printf("%" PRIu64 " states\n", states_seen);
    return test_result();
}

/* test_mcast_all.c: every state of a root and two members over a network that loses, doubles and reorders, with slow
 * applications: data arrives once and in order, nothing is given up too early, and from every state the end is reached
 * once the network behaves.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "explore.h"
#include "test.h"

#include "mcast_world.h"

#define RULES .few = 1, .burst = 4, .timeout = 1, .timeout_max = 4, .delay = 1
static const struct mcast_tree to_root = {.members = MEMBERS, .collectors = 1};
static const struct mcast_tree delivered = {.members = MEMBERS, .collectors = 2, .deliver = true};
static const struct mcast_tree coroot = {.members = MEMBERS, .collectors = 2};

static void arrive_at(struct world *w, int i, bool stays)
{
    const struct flight f = w->flight[i];
    if (!stays)
        w->flight[i] = (struct flight){0};
    arrives(w, f);
}

/* All that is under way arrives, applications call, timers fire, until all is over. */
static bool ends_well(const struct world *from)
{
    struct world w = *from;
    world_bind(&w, true);
    for (int turn = 0; turn < 200 && !is_over(&w); turn++) {
        for (int i = 0; i < FLIGHT; i++)
            if (w.flight[i].kind)
                arrive_at(&w, i, false);
        for (uint32_t m = 1; m < MEMBERS; m++) {
            if (w.note[m].kind)
                see_note(&w, m);
            if (w.stream[m].taken < setting->messages)
                want(&w, m);
        }
        while (may_deliver(&w))
            deliver(&w);
        while (may_carry(&w))
            carry(&w);
        if (may_push(&w))
            push(&w);
        else if (w.sender[0].next < setting->messages)
            mcast_sender_window_full(&w.sender[0], 0);
        if (turn % 4 == 3)
            for (uint32_t m = 0; m < 2; m++) {
                w.sender[m].deadline = w.sender[m].deadline == MCAST_NEVER ? MCAST_NEVER : LATER;
                expire(&w, m);
            }
    }
    return is_over(&w);
}

static void mcast_all_add(struct explore *e, struct world *w, const char *event)
{
    check(w);
    world_settle(w);
    explore_add(e, w, event);
}

#define TRY(event, ...)              \
    do {                             \
        struct world w = *(from);    \
        world_bind(&w, true);        \
        __VA_ARGS__;                 \
        mcast_all_add(e, &w, event); \
    } while (0)

static bool mcast_all_poll(struct explore *e, const void *state)
{
    const struct world *from = state;
    struct world bound = *from;
    world_bind(&bound, true);
    if (may_push(&bound))
        TRY("push", push(&w));
    else if (from->sender[0].next < setting->messages)
        TRY("starve", mcast_sender_window_full(&w.sender[0], 0));
    if (may_deliver(&bound))
        TRY("deliver", deliver(&w));
    if (may_carry(&bound))
        TRY("connection brings", carry(&w));
    for (int i = 0; i < FLIGHT; i++) {
        if (from->flight[i].kind == 0)
            continue;
        TRY("arrive", arrive_at(&w, i, false));
        TRY("arrive twice", arrive_at(&w, i, true));
        TRY("lose", w.flight[i] = (struct flight){0});
    }
    for (uint32_t m = 0; m < 2; m++)
        if (from->sender[m].deadline != MCAST_NEVER)
            TRY("timeout", expire(&w, m));
    for (uint32_t m = 1; m < MEMBERS; m++) {
        if (from->note[m].kind)
            TRY("acknowledgement", see_note(&w, m));
        if (may_leave(from, m))
            TRY("leave", w.left[m] = 1);
        if (!from->wants[m] && from->stream[m].taken < setting->messages)
            TRY("application", want(&w, m));
        if (from->stream[m].due != MCAST_NEVER)
            TRY("late acknowledgement", send_ack(&w, m));
    }
    if (!wrong && !ends_well(from))
        wrong = "not all is delivered although the network behaves";
    return !wrong;
}

static void explore_setting(const struct setting *s)
{
    struct explore e;
    struct world first;
    setting = s;
    wrong = NULL;
    world_open(&first);
    explore_open(&e, sizeof(first));
    explore_run(&e, &first, mcast_all_poll);
    if (wrong) {
        printf("%s: %s, after\n", s->name, wrong);
        explore_trail(&e, e.at);
    }
    EXPECT(!wrong);
    EXPECT(e.count > 1000);
    printf("%s: %u states\n", s->name, e.count);
    explore_close(&e);
}

static void test_window(void)
{
    const struct setting s = {"window",  {RULES, .window = 2, .ring = 2, .aggregate = 1},
                              to_root,   .messages = 2,
                              .room = 1, .flight = 2};
    explore_setting(&s);
}

static void test_coroots(void)
{
    const struct setting s = {"co-roots", {RULES, .window = 1, .ring = 2, .aggregate = 1},
                              coroot,     .messages = 2,
                              .room = 1,  .flight = 3};
    explore_setting(&s);
}

/* The co-root receives every packet over its connection, however many packets and acknowledgements of multicast are lost. */
static void test_delivered(void)
{
    struct setting s = {"delivered", {RULES, .window = 1, .ring = 2, .aggregate = 1},
                        delivered,   .messages = 2,
                        .room = 1,   .flight = 2};
    explore_setting(&s);
    s.sure = true;
    explore_setting(&s);
}

/* Acknowledgements wait for a packet that takes them along; if there is none, until the delay has passed. */
static void test_piggyback(void)
{
    const struct setting s = {"piggyback", {RULES, .window = 4, .ring = 4, .aggregate = 1, .piggyback = true},
                              to_root,     .messages = 2,
                              .room = 1,   .flight = 2};
    explore_setting(&s);
}

/* Who has all may leave at once. */
static void test_leaving(void)
{
    const struct setting s = {"leaving",   {RULES, .window = 2, .ring = 2, .aggregate = 1},
                              coroot,      .messages = 2,
                              .room = 1,   .flight = 2,
                              .sure = true};
    explore_setting(&s);
}

static void mcast_all_aggregate(void)
{
    const struct setting s = {"aggregate", {RULES, .window = 2, .ring = 2, .aggregate = 2},
                              coroot,      .messages = 2,
                              .room = 1,   .flight = 2};
    explore_setting(&s);
}

static void test_skewed(void)
{
    const struct setting s = {"skewed",  {RULES, .window = 2, .ring = 2, .aggregate = 2, .skew = true},
                              to_root,   .messages = 2,
                              .room = 1, .flight = 2};
    explore_setting(&s);
}

int main(void)
{
    TEST_RUN(test_window);
    TEST_RUN(test_coroots);
    TEST_RUN(test_delivered);
    TEST_RUN(test_piggyback);
    TEST_RUN(test_leaving);
    TEST_RUN(mcast_all_aggregate);
    TEST_RUN(test_skewed);
    return test_result();
}

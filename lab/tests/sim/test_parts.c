/* test_parts.c: the queue of events, the table of pairs, and the routes of fat trees.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <string.h>

#include "event.h"
#include "machine.h"
#include "pairs.h"
#include "test.h"
#include "tree.h"

static uint32_t seed = 1;

static uint32_t draw_random(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void test_event_order(void)
{
    struct event_queue q = {0};
    struct event e, before = {.at = -1};
    int left = 0;
    for (int round = 0; round < 20000; round++) {
        if (draw_random(3) || left == 0) {
            sim_time at = before.at < 0 ? draw_random(50) : before.at + draw_random(50);
            EXPECT(event_insert(&q, at, 7, (uint32_t)round));
            left++;
            continue;
        }
        EXPECT(event_pop(&q, &e));
        left--;
        EXPECT(e.at > before.at || (e.at == before.at && e.index > before.index) || before.at < 0);
        before = e;
    }
    while (event_pop(&q, &e)) {
        EXPECT(e.at > before.at || (e.at == before.at && e.index > before.index));
        before = e;
        left--;
    }
    EXPECT_EQ(left, 0);
    event_queue_free(&q);
}

/* Inserts events with gaps of all magnitudes, so that events move through all levels: isolated events, and
 * many events of the same time. The resulting order must be that of a stable sort. */
static void test_order_of_distant_events(void)
{
    enum { EVENTS = 20000 };
    static sim_time at[EVENTS];
    struct event_queue q = {0};
    struct event e, before = {0};
    uint32_t put = 0, taken = 0;
    while (taken < EVENTS) {
        for (uint32_t burst = draw_random(200); burst && put < EVENTS; burst--) {
            sim_time gap = (sim_time)draw_random(4) << draw_random(60);
            at[put] = draw_random(4) && put ? at[put - 1] : before.at + gap;
            at[put] = at[put] < before.at ? before.at : at[put];
            EXPECT(event_insert(&q, at[put], 0, put));
            put++;
        }
        for (uint32_t burst = draw_random(200); burst && taken < put; burst--, taken++) {
            EXPECT(event_pop(&q, &e));
            EXPECT(e.at == at[e.index]);
            EXPECT(taken == 0 || e.at > before.at || (e.at == before.at && e.index > before.index));
            if (before.at > INT64_MAX / 4) { /* restart before the time exceeds its range */
                while (event_pop(&q, &e))
                    taken++;
                event_queue_free(&q);
                e = (struct event){0};
                taken++;
                before = e;
                break;
            }
            before = e;
        }
    }
    EXPECT_EQ(q.count, 0);
    event_queue_free(&q);
}

/* Compares the table with a plain array while many keys are inserted and removed. */
static void test_pairs_are_inserted_and_removed(void)
{
    enum { RANKS = 12, ORDERS = 6 };
    static uint32_t value[RANKS][RANKS][ORDERS];
    static bool there[RANKS][RANKS][ORDERS];
    struct pairs p = {0};
    for (uint32_t round = 0; round < 50000; round++) {
        uint32_t from = draw_random(RANKS), to = draw_random(RANKS), order = draw_random(ORDERS), first = 0;
        bool *known = &there[from][to][order];
        bool met = pairs_match(&p, from, to, order, round, &first);
        EXPECT_EQ(met, *known);
        if (met)
            EXPECT_EQ(first, value[from][to][order]);
        *known = !met;
        value[from][to][order] = round;
    }
    EXPECT_EQ(pairs_count(&p, 100, 200), 0);
    EXPECT_EQ(pairs_count(&p, 100, 200), 1);
    EXPECT_EQ(pairs_count(&p, 200, 100), 0);
    pairs_free(&p);
}

/* Follows the route; returns the number of links, or -1 if the route does not end. */
static int count_route_links(const struct tree *t, uint32_t from, uint32_t to)
{
    struct tree_place at = {-1, from, 0};
    for (int n = 0; n < 2 * TREE_LEVELS_MAX; n++) {
        if (at.level < 0 && n > 0)
            return at.group == to ? n : -1;
        uint32_t link = tree_next_link(t, at, to, 0, 1);
        if (link >= 2 * t->cables)
            return -1;
        at = tree_link_end(t, link);
    }
    return -1;
}

static void test_every_route_ends(void)
{
    static const struct {
        uint32_t nodes, radix, levels, switches;
    } trees[] = {{1, 4, 1, 1},   {4, 4, 1, 1},   {5, 4, 2, 5},  {8, 4, 2, 6},
                 {16, 4, 3, 20}, {13, 4, 3, 19}, {54, 6, 3, 45}};
    for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
        struct tree t;
        EXPECT(tree_make(&t, trees[i].nodes, trees[i].radix));
        EXPECT_EQ(t.levels, trees[i].levels);
        EXPECT_EQ(tree_switches(&t), trees[i].switches);
        for (uint32_t from = 0; from < t.nodes; from++)
            for (uint32_t to = 0; to < t.nodes; to++) {
                int n = from == to ? 2 : count_route_links(&t, from, to);
                EXPECT(n >= 2 && n <= 2 * (int)t.levels && n % 2 == 0);
                if (from != to && from / t.half == to / t.half)
                    EXPECT_EQ(n, 2);
            }
    }
    struct tree t;
    EXPECT(!tree_make(&t, 8, 5));
    EXPECT(!tree_make(&t, 8, 2));
    EXPECT(!tree_make(&t, 0, 4));
}

/* All nodes of one leaf send to the nodes of another leaf: each node uses a different link up. */
static void test_routes_differ_by_destination(void)
{
    struct tree t;
    bool used[4096] = {false};
    EXPECT(tree_make(&t, 128, 16));
    for (uint32_t i = 0; i < t.half; i++) {
        struct tree_place at = {-1, i, 0};
        do {
            uint32_t link = tree_next_link(&t, at, t.half + i, 0, 1);
            EXPECT(!used[link]);
            used[link] = true;
            at = tree_link_end(&t, link);
        } while (at.level >= 0);
    }
}

static void test_reading_machine_files(void)
{
    struct machine m = machine_preset;
    char text[] = "# mine\nlink_rate 25 # GB/s\n\nradix 40\n", why[128];
    FILE *in = fmemopen(text, strlen(text), "r");
    EXPECT(machine_read(&m, in, why, sizeof(why)));
    EXPECT(m.link_rate == 25 && m.radix == 40 && m.mtu == machine_preset.mtu);
    fclose(in);
    char wrong[] = "link_rate 25\nlink_rat 25\n";
    in = fmemopen(wrong, strlen(wrong), "r");
    EXPECT(!machine_read(&m, in, why, sizeof(why)));
    EXPECT(strstr(why, "line 2, 'link_rat 25'"));
    fclose(in);
    EXPECT(!machine_set(&m, "buffers", "0") && !machine_set(&m, "buffers", "9x") &&
           !machine_set(&m, "buffers", "nan"));
}

int main(void)
{
    TEST_RUN(test_event_order);
    TEST_RUN(test_order_of_distant_events);
    TEST_RUN(test_pairs_are_inserted_and_removed);
    TEST_RUN(test_every_route_ends);
    TEST_RUN(test_routes_differ_by_destination);
    TEST_RUN(test_reading_machine_files);
    return test_result();
}

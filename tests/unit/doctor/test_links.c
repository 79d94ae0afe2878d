/* test_links.c: which links are reported as slow, and which node is identified as the cause.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "links.h"
#include "test.h"

enum { LINKS_MAX = 1024 };
static struct link_seen list[LINKS_MAX];
static size_t n;

/* Adds a link on which large messages need at best `cost` ns per byte, and `slower` times as much on
 * average. */
static void add_link(int from, int to, double cost, double slower)
{
    list[n++] = (struct link_seen){.from = from,
                                   .to = to,
                                   .ends = {from, to},
                                   .messages = 20,
                                   .bytes = 1000000,
                                   .ns = (uint64_t)(1e6 * cost * slower),
                                   .best = cost * 1e-9,
                                   .how = ""};
}

/* Adds the links between all nodes: links of node `slow` cost `cost` ns per byte, all others 1. */
static void fill_all_links(int nodes, int slow, double cost)
{
    n = 0;
    for (int a = 0; a < nodes; a++)
        for (int b = 0; b < nodes; b++)
            if (a != b)
                add_link(a, b, a == slow || b == slow ? cost : 1, 1.2);
}

static void check_slow_node(int nodes)
{
    fill_all_links(nodes, 1, 4);
    EXPECT_EQ(links_judge(list, n), (size_t)(2 * (nodes - 1)));
    for (size_t i = 0; i < n; i++)
        EXPECT_EQ(list[i].slow, list[i].from == 1 || list[i].to == 1);
    EXPECT_EQ(links_find_slow_node(list, n), 1);
    EXPECT(list[0].times > 3.9 && list[0].times < 4.1 && list[0].others > 3 * list[0].rate);
}

static void check_no_slow_node(void)
{
    fill_all_links(6, -1, 1);
    EXPECT_EQ(links_judge(list, n), 0);
    EXPECT_EQ(links_find_slow_node(list, n), -1);
    fill_all_links(6, 2, 1.8); /* not slow enough to be reported */
    EXPECT_EQ(links_judge(list, n), 0);
    fill_all_links(2, 1, 5); /* one link, with no other to compare with */
    EXPECT_EQ(links_judge(list, n), 0);
    EXPECT(list[0].times == 0 && list[0].others == 0);
    EXPECT_EQ(links_judge(list, 0), 0);
    EXPECT_EQ(links_merge(list, 0), 0);
}

/* A link that is slow on average but as fast as others at best: its rank was late, the link is in order. */
static void check_late_rank(void)
{
    fill_all_links(6, -1, 1);
    list[3].ns *= 50;
    EXPECT_EQ(links_judge(list, n), 0);
}

static void check_single_link(void)
{
    fill_all_links(6, -1, 1);
    list[7].best *= 5;
    list[7].ns *= 5;
    const int from = list[7].from, to = list[7].to;
    EXPECT_EQ(links_judge(list, n), 1);
    EXPECT(list[0].from == from && list[0].to == to);
    EXPECT_EQ(links_find_slow_node(list, n), -1); /* one slow link does not identify a node */
    list[0].messages = LINK_MESSAGES - 1;
    EXPECT_EQ(links_judge(list, n), 0); /* too few links for a judgement */
}

/* Short messages are slower than long ones, and shared memory is faster than a wire: kinds are not mixed. */
static void check_kinds_are_compared_separately(void)
{
    n = 0;
    for (int a = 0; a < 4; a++) {
        add_link(a, (a + 1) % 4, 1, 1);
        add_link(a, (a + 2) % 4, 9, 1);
        list[n - 1].kind = 2;
    }
    EXPECT_EQ(links_judge(list, n), 0);
}

/* The measurements of both ends of a link are merged. */
static void check_merged_ends(void)
{
    n = 0;
    add_link(0, 1, 3, 1);
    add_link(2, 3, 1, 1);
    add_link(0, 1, 1, 1);
    add_link(0, 1, 1, 1);
    list[3].rail = 1;
    EXPECT_EQ(links_merge(list, n), 3);
    EXPECT_EQ(list[0].messages, 40);
    EXPECT_EQ(list[0].bytes, 2000000);
    EXPECT(list[0].best < 1.1e-9);
}

int main(void)
{
    for (int nodes = 3; nodes <= 20; nodes++)
        check_slow_node(nodes);
    check_no_slow_node();
    check_late_rank();
    check_single_link();
    check_kinds_are_compared_separately();
    check_merged_ends();
    return test_result();
}

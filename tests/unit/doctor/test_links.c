/* test_links.c: which links are called slow, and which node is behind it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "links.h"
#include "test.h"

enum { MOST = 1024 };
static struct link_seen list[MOST];
static size_t n;

/* A link between two nodes on which large messages need `cost` ns a byte, `slower` times that on average. */
static void link_of(int from, int to, double cost, double slower)
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

/* Fills the links between all nodes: those of `slow` cost `cost`, the others 1. */
static void links_all_ranks(int nodes, int slow, double cost)
{
    n = 0;
    for (int a = 0; a < nodes; a++)
        for (int b = 0; b < nodes; b++)
            if (a != b)
                link_of(a, b, a == slow || b == slow ? cost : 1, 1.2);
}

static void slow_node(int nodes)
{
    links_all_ranks(nodes, 1, 4);
    EXPECT_EQ(links_judge(list, n), (size_t)(2 * (nodes - 1)));
    for (size_t i = 0; i < n; i++)
        EXPECT_EQ(list[i].slow, list[i].from == 1 || list[i].to == 1);
    EXPECT_EQ(links_find_slow_node(list, n), 1);
    EXPECT(list[0].times > 3.9 && list[0].times < 4.1 && list[0].others > 3 * list[0].rate);
}

static void links_no_receiver(void)
{
    links_all_ranks(6, -1, 1);
    EXPECT_EQ(links_judge(list, n), 0);
    EXPECT_EQ(links_find_slow_node(list, n), -1);
    links_all_ranks(6, 2, 1.8); /* a little slower */
    EXPECT_EQ(links_judge(list, n), 0);
    links_all_ranks(2, 1, 5); /* nothing to compare with */
    EXPECT_EQ(links_judge(list, n), 0);
    EXPECT(list[0].times == 0 && list[0].others == 0);
    EXPECT_EQ(links_judge(list, 0), 0);
    EXPECT_EQ(links_merge(list, 0), 0);
}

/* A link that is slow in sum, but as fast as others at its best: the rank came late, the link is good. */
static void late_rank(void)
{
    links_all_ranks(6, -1, 1);
    list[3].ns *= 50;
    EXPECT_EQ(links_judge(list, n), 0);
}

static void one_link(void)
{
    links_all_ranks(6, -1, 1);
    list[7].best *= 5;
    list[7].ns *= 5;
    const int from = list[7].from, to = list[7].to;
    EXPECT_EQ(links_judge(list, n), 1);
    EXPECT(list[0].from == from && list[0].to == to);
    EXPECT_EQ(links_find_slow_node(list, n), -1); /* one link accuses no node */
    list[0].messages = LINK_MESSAGES - 1;
    EXPECT_EQ(links_judge(list, n), 0); /* too few to be sure */
}

/* Short messages are slower than long ones, and shared memory is faster than a wire: kinds are not mixed. */
static void test_kinds(void)
{
    n = 0;
    for (int a = 0; a < 4; a++) {
        link_of(a, (a + 1) % 4, 1, 1);
        link_of(a, (a + 2) % 4, 9, 1);
        list[n - 1].kind = 2;
    }
    EXPECT_EQ(links_judge(list, n), 0);
}

/* Both ends of a link have measured it. */
static void test_merged(void)
{
    n = 0;
    link_of(0, 1, 3, 1);
    link_of(2, 3, 1, 1);
    link_of(0, 1, 1, 1);
    link_of(0, 1, 1, 1);
    list[3].rail = 1;
    EXPECT_EQ(links_merge(list, n), 3);
    EXPECT_EQ(list[0].messages, 40);
    EXPECT_EQ(list[0].bytes, 2000000);
    EXPECT(list[0].best < 1.1e-9);
}

int main(void)
{
    for (int nodes = 3; nodes <= 20; nodes++)
        slow_node(nodes);
    links_no_receiver();
    late_rank();
    one_link();
    test_kinds();
    test_merged();
    return test_result();
}

/* test_area.c: blocks allocated from the node's shared memory are aligned, zero-filled and disjoint, can
 * be freed, and are refused when there is no room; for one rank and for several ranks at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include <sched.h>

static void allocate_from_one_rank(struct node *n)
{
    if (n->boot.rank != 0)
        return;
    struct net *net = n->net;
    uint64_t a = 1, b = 1, c = 1;
    EXPECT_EQ(net_area_alloc(net, 100, &a), 0);
    EXPECT_EQ(net_area_alloc(net, 4097, &b), 0);
    EXPECT(a % 64 == 0 && b % 64 == 0 && a != b);
    memset(net->area + a, 1, 100);
    memset(net->area + b, 2, 4097);
    EXPECT_EQ(net->area[a], 1);
    net_area_free(net, b, 4097);
    EXPECT_EQ(net_area_alloc(net, 8192, &c), 0);
    EXPECT_EQ(c, b); /* first fit: the freed block, zeroed again */
    for (int i = 0; i < 8192; i++)
        if (net->area[c + (uint64_t)i] != 0) {
            EXPECT_EQ(net->area[c + (uint64_t)i], 0);
            break;
        }
    EXPECT_EQ(net_area_alloc(net, net->area_size, &b), MPI_ERR_NO_MEM);
    EXPECT_EQ(net_area_alloc(net, net->area_size * 4, &b), MPI_ERR_NO_MEM);
    EXPECT_EQ(net_area_alloc(net, 0, &b), MPI_ERR_NO_MEM);
    net_area_free(net, a, 100);
    net_area_free(net, c, 8192);
    EXPECT_EQ(net_area_alloc(net, net->area_size, &a), 0);
    EXPECT_EQ(a, 0);
    EXPECT_EQ(net_area_alloc(net, 1, &b), MPI_ERR_NO_MEM);
    net_area_free(net, a, net->area_size);
}

/* Every rank writes its mark into its blocks; overlapping blocks would overwrite marks. */
static void allocate_from_all_ranks(struct node *n)
{
    enum { HELD = 8, ROUNDS = 300 };
    uint64_t held[HELD];
    size_t size[HELD] = {0};
    unsigned random_state = n->boot.rank + 1;
    for (int i = 0; i < ROUNDS; i++) {
        int k = i % HELD;
        if (size[k]) {
            unsigned char *p = (unsigned char *)n->net->area + held[k];
            EXPECT_EQ(p[0], n->boot.rank + 1);
            EXPECT_EQ(p[size[k] - 1], n->boot.rank + 1);
            net_area_free(n->net, held[k], size[k]);
        }
        random_state = random_state * 1103515245u + 12345u;
        size[k] = 1 + (random_state >> 8) % 50000;
        if (net_area_alloc(n->net, size[k], &held[k]) != 0) {
            size[k] = 0;
            continue;
        }
        EXPECT_EQ(n->net->area[held[k]], 0);
        memset(n->net->area + held[k], (int)n->boot.rank + 1, size[k]);
        sched_yield();
    }
}

static void test_one_rank(void)
{
    node_run(2, allocate_from_one_rank);
}

static void test_all_ranks(void)
{
    node_run(6, allocate_from_all_ranks);
}

int main(void)
{
    TEST_RUN(test_one_rank);
    TEST_RUN(test_all_ranks);
    return test_result();
}

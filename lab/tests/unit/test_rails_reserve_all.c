/* test_rails_reserve_all.c: every interleaving of reservations among 3 nodes with 2 rails: no deadlock, no
 * livelock under weak fairness, never two uses of one adapter, and no reservation left at the end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "rails_all.h"

/* Destinations of each node: requests in a cycle, and the other patterns of concurrent requests. */
static void test_three_nodes_two_rails(void)
{
    static const uint8_t patterns[][NODES] = {{1, 2, 0}, {2, 2, 0}, {1, 0, 1}};
    for (unsigned i = 0; i < COUNT_OF(patterns); i++) {
        struct limits l = {.nodes = 3, .rails = 2, .messages = 1, .bound = 1};
        memcpy(l.to, patterns[i], sizeof(l.to));
        EXPECT(!explore_all_interleavings(l));
    }
}

/* Every granted rail is used: none is given back. */
static void test_full_striping(void)
{
    EXPECT(!explore_all_interleavings(
        (struct limits){.nodes = 3, .rails = 2, .messages = 1, .bound = 1, .ratio = 1, .to = {1, 0, 1}}));
    EXPECT(!explore_all_interleavings(
        (struct limits){.nodes = 2, .rails = 2, .messages = 3, .bound = 1, .ratio = 1, .to = {1, 0}}));
}

/* Every choice of destinations, a second message, and larger counters. */
static void test_three_nodes_one_rail(void)
{
    for (unsigned pattern = 0; pattern < 8; pattern++) {
        struct limits l = {.nodes = 3, .rails = 1, .messages = 1, .bound = 1};
        for (unsigned n = 0; n < 3; n++)
            l.to[n] = (uint8_t)((n + 1 + (pattern >> n & 1)) % 3);
        EXPECT(!explore_all_interleavings(l));
    }
    EXPECT(!explore_all_interleavings(
        (struct limits){.nodes = 3, .rails = 1, .messages = 1, .bound = 5, .to = {1, 2, 0}}));
    EXPECT(!explore_all_interleavings(
        (struct limits){.nodes = 3, .rails = 1, .messages = 2, .bound = 1, .to = {0, 1, 2}}));
}

/* Processes that time out: adapters wait for answers that are no longer needed. */
static void test_timeouts(void)
{
    EXPECT(!explore_all_interleavings(
        (struct limits){.nodes = 3, .rails = 1, .messages = 1, .timeouts = 1, .to = {1, 2, 0}}));
    EXPECT(!explore_all_interleavings(
        (struct limits){.nodes = 2, .rails = 2, .messages = 1, .timeouts = 1, .bound = 1, .to = {1, 0}}));
}

int main(void)
{
    TEST_RUN(test_three_nodes_two_rails);
    TEST_RUN(test_full_striping);
    TEST_RUN(test_three_nodes_one_rail);
    TEST_RUN(test_timeouts);
    return test_result();
}

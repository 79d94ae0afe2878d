/* test_ib_devlist.c: the user's list of adapters: order, ports, exclusions, and names that are prefixes of
 * others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/devlist.h"

#include "test.h"

static void test_empty_list_accepts_all(void)
{
    EXPECT_EQ(devlist_find_position("", "mlx5_0", 1), 0);
    EXPECT_EQ(devlist_find_position(" , ", "mlx5_0", 1), 0);
}

static void test_list_accepts_listed_in_order(void)
{
    const char *list = "mlx5_1,mlx5_0:2";
    EXPECT_EQ(devlist_find_position(list, "mlx5_1", 1), 0);
    EXPECT_EQ(devlist_find_position(list, "mlx5_1", 2), 0);
    EXPECT_EQ(devlist_find_position(list, "mlx5_0", 1), -1);
    EXPECT_EQ(devlist_find_position(list, "mlx5_0", 2), 1);
    EXPECT_EQ(devlist_find_position(list, "mlx5_2", 1), -1);
}

static void test_first_mention_counts(void)
{
    EXPECT_EQ(devlist_find_position("a:2,b,a", "a", 2), 0);
    EXPECT_EQ(devlist_find_position("a:2,b,a", "a", 1), 2);
}

static void test_only_exclusions_accept_the_rest(void)
{
    const char *list = "^mlx5_2,^mlx5_0:1";
    EXPECT_EQ(devlist_find_position(list, "mlx5_2", 1), -1);
    EXPECT_EQ(devlist_find_position(list, "mlx5_0", 1), -1);
    EXPECT_EQ(devlist_find_position(list, "mlx5_0", 2), 0);
    EXPECT_EQ(devlist_find_position(list, "mlx5_1", 1), 0);
}

/* In any order of the entries: excluded adapters and adapters that are not listed are rejected. */
static void test_exclusions_win(void)
{
    static const char *const lists[] = {"^a:1,a", "a,^a:1"};
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(devlist_find_position(lists[i], "a", 1), -1);
        EXPECT_EQ(devlist_find_position(lists[i], "a", 2), 0);
        EXPECT_EQ(devlist_find_position(lists[i], "b", 1), -1);
    }
}

static void test_prefix_names_differ(void)
{
    EXPECT_EQ(devlist_find_position("mlx5_1", "mlx5_10", 1), -1);
    EXPECT_EQ(devlist_find_position("mlx5_10", "mlx5_1", 1), -1);
    EXPECT_EQ(devlist_find_position("mlx5_1:1", "mlx5_1", 11), -1);
    EXPECT_EQ(devlist_find_position("mlx5_1:11", "mlx5_1", 1), -1);
    EXPECT_EQ(devlist_find_position("mlx5_1:", "mlx5_1", 1), -1);
    EXPECT_EQ(devlist_find_position("mlx5_1:1x", "mlx5_1", 1), -1);
}

static void test_spaces_and_empty_entries(void)
{
    EXPECT_EQ(devlist_find_position(" a , ,b:2, ", "a", 3), 0);
    EXPECT_EQ(devlist_find_position(" a , ,b:2, ", "b", 2), 1);
    EXPECT_EQ(devlist_find_position("a,^", "b", 1), -1);
}

int main(void)
{
    TEST_RUN(test_empty_list_accepts_all);
    TEST_RUN(test_list_accepts_listed_in_order);
    TEST_RUN(test_first_mention_counts);
    TEST_RUN(test_only_exclusions_accept_the_rest);
    TEST_RUN(test_exclusions_win);
    TEST_RUN(test_prefix_names_differ);
    TEST_RUN(test_spaces_and_empty_entries);
    return test_result();
}

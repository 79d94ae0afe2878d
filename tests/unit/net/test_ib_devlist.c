/* test_ib_devlist.c: the user's list of adapters: order, ports, exclusions, and names that begin alike.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/ib/policy/devlist.h"

#include "test.h"

static void no_list_wants_all(void)
{
    EXPECT_EQ(devlist_find_position("", "mlx5_0", 1), 0);
    EXPECT_EQ(devlist_find_position(" , ", "mlx5_0", 1), 0);
}

static void listed_only_and_in_order(void)
{
    const char *list = "mlx5_1,mlx5_0:2";
    EXPECT_EQ(devlist_find_position(list, "mlx5_1", 1), 0);
    EXPECT_EQ(devlist_find_position(list, "mlx5_1", 2), 0);
    EXPECT_EQ(devlist_find_position(list, "mlx5_0", 1), -1);
    EXPECT_EQ(devlist_find_position(list, "mlx5_0", 2), 1);
    EXPECT_EQ(devlist_find_position(list, "mlx5_2", 1), -1);
}

static void first_mention_counts(void)
{
    EXPECT_EQ(devlist_find_position("a:2,b,a", "a", 2), 0);
    EXPECT_EQ(devlist_find_position("a:2,b,a", "a", 1), 2);
}

static void exclusions_alone_want_the_rest(void)
{
    const char *list = "^mlx5_2,^mlx5_0:1";
    EXPECT_EQ(devlist_find_position(list, "mlx5_2", 1), -1);
    EXPECT_EQ(devlist_find_position(list, "mlx5_0", 1), -1);
    EXPECT_EQ(devlist_find_position(list, "mlx5_0", 2), 0);
    EXPECT_EQ(devlist_find_position(list, "mlx5_1", 1), 0);
}

/* Whatever stands first: what is excluded is not wanted, and what is not listed neither. */
static void exclusions_win(void)
{
    static const char *const lists[] = {"^a:1,a", "a,^a:1"};
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(devlist_find_position(lists[i], "a", 1), -1);
        EXPECT_EQ(devlist_find_position(lists[i], "a", 2), 0);
        EXPECT_EQ(devlist_find_position(lists[i], "b", 1), -1);
    }
}

static void names_that_begin_alike(void)
{
    EXPECT_EQ(devlist_find_position("mlx5_1", "mlx5_10", 1), -1);
    EXPECT_EQ(devlist_find_position("mlx5_10", "mlx5_1", 1), -1);
    EXPECT_EQ(devlist_find_position("mlx5_1:1", "mlx5_1", 11), -1);
    EXPECT_EQ(devlist_find_position("mlx5_1:11", "mlx5_1", 1), -1);
    EXPECT_EQ(devlist_find_position("mlx5_1:", "mlx5_1", 1), -1);
    EXPECT_EQ(devlist_find_position("mlx5_1:1x", "mlx5_1", 1), -1);
}

static void spaces_and_empty_entries(void)
{
    EXPECT_EQ(devlist_find_position(" a , ,b:2, ", "a", 3), 0);
    EXPECT_EQ(devlist_find_position(" a , ,b:2, ", "b", 2), 1);
    EXPECT_EQ(devlist_find_position("a,^", "b", 1), -1);
}

int main(void)
{
    TEST_RUN(no_list_wants_all);
    TEST_RUN(listed_only_and_in_order);
    TEST_RUN(first_mention_counts);
    TEST_RUN(exclusions_alone_want_the_rest);
    TEST_RUN(exclusions_win);
    TEST_RUN(names_that_begin_alike);
    TEST_RUN(spaces_and_empty_entries);
    return test_result();
}

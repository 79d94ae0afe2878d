/* test_info.c: info objects: order, replacement, limits; which hints communicators keep and which they drop.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "obj/hints.h"
#include "obj/info.h"
#include "test.h"

static void test_keys_keep_order(void)
{
    struct info *i, *copy;
    char key[32], value[32];
    EXPECT_EQ(info_create(&i), MPI_SUCCESS);
    for (int k = 0; k < 20; k++) {
        snprintf(key, sizeof(key), "key%d", k);
        snprintf(value, sizeof(value), "value%d", k);
        EXPECT_EQ(info_set(i, key, value), MPI_SUCCESS);
    }
    EXPECT_EQ(info_set(i, "key3", "new"), MPI_SUCCESS);
    EXPECT_EQ(info_delete(i, "key0"), MPI_SUCCESS);
    EXPECT_EQ(info_delete(i, "key0"), MPI_ERR_INFO_NOKEY);
    EXPECT_EQ(i->count, 19);
    EXPECT_STR(i->pairs[2].key, "key3");
    EXPECT_STR(info_get(i, "key3"), "new");
    EXPECT_EQ(info_copy(i, &copy), MPI_SUCCESS);
    info_release(i);
    EXPECT_EQ(copy->count, 19);
    EXPECT_STR(copy->pairs[18].value, "value19");
    EXPECT(info_get(copy, "key0") == NULL);
    info_release(copy);
}

static void test_limits(void)
{
    static char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    struct info *i;
    info_create(&i);
    memset(key, 'k', MPI_MAX_INFO_KEY);
    memset(value, 'v', MPI_MAX_INFO_VAL);
    EXPECT_EQ(info_set(i, key, "v"), MPI_ERR_INFO_KEY);
    EXPECT_EQ(info_set(i, "", "v"), MPI_ERR_INFO_KEY);
    EXPECT_EQ(info_set(i, "k", value), MPI_ERR_INFO_VALUE);
    key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL - 1] = '\0';
    EXPECT_EQ(info_set(i, key, value), MPI_SUCCESS);
    EXPECT_STR(info_get(i, key), value);
    EXPECT_EQ(info_set(i, "empty", ""), MPI_SUCCESS);
    EXPECT_STR(info_get(i, "empty"), "");
    info_release(i);
}

static void test_known_and_unknown_hints(void)
{
    struct info *requested, *kept = NULL, *used;
    info_create(&requested);
    info_set(requested, "mpi_assert_no_any_tag", "True");
    info_set(requested, "mpi_assert_no_any_source", "perhaps");
    info_set(requested, "colour", "blue");
    EXPECT_EQ(hints_apply(&kept, requested), MPI_SUCCESS);
    EXPECT_EQ(hints_apply(&kept, NULL), MPI_SUCCESS);
    EXPECT_EQ(hints_build_used(kept, &used), MPI_SUCCESS);
    EXPECT_STR(info_get(used, "mpi_assert_no_any_tag"), "true");
    EXPECT_STR(info_get(used, "mpi_assert_no_any_source"), "false");
    EXPECT_STR(info_get(used, "mpi_assert_allow_overtaking"), "false");
    EXPECT(info_get(used, "colour") == NULL);
    info_release(used);
    info_release(kept);
    info_release(requested);
}

static void test_environment(void)
{
    struct info *i;
    char *argv[] = {"prog", "one", "two words", NULL};
    EXPECT_EQ(info_create_env(3, argv, &i), MPI_SUCCESS);
    EXPECT_STR(info_get(i, "command"), "prog");
    EXPECT_STR(info_get(i, "argv"), "one two words");
    EXPECT(info_get(i, "arch") != NULL);
    EXPECT(info_get(i, "wdir") != NULL);
    EXPECT_STR(info_get(i, "maxprocs"), "1"); /* maxprocs is 1 if no launcher has set it */
    info_release(i);
}

int main(void)
{
    TEST_RUN(test_keys_keep_order);
    TEST_RUN(test_limits);
    TEST_RUN(test_known_and_unknown_hints);
    TEST_RUN(test_environment);
    return test_result();
}
